# SPDX-License-Identifier: Apache-2.0
"""The service dies, hangs, is slow or sends nonsense, slurmctld dies: each during a stream of jobs.

After each, from Slurm's own records: no job lost, none started twice, no node oversubscribed, no
limit broken. A failure prints the seed of its stream; SCHEDBRIDGE_SEED=... repeats it.
"""

import calendar
import os
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.integration.replaced_service import (
    LOG,
    RESULTS,
    SERVE,
    SOCKET,
    ReplacedService,
    Results,
    Silence,
    fallbacks,
    silence,
    status,
)
from tests.integration.slurm import Cluster
from tests.integration.stream import CAPPED_ACCOUNT, CAPPED_CPUS, CPUS, Stream, starts_between

SILENCE_S = 5
"""How long the plugin waits for a silent service (its default)."""
TICK_S = 10
"""How often it calls at least if nothing happens (its default)."""
LATE_S = 5
"""What the tick, the log's seconds and a machine of two busy cores may add to it."""
STATE_FILE = "/var/lib/slurm/state/job_state"
SAVED_S = 1
"""Slurm's state file is younger than what it holds by less than this."""


@pytest.fixture
def seed() -> int:
    return int(os.environ.get("SCHEDBRIDGE_SEED") or random.SystemRandom().randrange(10**6))


@pytest.fixture(autouse=True)
def capped(cluster: Cluster) -> None:
    """An account whose jobs may use few CPUs at a time, open to the streams' user."""
    limit = f"GrpTRES=cpu={CAPPED_CPUS}"
    for addition in (
        ("account", CAPPED_ACCOUNT, limit),
        ("user", "user", f"account={CAPPED_ACCOUNT}"),
    ):
        cluster.process("sacctmgr", "-i", "add", *addition, user="root")  # may be there already
    known = cluster.root(
        "sacctmgr", "-n", "-P", "show", "assoc", f"account={CAPPED_ACCOUNT}", "format=user,grptres"
    )
    assert f"cpu={CAPPED_CPUS}" in known
    assert "\nuser|" in known
    decides(cluster)


def decides(cluster: Cluster) -> None:
    """Waits until the bridge has started a job that is submitted now."""

    def started() -> int:
        decisions = status(cluster).get("decisions", {})
        assert isinstance(decisions, dict)
        return int(decisions.get("start", 0))

    cluster.wait_for("a service that is called", lambda: recently_called(cluster), 30)
    before = started()
    job = cluster.sbatch("-n1", "-t1", run="true")
    cluster.wait_for("the bridge to decide a start", lambda: started() > before, 20)
    cluster.wait_state(job, "COMPLETED")


def recently_called(cluster: Cluster) -> bool:
    since_s = status(cluster).get("since_last_cycle_s", -1)
    assert isinstance(since_s, float | int)
    return 0 <= since_s < TICK_S + 2


@contextmanager
def own_scheduler(cluster: Cluster) -> Iterator[None]:
    """What happens inside makes slurmctld fall back; afterwards service and log must say so."""
    before, mark = fallbacks(cluster), time.time()
    yield
    decides(cluster)
    cluster.wait_for("marks of backfill to vanish", lambda: not planned_nodes(cluster), 20)
    said = fallback_log(cluster, mark)
    assert said, "slurmctld's log does not say that it fell back"
    cluster.wait_for("the fallback to be counted", lambda: fallbacks(cluster) > before, 20)


def planned_nodes(cluster: Cluster) -> str:
    """Nodes that Slurm's backfill has marked as planned and left so."""
    return cluster.run("sinfo", "-N", "-h", "-t", "planned", "-o", "%N")


def fallback_log(cluster: Cluster, from_s: float) -> list[float]:
    """When, after an instant, slurmctld's log says that Slurm's own scheduler takes over."""
    return [at for at, text in controller_log(cluster, from_s) if "falling back" in text]


def controller_log(cluster: Cluster, from_s: float) -> list[tuple[float, str]]:
    """Lines of sched/bridge in slurmctld's log, with their instants."""
    found = []
    for line in cluster.script("logs", "controller").splitlines():
        match = re.match(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?\] (.*)", line)
        if match and "bridge:" in match[3]:
            at_s = calendar.timegm(time.strptime(match[1], "%Y-%m-%dT%H:%M:%S"))
            at_s += float(match[2] or 0)
            if at_s >= from_s:
                found.append((at_s, match[3]))
    return found


def falls_back(cluster: Cluster, silent: Silence) -> None:
    """Waits, however long a busy machine takes, until slurmctld says that it fell back."""
    cluster.wait_for("the fallback", lambda: fallback_log(cluster, silent.not_before_s), 90)


def fell_back_in_time(cluster: Cluster, silent: Silence) -> float:
    """Waits until slurmctld says that it fell back; returns when, after checking that in time."""
    said = cluster.wait_for(
        "the fallback", lambda: fallback_log(cluster, silent.not_before_s), SILENCE_S + 15
    )
    took_s = said[0] - silent.not_after_s
    assert took_s <= SILENCE_S + LATE_S, f"fell back only after {took_s:.1f} s of silence"
    return said[0]


def run_alone(cluster: Cluster) -> str:
    """The id of a job that is submitted now and that Slurm's own scheduler has run."""
    job = cluster.sbatch("-n1", "-t1", run="true")
    cluster.wait_state(job, "COMPLETED")
    return job


# ------------------------------------------------------------------ the service is gone, or hangs


def test_the_service_is_killed_and_comes_back(cluster: Cluster, seed: int) -> None:
    with own_scheduler(cluster):
        with Stream(cluster, seed, count=45) as stream:
            stream.reached(10)
            with silence() as silent:
                cluster.script("kill", "service")
            alone_s = fell_back_in_time(cluster, silent)
            job = run_alone(cluster)
            stream.reached(min(len(stream.submitted) + 12, stream.count))
            back_s = time.time()
            cluster.script("restart", "service")
        stream.finished()
    (alone,) = cluster.assert_sound([job], cpus_per_node=CPUS)
    started = starts_between([alone, *stream.records()], alone_s, back_s)
    assert started, "no job started while the service was gone"
    assert started[0] <= alone_s + SILENCE_S, "Slurm's own scheduler was slow to take over"


def test_the_service_is_stopped_and_continued(cluster: Cluster, seed: int) -> None:
    with own_scheduler(cluster):
        with Stream(cluster, seed, count=45) as stream:
            stream.reached(10)
            with silence() as silent:
                cluster.script("stop", "service")
            alone_s = fell_back_in_time(cluster, silent)
            job = run_alone(cluster)
            stream.reached(min(len(stream.submitted) + 12, stream.count))
            back_s = time.time()
            cluster.script("cont", "service")
        stream.finished()
    (alone,) = cluster.assert_sound([job], cpus_per_node=CPUS)
    started = starts_between([alone, *stream.records()], alone_s, back_s)
    assert started, "no job started meanwhile"


def test_a_stopped_service_keeps_nobody_waiting(cluster: Cluster) -> None:
    """Queries and submissions are answered while the plugin waits for the service."""
    cluster.script("stop", "service")
    try:
        worst_s = 0.0
        end_s = time.monotonic() + SILENCE_S + 2
        while time.monotonic() < end_s:
            began = time.monotonic()
            cluster.sbatch("-n1", "-t1", run="true")
            cluster.run("squeue")
            worst_s = max(worst_s, time.monotonic() - began)
    finally:
        cluster.script("cont", "service")
    assert worst_s < 2, f"sbatch and squeue took {worst_s:.1f} s"
    cluster.wait_empty()


# ------------------------------------------------------------------ the service is slow


def test_a_slow_service_still_decides(cluster: Cluster, seed: int) -> None:
    before = fallbacks(cluster)
    began_s = time.time()
    with ReplacedService(cluster, "altered_service.py", "slow", "2", *SERVE):
        cluster.wait_for("the slow service to be called", lambda: recently_called(cluster), 40)
        known = fallbacks(cluster)
        settled_s = time.time()
        with Stream(cluster, seed, count=25) as stream:
            pass
        stream.finished()
        assert fallbacks(cluster) == known, "fell back from a service that answers in 2 s"
        decisions = status(cluster)["decisions"]
        assert isinstance(decisions, dict)
        assert decisions["start"] >= len(stream.submitted), "not every job was started by it"
        assert not fallback_log(cluster, settled_s)
    assert before <= known
    assert began_s < settled_s
    stream.records()


def test_a_service_slower_than_the_silence_is_left(cluster: Cluster, seed: int) -> None:
    with own_scheduler(cluster):
        with ReplacedService(cluster, "altered_service.py", "slow", "8", *SERVE) as slow:
            with Stream(cluster, seed, count=18, gap_s=0.3) as stream:
                alone_s = fell_back_in_time(cluster, slow.silent)
            cluster.wait_empty()
            back_s = time.time()
        stream.finished()
    assert starts_between(stream.records(), alone_s, back_s)


# ------------------------------------------------------------------ the service talks nonsense


NONSENSE = {
    "bytes": ("garbage.py", "bytes", SOCKET),
    "frames": ("garbage.py", "frames", SOCKET),
    "messages": ("garbage.py", "messages", SOCKET),
    "errors": ("garbage.py", "errors", SOCKET),
    "wants everything again": ("altered_service.py", "amnesia", "need_full", *SERVE),
    "always another service": ("altered_service.py", "amnesia", "service_epoch", *SERVE),
    "holds something else": ("altered_service.py", "amnesia", "generation", *SERVE),
}


@pytest.mark.parametrize("kind", NONSENSE)
def test_nonsense_makes_slurm_go_on_alone(cluster: Cluster, seed: int, kind: str) -> None:
    with own_scheduler(cluster):
        with ReplacedService(cluster, *NONSENSE[kind]) as replacement:
            with Stream(cluster, seed, count=14, gap_s=0.3, longest_s=2) as stream:
                alone_s = fell_back_in_time(cluster, replacement.silent)
            cluster.wait_empty()
            back_s = time.time()
        stream.finished()
    assert starts_between(stream.records(), alone_s, back_s)


def slurmctld_peak_kib(cluster: Cluster) -> int:
    """The most memory slurmctld ever held since its start."""
    found = cluster.inside(
        "controller", "sh", "-c", "grep -h VmHWM /proc/$(pidof -s slurmctld)/status"
    )
    return int(found.split()[1])


def test_an_absurd_reply_takes_no_memory(cluster: Cluster, seed: int) -> None:
    """Decisions of two bytes each took sixty times as much until they were counted."""
    before_kib, mark = slurmctld_peak_kib(cluster), time.time()
    with own_scheduler(cluster):
        with ReplacedService(cluster, "garbage.py", "absurd", SOCKET) as replacement:
            with Stream(cluster, seed, count=10, gap_s=0.3, longest_s=2) as stream:
                falls_back(cluster, replacement.silent)
            cluster.wait_empty()
        stream.finished()
    stream.records()
    assert slurmctld_peak_kib(cluster) - before_kib < 48 * 1024
    said = [text for _, text in controller_log(cluster, mark) if "a reply of more than" in text]
    assert said, "no line says why"
    assert len(said) <= 3 * (1 + (time.time() - mark) / 60) + 1, "the log is flooded"


def test_a_stranger_at_the_socket_is_told_nothing(cluster: Cluster, seed: int) -> None:
    mark = time.time()
    with own_scheduler(cluster):
        with ReplacedService(cluster, "garbage.py", "stranger", SOCKET, user="root") as replacement:
            with Stream(cluster, seed, count=10, gap_s=0.3, longest_s=2) as stream:
                falls_back(cluster, replacement.silent)
            cluster.wait_empty()
            told = cluster.inside("service", "cat", LOG).split()
        stream.finished()
    stream.records()
    assert len(told) > 3, "the stranger was never called"
    assert set(told) == {"0"}, f"the stranger was told {told} bytes"
    said = [text for _, text in controller_log(cluster, mark) if "nothing was sent" in text]
    assert said, "no line names the stranger"
    assert len(said) <= 3 * (1 + (time.time() - mark) / 60) + 1, "the log is flooded"


def test_a_clock_that_was_set_back_makes_no_older_controller(cluster: Cluster) -> None:
    """The epoch of the life before lies ahead of the clock; the service listens all the same."""
    path = "/var/lib/slurm/state/schedbridge_epoch"
    ahead = int(time.time() + 86_400) * 10**6
    cluster.root("sh", "-c", f"echo {ahead} >{path}")
    cluster.script("restart", "controller")
    decides(cluster)
    assert int(cluster.root("cat", path)) == ahead + 1
    cluster.script("restart", "controller")
    decides(cluster)
    assert int(cluster.root("cat", path)) == ahead + 2


def test_impossible_decisions_are_refused_one_by_one(cluster: Cluster, seed: int) -> None:
    """The service mixes impossible decisions into its own; the plugin applies its own only."""
    held = cluster.sbatch("-n1", "-t1", "--hold", run="true")
    tomorrow = cluster.sbatch("-n1", "-t1", "--begin=now+1days", run="true")
    never = cluster.sbatch("-n1", "-t1", f"--dependency=after:{held}", run="true")
    began_s = time.time()
    with ReplacedService(cluster, "altered_service.py", "invalid", RESULTS, *SERVE) as service:
        cluster.wait_for("the service to be called", lambda: recently_called(cluster), 40)
        settled_s = time.time()
        with Stream(cluster, seed, count=32) as stream:
            while len(stream.submitted) < 32 and not stream.refused:
                assert_queue_makes_sense(cluster)
        cluster.wait_for(
            "all but the held jobs to end",
            lambda: set(cluster.queue()) <= {held, tomorrow, never}, 120,
        )  # fmt: skip
        results = service.results()
        assert not fallback_log(cluster, settled_s), "invalid decisions are no reason to fall back"
        for job in (held, tomorrow, never):
            assert cluster.state(job) == "PENDING", f"job {job} was started against the rules"
    assert began_s < settled_s
    cluster.run("scancel", held, tomorrow, never)
    stream.finished()
    stream.records()
    told = set(results)
    wanted = {
        "unknown job", "job id is not a number", "job already running", "job held back",
        "unknown node", "no nodes", "broken hostlist", "endless hostlist", "unknown partition",
        "wrong version", "no action", "too few nodes", "too many nodes", "may-be started again",
        "start in the past", "start in the year 13429", "resize that was not agreed on",
        "quota that was not agreed on", "planned start of a running job",
        "reservation without a name", "reservation of an odd name",
        "reservation of an endless name", "reservation of unknown nodes",
        "reservation of no nodes", "reservation for nobody", "reservation for odd users",
        "reservation for a stranger", "reservation in an unknown partition",
        "reservation that ends before it begins", "reservation in the past",
        "reservation before time", "unknown reservation removed", "nameless reservation removed",
    }  # fmt: skip
    assert told >= wanted, f"never sent, or no result came back: {sorted(wanted - told)}"
    for kind, entries in results.items():
        if not kind.startswith("may-be"):
            wrong = [entry for entry in entries if entry["outcome"] == "OUTCOME_APPLIED"]
            assert not wrong, f"{kind}: {wrong[:3]}"
    assert "No reservations" in cluster.run("scontrol", "show", "reservation")
    two = ("may-be first of two on one node", "may-be second of two on one node")
    shared = applied(results, *two, by=("batch",))
    assert max(shared.values(), default=0) <= 1, "two exclusive jobs on one node"
    again = applied(results, "may-be the real start", "may-be started again", by=("batch", "job"))
    assert max(again.values()) == 1, "a job was started twice"


def applied(results: Results, *kinds: str, by: tuple[str, ...]) -> Counter[tuple[object, ...]]:
    """How many decisions of some kinds were applied, counted by batch or job."""
    return Counter(
        tuple(entry[key] for key in by)
        for kind in kinds
        for entry in results.get(kind, [])
        if entry["outcome"] == "OUTCOME_APPLIED"
    )


def assert_queue_makes_sense(cluster: Cluster) -> None:
    """Users see no start in the past or beyond belief, and no control characters."""
    now_s = time.time()
    shown = cluster.process(
        "env", "SLURM_TIME_FORMAT=%s", "squeue", "-h", "-t", "PD", "-o", "%i|%S|%V|%R"
    ).stdout
    assert all(char.isprintable() or char == "\n" for char in shown), repr(shown)
    for line in shown.splitlines():
        job, start, _, reason = line.split("|", 3)
        assert len(reason) <= 400, line
        if start.isdigit():
            ahead_s = int(start) - now_s
            assert -SILENCE_S < ahead_s < 2 * 86_400, f"job {job} is said to start at {start}"


def test_a_flood_of_decisions_does_no_harm(cluster: Cluster, seed: int) -> None:
    """Ten megabytes of announcements for unknown jobs, again and again."""
    with ReplacedService(cluster, "altered_service.py", "flood", RESULTS, *SERVE):
        cluster.wait_for("the flooder to be called", lambda: recently_called(cluster), 40)
        worst_s = 0.0
        with Stream(cluster, seed, count=20) as stream:
            while len(stream.submitted) < 20 and not stream.refused:
                began = time.monotonic()
                cluster.run("squeue")
                worst_s = max(worst_s, time.monotonic() - began)
        cluster.wait_empty()
    assert worst_s < 3, f"squeue took {worst_s:.1f} s"
    decides(cluster)
    stream.finished()
    stream.records()


# ------------------------------------------------------------------ slurmctld itself


def test_slurmctld_is_killed_and_comes_back(cluster: Cluster, seed: int) -> None:
    """What Slurm had written down when it died goes on as if nothing had been.

    Slurm writes its state every five seconds. What happened later than that Slurm forgets, and it
    gives the forgotten numbers out again, which nodes that still know them refuse and are drained
    for; they are resumed, as an administrator would. Slurm holds the jobs that were refused. Those
    whose end it forgot hold their nodes until these register next, minutes later: they are
    cancelled. Jobs of which any of that is true are not judged; every other is.
    """
    with Stream(cluster, seed, count=100, without="array") as stream:
        stream.reached(35)
        cluster.script("kill", "controller")
        killed_s = time.time()
        saved_s = int(cluster.root("stat", "-c", "%Y", STATE_FILE)) - SAVED_S
        assert killed_s - saved_s < 10, "Slurm did not save its state as it should"
        time.sleep(1)
        last = max(int(one.id) for one in stream.submitted)
        cluster.script("restart", "controller")
    young = happened_between(cluster, stream, saved_s, killed_s + 1)
    young |= {one.id for one in stream.submitted if one.at_s > killed_s and int(one.id) <= last}

    def only_young_are_left() -> bool:
        resume_refusing_nodes(cluster)
        held = cluster.run("squeue", "-h", "-a", "-r", "-t", "PENDING", "-o", "%A %r").splitlines()
        young.update(line.split()[0] for line in held if "launch failed requeued held" in line)
        running = cluster.run("squeue", "-h", "-a", "-r", "-t", "RUNNING", "-o", "%A").split()
        if forgotten := young & set(running):
            cluster.root("scancel", "-Q", *sorted(forgotten))
        return set(cluster.queue()) <= young

    cluster.wait_for("all others to end", only_young_are_left, 120)
    if left := cluster.queue():
        cluster.root("scancel", *left)
    stream.finished()
    resume_refusing_nodes(cluster)
    # What accounting holds for running although slurmctld forgot it.
    cluster.process("sacctmgr", "-i", "show", "runawayjobs", user="root")
    decides(cluster)
    judged = {record.job_id for record in stream.records(but=young)}
    before = [one for one in stream.submitted if one.at_s < killed_s and one.id in judged]
    after = [one for one in stream.submitted if one.at_s > killed_s and one.id in judged]
    assert len(before) >= 8, f"too few to judge: {len(young)} of {stream.count} are young"
    assert len(after) >= 8, f"too few to judge: {len(young)} of {stream.count} are young"


def resume_refusing_nodes(cluster: Cluster) -> None:
    """Resumes nodes that Slurm has drained because they know a job of the same number."""
    shown = cluster.run("sinfo", "-N", "-h", "-o", "%N %E").splitlines()
    refusing = {line.split()[0] for line in shown if "Duplicate jobid" in line}
    if refusing:
        cluster.root("scontrol", "update", f"nodename={','.join(sorted(refusing))}", "state=resume")


def happened_between(cluster: Cluster, stream: Stream, from_s: float, to_s: float) -> set[str]:
    """Jobs that were submitted, began or ended within some time.

    Nodes know of starts that slurmctld did not tell accounting before it died.
    """
    young = {one.id for one in stream.submitted if from_s <= one.at_s <= to_s}
    young |= cluster.launches(from_s, to_s).keys()
    return young | {
        record.job_id
        for record in cluster.records()
        for at_s in (record.start_s, record.end_s)
        if at_s is not None and from_s <= at_s <= to_s
    }


def test_slurmctld_stops_and_starts(cluster: Cluster, seed: int) -> None:
    with Stream(cluster, seed, count=40) as stream:
        stream.reached(20)
        cluster.inside("controller", "role", "end", "controller")
        time.sleep(2)
        cluster.script("restart", "controller")
    stream.finished()
    decides(cluster)
    stream.records()


def test_slurmctld_is_reconfigured_again_and_again(cluster: Cluster, seed: int) -> None:
    with Stream(cluster, seed, count=40) as stream:
        for reached in (10, 20, 30):
            stream.reached(reached)
            cluster.root("scontrol", "reconfigure")
    stream.finished()
    decides(cluster)
    stream.records()


# ------------------------------------------------------------------ off and on, as in docs/ADMIN.md


def test_the_bridge_is_switched_off_and_on_again(cluster: Cluster, seed: int) -> None:
    with Stream(cluster, seed, count=45, gap_s=0.4) as stream:
        with own_scheduler(cluster):  # for a moment
            stream.reached(8)
            with silence() as silent:
                cluster.inside("service", "role", "end", "service")
            fell_back_in_time(cluster, silent)
            cluster.script("restart", "service")
        cluster.script("switch", "backfill")  # for good
        off_s = time.time()
        cluster.inside("service", "role", "end", "service")
        assert "sched/backfill" in cluster.run("scontrol", "show", "config")
        optioned = cluster.sbatch("--malleable=2-4", "-N2", "-t1", run="true")
        cluster.wait_state(optioned, "COMPLETED")
        stream.reached(min(len(stream.submitted) + 6, stream.count))
        assert not controller_log(cluster, off_s), "the bridge still acts"
        on_s = time.time()
        cluster.script("restart", "service")
        cluster.script("switch", "bridge")
    stream.finished()
    decides(cluster)
    (alone,) = cluster.assert_sound([optioned], cpus_per_node=CPUS)
    assert starts_between([alone, *stream.records()], off_s, on_s)
