# SPDX-License-Identifier: Apache-2.0
"""`schedbridge accuracy` and the records behind it, with a real service on real sockets."""

import json
import time
from importlib.resources import files

import grpc
import pytest

from bridge.cli.main import main
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.workloads.swf import read_swf
from bridge.lab.sim.workloads.system import pool_of
from bridge.lab.sim.workloads.workload import workload_from
from bridge.rpc.clients.operator_client import OperatorClient
from bridge.rpc.clients.remote_decider import RemoteDecider
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.pb import scheduler_pb2_grpc
from tests.simulation.services import (
    PATIENCE_S,
    a_home,
    a_process,
    a_service,
    controller_of,
    operator_of,
)
from tests.unit.rpc.worlds import NOW_S, a_delta, a_full, a_hello, a_job, a_request, a_running_job

EXCERPT = files("bridge.lab.sim").joinpath("data/KTH-SP2-1996-excerpt.swf.gz")


@pytest.fixture
def home():
    with a_home() as path:
        yield path


@pytest.fixture
def schedbridge(capsys, home):
    """Runs `schedbridge accuracy`; gives exit code, output and errors."""

    def run(*arguments):
        try:
            main(["accuracy", "--socket", f"{home}/o/s", *map(str, arguments)])
            code = 0
        except SystemExit as end:
            code = end.code or 0
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def wide(job_id):
    return a_job(job_id, request=a_request(min_nodes=4, max_nodes=4, exclusive=True))


def began(job_id, start_s, length_s=600):
    job = a_running_job(job_id, "n[0-3]", end_s=start_s + length_s, exclusive=True)
    job.allocation.start_s = start_s
    return job


def report(home, *requests, epoch=None):
    """Sends reports; a hello first if there is an epoch."""
    with grpc.insecure_channel(controller_of(home)) as channel:
        stub = scheduler_pb2_grpc.SchedulerStub(channel)
        if epoch is not None:
            stub.Hello(a_hello(epoch), timeout=PATIENCE_S)
        return [stub.Cycle(request, timeout=PATIENCE_S) for request in requests]


def some_history(home):
    """Job 1 starts at once; 2 is told +600, then starts 400 s early; 3 is cancelled; 4 waits."""
    report(
        home,
        a_full([wide("1"), wide("2"), wide("3"), wide("4")]),
        a_delta(1, now_s=NOW_S + 1, jobs=[began("1", NOW_S)]),
        a_delta(2, now_s=NOW_S + 200, jobs=[began("2", NOW_S + 200)], removed_jobs=["1"]),
        a_delta(3, now_s=NOW_S + 210, removed_jobs=["3"]),
        epoch=1,
    )


def eventually(ask, holds, patience_s=PATIENCE_S):
    """What is answered once it holds: people are told of a cycle a second late at most."""
    until = time.monotonic() + patience_s
    while not holds(answer := ask()) and time.monotonic() < until:
        time.sleep(0.1)
    return answer


def by_period(reply):
    return {(line["period"], line["partition"]): line for line in reply["lines"]}


def test_promised_and_actual_starts_of_a_partition(home, schedbridge):
    with a_service(home):
        some_history(home)
        code, out, err = schedbridge("--json")
    assert (code, err) == (0, "")
    reply = json.loads(out)
    assert (reply["now_s"], reply["since_s"]) == (NOW_S + 210, NOW_S)
    assert (reply["keep_days"], reply["waiting_promised"]) == (90, 1)
    found = by_period(reply)
    periods = ("PERIOD_HOUR", "PERIOD_DAY", "PERIOD_WEEK", "PERIOD_ALL")
    assert set(found) == {(period, part) for period in periods for part in ("", "batch")}
    line = found["PERIOD_HOUR", "batch"]
    assert (line["promised"], line["unpromised"], line["gone"]) == (1, 1, 1)
    assert line["first"]["median_s"] == -400
    assert line["last"]["absolute_p90_s"] == 400
    assert line["last"]["kept"] == 1


def test_the_table(home, schedbridge):
    """Slow: waits until people are told of the last cycle."""
    with a_service(home):
        code, out, _ = schedbridge()
        assert (code, out) == (0, "The controller has not called yet: nothing is recorded.\n")
        some_history(home)
        code, out, err = eventually(
            lambda: schedbridge("--period", "day"), lambda answer: "last day" in answer[1]
        )
    assert (code, err) == (0, "")
    assert "last day" in out
    assert "last week" not in out
    assert "1 / 2" in out
    assert "6 min / 6 min" in out
    assert "waiting jobs with an announced start: 1" in out


def test_no_job_and_no_user_is_named(home, schedbridge):
    with a_service(home):
        report(home, a_full([wide("1"), wide("nameless-77")]), epoch=1)
        assert "nameless" not in schedbridge("--json")[1]


def test_an_unknown_partition_is_one_clear_line(home, schedbridge):
    with a_service(home):
        some_history(home)
        assert schedbridge("-p", "batch")[0] == 0
        code, out, err = schedbridge("-p", "nope")
    assert (code, out) == (1, "")
    assert err == (
        "schedbridge: partition: no start is recorded in partition 'nope'; "
        "there are starts in batch\n"
    )


@pytest.mark.parametrize(
    ("name", "problem"),
    [("a.gif", "must end in .png, .svg, .pdf"), ("none/a.png", "there is no directory")],
)
def test_a_plot_that_cannot_be_drawn_is_refused_at_once(tmp_path, schedbridge, name, problem):
    code, out, err = schedbridge("--plot", tmp_path / name)
    assert (code, out) == (1, "")
    assert problem in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_plot(home, schedbridge, tmp_path, suffix):
    file = tmp_path / f"a.{suffix}"
    with a_service(home):
        report(home, a_full([]), epoch=1)
        assert schedbridge("--plot", file)[0] == 0  # nothing to show is no error
        some_history(home)
        code, out, _ = schedbridge("--plot", file)
    assert code == 0
    assert f"plot: {file}" in out
    head = {"png": b"\x89PNG", "svg": b"<?xml"}[suffix]
    assert file.read_bytes().startswith(head)


def test_a_restart_forgets_nothing_and_counts_nothing_twice(home, schedbridge):
    """Slow: starts two services, and waits until people are told of the last cycle."""
    with a_service(home):
        some_history(home)
        before = json.loads(schedbridge("--json")[1])
    with a_service(home):
        again = [began("2", NOW_S + 200), wide("4")]
        report(home, a_full(again, now_s=NOW_S + 211, epoch=2), epoch=2)
        after = json.loads(schedbridge("--json")[1])
        assert by_period(after) == by_period(before)
        assert after["waiting_promised"] == 1
        report(
            home,
            a_delta(
                1, epoch=2, now_s=NOW_S + 810, jobs=[began("4", NOW_S + 810)], removed_jobs=["2"]
            ),
        )
        line = eventually(
            lambda: by_period(json.loads(schedbridge("--json")[1]))["PERIOD_ALL", "batch"],
            lambda line: line["promised"] > 1,
        )
    # Job 4 was told +1,800 in the beginning, and +800 when 2 started early and 3 was cancelled.
    assert line["promised"] == 2
    assert line["first"]["percentiles_s"][0] == -990
    assert line["last"]["percentiles_s"][100] == 10
    assert line["changes"] > 0
    assert line["earlier_s"] == 1000 / 2


def test_what_was_told_once_survives_being_killed(home, schedbridge):
    """Slow: starts two services."""
    with a_process(home) as process:
        some_history(home)
        before = json.loads(schedbridge("--json")[1])
        process.kill()
        process.wait()
    with a_process(home):
        report(home, a_full([wide("4")], now_s=NOW_S + 210, epoch=2), epoch=2)
        assert by_period(json.loads(schedbridge("--json")[1])) == by_period(before)


def test_the_service_records_what_the_simulator_sees(home):
    """Two witnesses of one run: the simulator's own ears, and the service's records."""
    workload = workload_from(read_swf(str(EXCERPT))).first(300)
    with a_service(home), OperatorClient(operator_of(home)) as operator:
        with RemoteDecider(controller_of(home)) as decider:
            outcome = simulate(workload, pool_of(workload.processors_total), decider.decide)
        reply = operator.accuracy()
    seen = outcome.starts.accuracy()
    line = next(line for line in reply.lines if line.period == 4 and not line.partition)
    last = int((outcome.starts.start_s == outcome.starts.start_s.max()).sum())
    assert reply.waiting_promised <= last  # the last starts are never reported
    assert seen.promised - line.promised == reply.waiting_promised
    assert line.promised > 20
    assert line.first.absolute_p50_s == pytest.approx(seen.first.absolute_s.p50, rel=0.1)
    assert line.last.absolute_p50_s == pytest.approx(seen.last.absolute_s.p50, rel=0.1)
    assert line.changes == pytest.approx(seen.changes, rel=0.1)


def test_short_jobs_that_nobody_saw_running_have_started(home, schedbridge):
    """Slow: waits until people are told of the last cycle."""
    with a_service(home):
        (reply,) = report(home, a_full([wide("1"), wide("2")]), epoch=1)
        result = pb.Fate(decision_id=reply.decisions[0].id, job_id="1", outcome=pb.OUTCOME_APPLIED)
        report(home, a_delta(1, now_s=NOW_S + 9, fates=[result], removed_jobs=["1"]))
        line = eventually(
            lambda: by_period(json.loads(schedbridge("--json")[1]))["PERIOD_ALL", "batch"],
            lambda line: line["unpromised"],
        )
    assert (line["promised"], line["unpromised"], line["gone"]) == (0, 1, 0)


def test_each_task_of_an_array_is_judged_by_its_own_promise(home, schedbridge):
    """Slow: runs many cycles of a real service."""

    def head(tasks):
        request = a_request(min_nodes=4, max_nodes=4, exclusive=True)
        return a_job("7", request=request, array_tasks=tasks, array_startable=tasks)

    with a_service(home):
        first, *_ = report(
            home,
            a_full([head(3)]),
            a_delta(1, now_s=NOW_S + 1, jobs=[began("7_1", NOW_S), head(2)]),
            a_delta(2, now_s=NOW_S + 500, removed_jobs=["7_1"]),
            a_delta(3, now_s=NOW_S + 501, jobs=[began("7_2", NOW_S + 500), head(1)]),
            epoch=1,
        )
        assert [d.WhichOneof("action") for d in first.decisions] == ["start", "planned_start"]
        line = eventually(
            lambda: by_period(json.loads(schedbridge("--json")[1]))["PERIOD_ALL", "batch"],
            lambda line: line["promised"] and line["unpromised"],
        )
    # Task 1 began at once; task 2 was told +600 and began at +500; task 3 waits.
    assert (line["promised"], line["unpromised"], line["gone"]) == (1, 1, 0)
    assert line["first"]["median_s"] == line["last"]["median_s"] == -100
    assert line["changes"] == 0
