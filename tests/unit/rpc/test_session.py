# SPDX-License-Identifier: Apache-2.0
import re

import pytest

from bridge.errors import SnapshotError, StaleSnapshot, UnsupportedVersion
from bridge.model.job import Ending, Hold
from bridge.registry import PRESETS, build
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.clock import LEAP_S, STAYS_S
from bridge.rpc.reported.refusals import Refusals
from bridge.rpc.reported.session import Session
from bridge.rpc.reported.tables import LATEST_S
from bridge.safe_cycle.decider import Decider
from bridge.units import UNLIMITED_S
from tests.unit.rpc.worlds import (
    NOW_S,
    a_delta,
    a_full,
    a_hello,
    a_job,
    a_node,
    a_request,
    a_running_job,
    a_session,
    canonical,
    partitions,
    some_nodes,
)


def jobs_of(session):
    return canonical(session.snapshot()[0])["jobs"]


def running_of(session):
    return canonical(session.snapshot()[0])["running"]


# ------------------------------------------------------------------ epochs and generations


def test_a_delta_builds_on_what_is_held():
    session = a_session(a_full([a_job("1")]))
    assert session.apply(a_delta(1, jobs=[a_job("2")], now_s=NOW_S + 5))
    snapshot, _ = session.snapshot()
    assert snapshot.jobs.id.tolist() == ["1", "2"]
    assert (snapshot.generation, snapshot.now_s) == (2, NOW_S + 5)


def test_a_report_before_hello_asks_for_everything():
    session = Session()
    assert not session.apply(a_full(epoch=7))
    assert session.generation == 0


def test_a_delta_on_another_generation_asks_for_everything():
    session = a_session(a_full([a_job("1")]))
    assert not session.apply(a_delta(5, jobs=[a_job("2")]))
    assert list(jobs_of(session)) == ["1"]
    assert session.apply(a_delta(1, jobs=[a_job("2")]))  # what is held still counts


def test_a_full_report_replaces_everything():
    session = a_session(a_full([a_job("1")]), a_full([a_job("2")], generation=9))
    assert list(jobs_of(session)) == ["2"]
    assert session.generation == 9


def test_a_newer_epoch_fences_the_older():
    session = a_session(a_full(epoch=5), epoch=5)
    session.greet(a_hello(epoch=6))
    with pytest.raises(StaleSnapshot, match="epoch 5 is over"):
        session.apply(a_delta(1, epoch=5))
    with pytest.raises(StaleSnapshot):
        session.greet(a_hello(epoch=5))
    assert session.apply(a_full(epoch=6))


def test_a_hello_that_is_repeated_changes_nothing():
    session = a_session(a_full([a_job()]))
    assert not session.greet(a_hello())
    assert session.apply(a_delta(1))
    assert session.greet(a_hello(whole_cores=True))
    assert not session.apply(a_delta(2))


def test_words_of_a_hello_are_bounded():
    session = Session()
    hello = a_hello(features=["x" * 1000] * 1000)
    hello.controller = "a\nb" * 100_000
    session.greet(hello)
    assert session.hello.ByteSize() < 50_000
    assert session.hello.controller.isprintable()


def test_another_wire_version_is_refused():
    with pytest.raises(UnsupportedVersion, match="wire version 2, this service 1"):
        Session().greet(a_hello(wire_version=2))


# ------------------------------------------------------------------ contradictions


BROKEN = {
    "more licences than anybody has": {
        "licences": pb.Licences(items=[pb.Licence(name=f"l{at}") for at in range(10_001)])
    },
    "time before time": {"now_s": -1},
    "time beyond time": {"now_s": 1 << 50},
    "more partitions than anybody has": {
        "partitions": pb.Partitions(items=[pb.Partition(name=f"p{at}") for at in range(10_001)])
    },
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_contradiction_asks_for_everything_once_then_says_so(broken):
    session = a_session(a_full([a_job("1"), a_running_job("2", "n3")]))
    assert not session.apply(a_delta(1, **broken))
    assert session.generation == 0
    assert session.full_requests == 1
    with pytest.raises(SnapshotError):
        session.apply(a_full(**broken))
    assert session.generation == 0
    assert session.apply(a_full([a_job("1")]))  # and is forgiven
    assert list(jobs_of(session)) == ["1"]


ODD = {
    "more CPUs than there are": (
        {"jobs": [a_running_job("9", "n3")]}, "jobs hold 8 of 4 cpus there",
    ),
    "a node that shrank": ({"nodes": [a_node("n3", cpus=2)]}, "jobs hold 4 of 2 cpus there"),
    "more memory": ({"jobs": [a_running_job("9", "n2", memory_mib=1001)]}, "1001 of 1000 mem_mib"),
    "two exclusive jobs": (
        {"jobs": [a_running_job(name, "n2", cpus=1, exclusive=True) for name in ("8", "9")]},
        "2 exclusive jobs hold it",
    ),
    "start in the future": (
        {"jobs": [a_running_job("9", "n2", start_s=NOW_S + 90, end_s=NOW_S + 150)]},
        r"jobs\[9\].allocation.start_s is in the future",
    ),
    "end before start": (
        {"jobs": [a_running_job("9", "n2", start_s=NOW_S - 10, end_s=NOW_S - 20)]},
        r"jobs\[9\].allocation.end_s is before its start",
    ),
    "unknown partition": (
        {"jobs": [a_running_job("9", "n2", partition="gone")]},
        r"jobs\[9\].allocation.partition is unknown",
    ),
    "node without CPUs": ({"nodes": [a_node("n9", cpus=0)]}, None),
    "partition of unknown nodes": (
        {"partitions": partitions("n[0-9]")}, "more nodes than this cluster has",
    ),
    "reservation that ends first": (
        {"reservations": pb.Reservations(items=[pb.Reservation(name="r", start_s=5, end_s=5)])},
        r"reservations\[r\].end_s is not after its start",
    ),
    "reservation of unknown nodes": (
        {
            "reservations": pb.Reservations(
                items=[pb.Reservation(name="r", start_s=5, end_s=6, nodes="n99,n1")]
            )
        },
        "no node 'n99'",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("odd", "says"), ODD.values(), ids=ODD)
def test_what_is_odd_is_asked_for_once_and_then_planned_with(odd, says, caplog):
    """Every preset plans the rest: one odd thing stops nobody."""
    base = {"jobs": [a_job("1"), a_running_job("2", "n3")], "nodes": some_nodes()}
    session = a_session(a_full(base["jobs"], base["nodes"]))
    caplog.clear()
    assert session.apply(a_delta(1, **odd)) == (says is None)
    if says is not None:
        assert re.search(f"requesting a full report: .*{says}", caplog.text)
    nodes = {node.name: node for node in (*base["nodes"], *odd.get("nodes", ()))}
    whole = odd | {"jobs": base["jobs"] + odd.get("jobs", []), "nodes": list(nodes.values())}
    assert session.apply(a_full(generation=2, **whole))
    # It is known from now on.
    assert session.apply(a_delta(2, now_s=NOW_S + 1000, nodes=[a_node("n0", state="NEW")]))
    assert session.full_requests == (says is not None)
    snapshot = session.snapshot()[0]
    assert (snapshot.running.start_s <= snapshot.now_s).all()
    for preset in ("slurm-like", "easy", "conservative", "openccs"):
        decider = Decider(build(PRESETS[preset]))
        plan = decider.decide(snapshot)
        assert decider.failures == 0
        assert plan.start_s[0] == snapshot.now_s


def test_time_runs_back_a_little_and_nobody_wonders():
    session = a_session(a_full([a_job()]))
    assert session.apply(a_delta(1, now_s=NOW_S - 60))
    assert session.snapshot()[0].now_s == NOW_S - 60


def test_time_that_runs_back_is_begun_anew(caplog):
    session = a_session(a_full([a_job()]))
    session.refuse("1", 1, "no", NOW_S)
    assert not session.apply(a_delta(1, now_s=NOW_S - 3600))
    assert f"now_s: runs back from {NOW_S} to {NOW_S - 3600}" in caplog.text
    assert session.apply(a_full([a_job()], now_s=NOW_S - 3600))
    assert hold_of(session)[0] == Hold.NONE
    assert session.apply(a_delta(1, now_s=NOW_S - 3500))


def test_time_never_leaps_by_centuries():
    session = a_session(a_full([a_job()]))
    far = NOW_S + 200 * 365 * 86_400
    assert not session.apply(a_delta(1, now_s=far))
    with pytest.raises(SnapshotError, match="now_s: jumps from"):
        session.apply(a_full(now_s=far))
    session.greet(a_hello())  # says nothing new
    with pytest.raises(SnapshotError):
        session.apply(a_full(now_s=far))
    assert session.apply(a_full())
    session.greet(a_hello(epoch=2))
    assert session.apply(a_full(epoch=2, now_s=far))


def test_a_clock_that_was_wrong_once_locks_nobody_out(caplog):
    session = a_session(a_full([a_job()], now_s=10 * NOW_S + 2 * LEAP_S))
    assert not session.apply(a_full(generation=2, now_s=NOW_S))
    for generation, at_s in enumerate(range(NOW_S + 10, NOW_S + STAYS_S, 10), 3):
        with pytest.raises(SnapshotError, match="now_s: jumps from"):
            session.apply(a_full(generation=generation, now_s=at_s))
    assert session.apply(a_full([a_job()], generation=20, now_s=NOW_S + STAYS_S))
    assert "the controller's clock stays" in caplog.text
    assert session.apply(a_delta(20, now_s=NOW_S + STAYS_S + 10))


def test_a_clock_that_leaps_to_and_fro_is_never_trusted():
    session = a_session(a_full())
    session.apply(a_full(generation=2, now_s=NOW_S + LEAP_S))
    for generation in range(3, 12):
        at_s = NOW_S + (1 + generation % 2) * LEAP_S + generation * STAYS_S
        with pytest.raises(SnapshotError, match="now_s: jumps from"):
            session.apply(a_full(generation=generation, now_s=at_s))
    assert session.apply(a_full(generation=20, now_s=NOW_S + 60))


FAR = 1 << 62


@pytest.mark.parametrize(
    ("said", "column", "value"),
    [
        ({"submit_s": -1}, "submit_s", 0),
        ({"begin_s": FAR}, "begin_s", LATEST_S - 1),
        ({"begin_s": -FAR}, "begin_s", 0),
        ({"eligible_s": FAR}, "eligible_s", LATEST_S - 1),
        ({"deadline_s": FAR}, "deadline_s", LATEST_S - 1),
        ({"deadline_s": -1}, "deadline_s", 1),
        ({"time_limit_s": -1}, "time_limit_s", 0),
        ({"time_limit_s": FAR}, "time_limit_s", UNLIMITED_S),
        ({"least_time_s": -1}, "least_time_s", 0),
        ({"least_time_s": FAR}, "least_time_s", UNLIMITED_S),
    ],
)
def test_times_of_users_are_brought_within_bounds(said, column, value):
    session = a_session(a_full([a_job("1", **said), a_job("2")]))
    assert getattr(session.snapshot()[0].jobs, column)[0] == value


def test_a_first_contradiction_in_a_full_report_is_asked_again():
    session = a_session()
    bad = a_full([a_job("9")], now_s=-1)
    assert not session.apply(bad)
    with pytest.raises(SnapshotError, match="not a time"):
        session.apply(bad)


def test_generations_must_grow():
    session = a_session(a_full(generation=4))
    assert not session.apply(a_delta(4, generation=4))


# ------------------------------------------------------------------ one bad job


def test_a_bad_request_holds_that_job_only():
    session = a_session(
        a_full([a_job("1", request=a_request(min_nodes=5, max_nodes=2)), a_job("2")])
    )
    jobs = jobs_of(session)
    assert jobs["1"]["hold"] == Hold.BAD_REQUEST
    assert jobs["1"]["hold_text"] == "asks for at least 5 and at most 2 nodes"
    assert jobs["2"]["hold"] == Hold.NONE


def test_the_controllers_own_hold_stays():
    bad = a_request(partitions=["x"])
    session = a_session(a_full([a_job("1", request=bad, hold=pb.HOLD_HELD, hold_text="by root")]))
    job = jobs_of(session)["1"]
    assert (job["hold"], job["hold_text"]) == (Hold.HELD, "by root")


def test_a_bad_request_becomes_good_when_the_cluster_changes():
    session = a_session(a_full([a_job("1", request=a_request(partitions=["new"]))]))
    assert jobs_of(session)["1"]["hold"] == Hold.BAD_REQUEST
    new = pb.Partitions(items=[pb.Partition(name="new", nodes="n[0-3]", up=True)])
    assert session.apply(a_delta(1, partitions=new))
    job = jobs_of(session)["1"]
    assert (job["hold"], job["hold_text"], job["partitions"]) == (Hold.NONE, "", (0,))


def test_words_of_users_are_made_harmless():
    session = a_session(a_full([a_job("1", name="x\x1b[2J" + "y" * 5000, user="é")]))
    job = jobs_of(session)["1"]
    assert job["name"].isprintable()
    assert len(job["name"]) <= 200
    assert job["user"] == "é"


# ------------------------------------------------------------------ lives of jobs


def test_pending_running_completing_gone():
    session = a_session(a_full([a_job("1")]))
    assert session.apply(a_delta(1, jobs=[a_running_job("1", "n[0-1]")]))
    assert jobs_of(session) == {}
    assert running_of(session)["1"]["nodes"] == [0, 1]
    assert session.started == [("1", NOW_S - 100, "batch")]
    assert session.gone == []
    completing = a_running_job("1", "n1", end_s=0, state=pb.JOB_STATE_COMPLETING)
    assert session.apply(a_delta(2, jobs=[completing]))
    assert session.started == []
    assert running_of(session)["1"]["nodes"] == [1]
    assert running_of(session)["1"]["end_s"] == 0
    assert session.apply(a_delta(3, removed_jobs=["1"]))
    assert running_of(session) == {}


def test_running_jobs_keep_their_account():
    held = a_running_job("1", "n0")
    held.account = "physics"
    session = a_session(a_full([held, a_running_job("2", "n1")]))
    assert session.snapshot()[0].running.account.tolist() == ["physics", ""]
    assert session.apply(a_delta(1, removed_jobs=["1"]))
    assert session.snapshot()[0].running.account.tolist() == [""]


def test_a_job_that_ran_between_two_reports_has_started():
    session = a_session(a_full([a_job("1")]))
    brief = a_running_job("1", "n1", state=pb.JOB_STATE_COMPLETING)
    assert session.apply(a_delta(1, jobs=[brief]))
    assert session.started == [("1", NOW_S - 100, "batch")]
    assert session.gone == []


def test_waiting_jobs_that_are_removed_are_gone():
    session = a_session(a_full([a_job("1"), a_job("2"), a_running_job("3", "n0")]))
    assert session.whole
    assert session.apply(a_delta(1, removed_jobs=["2", "3", "never-heard-of"]))
    assert (session.gone, session.whole) == (["2"], False)
    assert session.apply(a_delta(2))
    assert session.gone == []


def test_a_requeued_job_waits_again():
    session = a_session(a_full([a_running_job("1", "n0")]))
    assert session.apply(a_delta(1, jobs=[a_job("1", version=2)]))
    assert running_of(session) == {}
    assert jobs_of(session)["1"]["version"] == 2


def test_a_running_job_without_a_limit_ends_some_day():
    session = a_session(a_full([a_running_job("1", "n0", end_s=0)]))
    assert NOW_S < running_of(session)["1"]["end_s"] < NOW_S + 2 * 366 * 86_400


def test_an_unknown_job_may_be_removed():
    assert a_session(a_full()).apply(a_delta(1, removed_jobs=["77"]))


def test_versions_keep_all_their_bits():
    session = a_session(a_full([a_job("1", version=2**64 - 1)]))
    assert jobs_of(session)["1"]["version"] == 2**64 - 1


def test_a_use_of_no_node_holds_nothing():
    job = a_running_job("1", "n0")
    job.allocation.uses[0].nodes = ""
    assert running_of(a_session(a_full([job])))["1"]["nodes"] == []


def test_uses_of_one_job_may_differ_by_node():
    job = pb.Job(
        id="1", version=1, state=pb.JOB_STATE_RUNNING,
        allocation=pb.Allocation(
            start_s=1, end_s=9, partition="batch",
            uses=[pb.NodeUse(nodes="n2", cpus=1), pb.NodeUse(nodes="n[0,3]", cpus=3)],
        ),
    )  # fmt: skip
    found = running_of(a_session(a_full([job])))["1"]
    assert found["nodes"] == [0, 2, 3]
    assert [use[0] for use in found["use"]] == [3, 1, 3]


# ------------------------------------------------------------------ nodes


def test_a_new_kind_of_device_widens_the_vectors():
    gpu = a_request(gres_per_node=[pb.Gres(name="gpu", count=2)])
    session = a_session(a_full([a_job("1", request=gpu), a_running_job("2", "n1")]))
    assert jobs_of(session)["1"]["hold"] == Hold.BAD_REQUEST
    node = a_node("n0", gres=[pb.Gres(name="gpu:a100", count=4)])
    assert session.apply(a_delta(1, nodes=[node]))
    snapshot, _ = session.snapshot()
    assert snapshot.resources == ("cpus", "mem_mib", "gpu", "gpu:a100")
    assert snapshot.nodes.capacity[0].tolist() == [4, 1000, 4, 4]
    assert snapshot.jobs.per_node[0].tolist() == [1, 0, 2, 0]
    assert snapshot.running.use.tolist() == [[4, 0, 0, 0]]
    assert snapshot.jobs.hold.tolist() == [Hold.NONE]


def test_what_jobs_do_not_use_up_each_of_them_may_have():
    lustre = pb.Gres(name="lustre:fast", count=4, no_consume=True)
    nodes = [a_node("n0"), a_node("n1", gres=[lustre]), a_node("n2", gres=[pb.Gres(name="lustre")])]
    holds = a_running_job("9", "n1", cpus=1)
    holds.allocation.uses[0].gres.append(pb.Gres(name="lustre:fast", count=4))
    asks = [
        a_job(str(number), request=a_request(gres_per_node=[pb.Gres(name=name, count=count)]))
        for number, (name, count) in enumerate([("lustre", 4), ("lustre:fast", 1), ("lustre", 5)])
    ]
    session = a_session(a_full([holds, *asks], nodes))
    snapshot, _ = session.snapshot()
    assert snapshot.resources == ("cpus", "mem_mib")
    assert snapshot.running.use.tolist() == [[1, 0]]
    assert [sorted(excluded) for excluded in snapshot.jobs.excluded[:2]] == [[0, 2], [0, 2]]
    assert jobs_of(session)["2"]["hold"] == Hold.BAD_REQUEST  # no node has five
    # One more node, then one less: indexes follow.
    assert session.apply(a_delta(1, nodes=[a_node("n3")]))
    rooms = partitions("n[1-3]")
    assert session.apply(a_delta(2, removed_nodes=["n0"], partitions=rooms))
    snapshot, _ = session.snapshot()
    assert sorted(snapshot.jobs.excluded[0]) == [1, 2]
    more = pb.Gres(name="lustre:fast", count=5, no_consume=True)
    assert session.apply(a_delta(3, nodes=[a_node("n3", gres=[more])]))
    snapshot, _ = session.snapshot()
    assert sorted(snapshot.jobs.excluded[0]) == [1]
    assert jobs_of(session)["2"]["hold"] == Hold.NONE


def test_nodes_leave_and_indexes_follow():
    session = a_session(
        a_full([a_running_job("2", "n[2-3]"), a_job("1", request=a_request(required_nodes="n3"))])
    )
    assert session.apply(a_delta(1, removed_nodes=["n0"], partitions=partitions("n[1-3]")))
    snapshot, _ = session.snapshot()
    assert snapshot.nodes.names == ("n1", "n2", "n3")
    assert snapshot.running.nodes.tolist() == [1, 2]
    assert snapshot.jobs.required[0] == (2,)
    assert snapshot.partitions[0].nodes.tolist() == [0, 1, 2]


def test_a_state_change_keeps_the_tables_of_jobs():
    session = a_session(a_full([a_job("1"), a_running_job("2", "n1")]))
    before, _ = session.snapshot()
    assert session.apply(a_delta(1, nodes=[a_node("n0", usable=False, state="DOWN")]))
    after, _ = session.snapshot()
    assert after.nodes.usable.tolist() == [False, True, True, True]
    assert before.nodes.usable.tolist() == [True] * 4  # what was handed out stays
    assert after.jobs is before.jobs
    assert after.running is before.running


def test_hyper_threads_round_where_cores_are_whole():
    nodes = some_nodes(threads_per_core=2)
    job = a_job("1", request=a_request(min_nodes=1, max_nodes=1, tasks=3))
    whole = a_session(a_full([job], nodes=nodes), whole_cores=True)
    assert jobs_of(whole)["1"]["per_node"][0] == 4
    assert jobs_of(a_session(a_full([job], nodes=nodes)))["1"]["per_node"][0] == 3


def test_memory_of_running_jobs_counts_only_where_it_is_consumed():
    request = a_full([a_running_job("1", "n0", memory_mib=500)])
    assert running_of(a_session(request))["1"]["use"] == [[4, 500]]
    assert running_of(a_session(request, memory_consumable=False))["1"]["use"] == [[4, 0]]


def test_licences_and_reservations():
    wants = a_request(reservation="r", licences=[pb.LicenceUse(name="l", count=2)])
    session = a_session(
        a_full(
            [a_job("1", request=wants)],
            licences=pb.Licences(items=[pb.Licence(name="l", total=5, used_elsewhere=2)]),
            reservations=pb.Reservations(
                items=[
                    pb.Reservation(
                        name="r", start_s=5, end_s=9, nodes="n1",
                        licences=[pb.LicenceUse(name="l", count=1)],
                    )
                ]
            ),
        )
    )  # fmt: skip
    snapshot, _ = session.snapshot()
    assert (snapshot.licences, snapshot.licence_total.tolist()) == (("l",), [3])
    assert snapshot.reservations[0].nodes.tolist() == [1]
    assert snapshot.reservations[0].licences.tolist() == [1]
    assert snapshot.jobs.reservation.tolist() == [0]
    assert snapshot.jobs.licences.tolist() == [[2]]


# ------------------------------------------------------------------ refusals


def hold_of(session, job_id="1"):
    job = jobs_of(session)[job_id]
    return Hold(job["hold"]), job["hold_text"]


def test_a_refused_start_holds_the_job_until_something_changes():
    session = a_session(a_full([a_job("1"), a_running_job("2", "n1")]))
    session.refuse("1", 1, "node is on fire", NOW_S)
    assert session.apply(a_delta(1))
    assert hold_of(session) == (Hold.REFUSED, "node is on fire")
    assert session.apply(a_delta(2, removed_jobs=["2"]))
    assert hold_of(session) == (Hold.NONE, "")


@pytest.mark.parametrize(
    "change",
    [
        {"jobs": [a_job("1", version=2)]},
        {"nodes": [a_node("n0", state="IDLE")]},
        {"now_s": NOW_S + 30},
        {"jobs": [a_running_job("2", "n1", end_s=0, state=pb.JOB_STATE_COMPLETING)]},
    ],
    ids=["version", "node", "time", "completing"],
)
def test_what_lets_a_refused_start_be_tried_again(change):
    session = a_session(a_full([a_job("1"), a_running_job("2", "n1")]))
    session.refuse("1", 1, "no", NOW_S)
    assert session.apply(a_delta(1, **change))
    assert hold_of(session)[0] is Hold.NONE


def test_a_start_refused_again_and_again_waits_longer():
    session = a_session(a_full([a_job("1")]))
    waits = []
    for generation in range(1, 12):
        session.refuse("1", 1, "no", session.now_s)
        began, now_s = session.now_s, session.now_s
        step = 0
        while True:
            delta = a_delta(session.generation, now_s=now_s, nodes=[a_node("n0", state=f"{step}")])
            assert session.apply(delta)
            if hold_of(session)[0] is Hold.NONE:
                break
            now_s, step = now_s + 1, step + 1
        waits.append(session.now_s - began)
        del generation
    assert waits == [0, 1, 2, 4, 8, 16, 30, 30, 30, 30, 30]


def test_the_next_retry_is_known():
    session = a_session(a_full([a_job("1")]))
    assert session.next_retry_s() is None
    session.refuse("1", 1, "no", NOW_S)
    assert session.next_retry_s() == NOW_S + 30


def test_a_refusal_told_by_a_clock_that_ran_wild_holds_nobody():
    session = a_session(a_full([a_job("1")]))
    session.refuse("1", 1, "no", NOW_S + 10**9, nodes=["n0"])
    assert session.next_retry_s() is None
    assert session.apply(a_delta(1))
    assert hold_of(session) == (Hold.NONE, "")
    assert session.snapshot()[0].jobs.excluded[0] == ()


def test_a_job_held_by_its_owner_shows_that_hold():
    session = a_session(a_full([a_job("1", hold=pb.HOLD_HELD, hold_text="held")]))
    session.refuse("1", 1, "no", NOW_S)
    assert session.apply(a_delta(1))
    assert hold_of(session) == (Hold.HELD, "held")


def test_what_ended_is_told_once():
    session = a_session(a_full([a_running_job("1", "n0"), a_job("2")]))
    assert len(session.snapshot()[0].ended) == 0
    told = [
        pb.EndedJob(
            id="1", name="sim", user="bob", start_s=NOW_S - 100, end_s=NOW_S, time_limit_s=600,
            ending=pb.ENDING_TIMEOUT,
        ),
        pb.EndedJob(id="9", start_s=NOW_S, end_s=NOW_S, ending=pb.ENDING_CANCELLED),
        pb.EndedJob(id="8", start_s=5, end_s=9, time_limit_s=1 << 60, ending=77),
    ]  # fmt: skip
    assert session.apply(a_delta(1, removed_jobs=["1"], ended=told))
    ended = session.snapshot()[0].ended
    assert ended.id.tolist() == ["1", "8"]  # the second took no time at all
    assert (ended.end_s - ended.start_s).tolist() == [100, 4]
    assert ended.ending.tolist() == [Ending.TIMEOUT, Ending.UNKNOWN]
    assert ended.time_limit_s.tolist() == [600, UNLIMITED_S]
    assert (ended.user[0], ended.name[0]) == ("bob", "sim")
    assert session.apply(a_delta(2))
    assert len(session.snapshot()[0].ended) == 0


def test_nodes_that_were_busy_a_moment_ago_are_awaited_for_a_while():
    refusals = Refusals(30)

    def busy(now_s):
        refusals.add("1", 1, "", changes=0, now_s=now_s, busy=True)

    assert not refusals.nodes_awaited(100)
    busy(100)
    assert refusals.nodes_awaited(103)
    assert not refusals.nodes_awaited(104)
    for now_s in range(100, 140, 2):
        busy(now_s)
    assert not refusals.nodes_awaited(138)  # it does not get them: it is no reason any more
    busy(150)
    assert refusals.nodes_awaited(151)
    refusals.add("1", 1, "", changes=0, now_s=152)
    assert not refusals.nodes_awaited(152)
