# SPDX-License-Identifier: Apache-2.0
"""Guests on the wire: reported, started, put back into the queue."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from bridge.extensions.sharing.counting import counted_once
from bridge.extensions.sharing.longer_limits import Extensions
from bridge.extensions.sharing.part import having_shared, requeues, shared_of
from bridge.extensions.sharing.requests import EXTEND_AGAIN_S, REQUEUE_AGAIN_S
from bridge.extensions.sharing.rules import Coschedule
from bridge.model.job_columns import objects
from bridge.model.plan import Plan
from bridge.registry import build, parse_policy
from bridge.rpc.clients.decisions_in_force import DecisionsInForce
from bridge.rpc.controller.announcements import Announcements
from bridge.rpc.controller.progress import ProgressMessages
from bridge.rpc.encode import Messages
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.extension_wire import ExtensionRequests, sentences
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.rpc.reported.session import Session
from schedbridge_contracts.builders import a_job, a_partition, a_running_job, a_snapshot
from schedbridge_contracts.cycles import Memory, run
from tests.unit.rpc.worlds import a_hello

SHARE = ("share",)
BY_USER = {"coschedule": Coschedule.GUEST, "max_slowdown_permille": 50, "requeue": True}


def a_world(now_s=10, guest_end_s=60, jobs=(), host_id="h"):
    return a_snapshot(
        nodes=3, now_s=now_s, jobs=jobs,
        partitions=[a_partition(nodes=range(3), shared=True)],
        running=[
            a_running_job((0, 1), 100, shared=True, cpus=4, mem_mib=100, id="h", start_s=1),
            a_running_job((0, 1), guest_end_s, shared=True, cpus=2, mem_mib=10, id="g",
                          host_id=host_id, version=7, start_s=1, **BY_USER),
        ],
    )()  # fmt: skip


def through_the_wire(snapshot, features):
    messages = Messages(snapshot)
    session = Session()
    session.greet(a_hello(features=features))
    request = pb.CycleRequest(
        epoch=1, generation=1, now_s=snapshot.now_s,
        nodes=[messages.node(snapshot.nodes, row) for row in range(3)],
        jobs=[
            *(messages.pending(snapshot, row) for row in range(len(snapshot.jobs))),
            *(messages.running(snapshot, row) for row in range(len(snapshot.running))),
        ],
        partitions=messages.partitions(snapshot),
    )  # fmt: skip
    assert session.apply(pb.CycleRequest.FromString(request.SerializeToString()))
    return session.snapshot()[0]


@pytest.mark.parametrize("guest_end_s", [60, 300])
def test_a_guest_arrives_as_it_was_and_its_cpus_are_counted_once(guest_end_s):
    world = a_world(guest_end_s=guest_end_s, jobs=[a_job(id="9", cpus=4, **BY_USER)])
    world = world.with_running(counted_once(world.running))
    found = through_the_wire(world, SHARE)
    assert found.running.host_id.tolist() == ["", "h"]
    assert found.running.use.tolist() == [[*row[:2], 0] for row in world.running.use.tolist()]
    assert found.running.own_cpus.tolist() == [0, 2]
    for table, row in ((found.jobs, 0), (found.running, 1)):
        assert table.coschedule[row] == Coschedule.GUEST
        assert table.max_slowdown_permille[row] == 50
        assert table.requeue[row]
    assert found.partitions[0].shared


def test_a_controller_without_the_feature_has_no_guests():
    found = through_the_wire(a_world(), ())
    assert not found.running.host_id.any()
    assert found.running.use[:, 0].tolist() == [4, 4, 2, 2]
    assert not found.partitions[0].shared


def test_a_limit_counts_as_extendable_only_for_a_controller_with_the_feature():
    world = a_world()
    world = world.with_running(world.running.with_columns(extendable=np.array([True, False])))
    for features, hosts, extendable in (
        (SHARE, ["", "h"], [False, False]), ((*SHARE, "extend"), ["", "h"], [True, False]),
        (("extend",), ["", ""], [True, False]),
    ):  # fmt: skip
        found = through_the_wire(world, features).running
        assert found.host_id.tolist() == hosts
        assert found.extendable.tolist() == extendable


@pytest.mark.parametrize("completing", [("h",), ("g",), ("h", "g")], ids="-".join)
def test_a_pair_of_which_one_is_completing_holds_each_cpu_once(completing, caplog):
    """The controller then names no host any more, and both jobs hold their CPUs."""
    world = a_world(guest_end_s=300, host_id="")
    messages = Messages(world)
    jobs = [messages.running(world, row) for row in range(2)]
    for job in jobs:
        if job.id in completing:
            job.state, job.allocation.end_s = pb.JOB_STATE_COMPLETING, 0
    session = Session()
    session.greet(a_hello(features=SHARE))
    request = pb.CycleRequest(
        epoch=1, generation=1, now_s=10, jobs=jobs, partitions=messages.partitions(world),
        nodes=[messages.node(world.nodes, row) for row in range(3)],
    )  # fmt: skip
    assert session.apply(request)
    found = session.snapshot()[0].running
    used = {job_id: found.use[2 * row : 2 * row + 2, 0] for row, job_id in enumerate(found.id)}
    assert (used["h"] + used["g"]).tolist() == [4, 4]
    for job_id, cpus in (("h", 4), ("g", 2)):
        if job_id not in completing:  # a running job keeps all that it holds
            assert used[job_id].tolist() == [cpus, cpus]
    assert "jobs hold" not in caplog.text


def test_an_unknown_consent_is_none():
    message = Messages(a_world()).running(a_world(), 1)
    for odd in (5, 99, -3):
        message.coschedule = odd
        session = Session()
        session.greet(a_hello(features=SHARE))
        nodes = [Messages(a_world()).node(a_world().nodes, row) for row in range(3)]
        session.apply(pb.CycleRequest(epoch=1, generation=1, now_s=10, nodes=nodes, jobs=[message]))
        found = session.snapshot()[0].running.coschedule.tolist()
        assert found[0] in (Coschedule.NEVER, -1)


def a_guest_start(world: object) -> Plan:
    plan = run(world, Memory(), build(parse_policy("easy")))
    plan = replace(
        plan, start_s=np.array([world.now_s]), end_s=np.array([world.now_s + 100]),
        partition=np.zeros(1, np.int32), indptr=np.array([0, 2]), nodes=np.array([0, 1], np.int32),
        tasks=np.zeros(2, np.int32), reasons=(None,),
    )  # fmt: skip
    return having_shared(plan, host_id=objects(["h"]))


def test_a_start_names_its_host():
    world = a_world(jobs=[a_job(2, id="9", cpus=2, shared=True)])
    reply = pb.CycleReply()
    Announcements().decide(
        world, np.zeros(1, np.int64), a_guest_start(world), NodeIndex(world.nodes.names), None,
        reply=reply,
    )  # fmt: skip
    (message,) = reply.decisions
    assert message.start.host_job_id == "h"
    assert message.start.nodes == "n[1-2]"


class Link:
    """What is sent to a controller when the guest is to be put back into the queue."""

    def __init__(self):
        numbers = count(1)
        self.progress = ProgressMessages(lambda: next(numbers))
        self.extensions = ExtensionRequests(lambda: next(numbers))

    def cycle(self, now_s, features=("share",), host_id="h"):
        world = a_world(now_s=now_s, host_id=host_id)
        world = world.with_running(counted_once(world.running))
        plan = run(world, Memory(), build(parse_policy("easy")))
        plan = having_shared(plan, requeues=requeues([("g", "slows its host down")]))
        return self.sent(world, plan, frozenset(features))

    def sent(self, shown, plan, features):
        told = self.progress.decide(shown, sentences(shown)) if "progress" in features else []
        return told + self.extensions.decide(shown, plan, NodeIndex(shown.nodes.names), features)

    def close(self, number, outcome):
        return self.extensions.close(pb.Fate(decision_id=number, outcome=outcome), 11)


def test_a_guest_is_put_back_once_until_the_controller_refuses():
    link = Link()
    (message,) = link.cycle(10)
    assert (message.job_id, message.job_version) == ("g", 7)
    assert message.requeue.reason == "slows its host down"
    assert link.cycle(11) == []
    assert link.close(message.id, pb.OUTCOME_APPLIED)
    assert link.cycle(12) == []
    assert len(link.cycle(10 + REQUEUE_AGAIN_S)) == 1


def test_a_refused_requeue_is_tried_again():
    link = Link()
    (message,) = link.cycle(10)
    assert link.close(message.id, pb.OUTCOME_REFUSED)
    assert len(link.cycle(11)) == 1


def test_a_controller_without_the_feature_is_asked_for_nothing():
    messages = Link().cycle(10, features=("quota", "resize"))
    assert [message.WhichOneof("action") for message in messages] == ["quota"]


def test_a_simulated_controller_reads_guests_quotas_and_requeues():
    world = a_world(jobs=[a_job(2, id="9", cpus=2, shared=True)])
    nodes = NodeIndex(world.nodes.names)
    decisions = DecisionsInForce()
    decisions.take(
        [
            pb.Decision(id=1, job_id="9", start=pb.Start(
                nodes="n[1-2]", partition="batch", host_job_id="h")),
            pb.Decision(id=2, job_id="g", quota=pb.Quota(milli_cpus_per_node=500, weight=1)),
            pb.Decision(id=3, job_id="g", requeue=pb.Requeue(reason="too slow")),
        ],
        nodes, world.licences,
    )  # fmt: skip
    plan = decisions.plan(world)
    part = shared_of(plan)
    assert [part.host_of(row) for row in range(len(plan))] == ["h"]
    assert (part.quotas.id.tolist(), part.quotas.milli_cpus_per_node.tolist()) == (["g"], [500])
    assert (part.requeues.id.tolist(), part.requeues.reasons) == (["g"], ("too slow",))
    assert {fate.decision_id for fate in decisions.results(world)} == {1, 2, 3}
    assert not decisions.results(world)
    again = decisions.plan(world)
    assert shared_of(again).quotas.id.tolist() == ["g"]
    assert not len(shared_of(again).requeues)
    decisions.take(
        [pb.Decision(id=4, job_id="g", quota=pb.Quota(weight=100))], nodes, world.licences
    )
    assert not len(shared_of(decisions.plan(world)).quotas)


class ExtendingLink(Link):
    """What is sent to a controller when the host's time limit is to be longer."""

    def cycle(self, now_s, total_s=90, features=("extend",), extended_s=0):
        world = a_world(now_s=now_s)
        world = world.with_running(world.running.with_columns(extended_s=np.array([extended_s, 0])))
        plan = run(world, Memory(), build(parse_policy("easy")))
        owed = {"h": total_s, "gone": 60} if total_s else {}
        plan = having_shared(plan, extensions=Extensions.of(owed))
        return self.sent(world, plan, frozenset(features))


def test_an_extension_is_sent_once_and_again_if_the_report_does_not_show_it():
    link = ExtendingLink()
    (message,) = link.cycle(10)
    assert (message.job_id, message.extend.total_s) == ("h", 90)
    assert link.cycle(12) == []
    assert link.cycle(14, total_s=119) == []  # the same whole minutes
    (more,) = link.cycle(16, total_s=121)
    assert more.extend.total_s == 121
    (again,) = link.cycle(16 + EXTEND_AGAIN_S, total_s=121)
    assert again.extend.total_s == 121
    assert link.cycle(90, total_s=0) == []
    assert len(link.cycle(91)) == 1
    link.extensions.reset()
    assert len(link.cycle(92)) == 1


def test_a_controller_without_the_feature_is_asked_for_no_extension():
    found = ExtendingLink().cycle(10, features=("share", "quota"))
    assert [message.WhichOneof("action") for message in found] == ["quota"]


def test_the_user_of_a_host_sees_why_its_limit_is_longer():
    found = ExtendingLink().cycle(10, features=("progress",), extended_s=120, total_s=0)
    texts = {one.job_id: one.progress.text for one in found}
    assert texts["h"] == "time limit 2 min longer: shares its nodes with a guest, job g"


@pytest.mark.parametrize(("features", "kept"), [(("share", "extend"), True), (SHARE, False)])
def test_what_a_host_had_of_guests_arrives(features, kept):
    world = a_world()
    columns = {"hosted_s": 5, "hosted_since_s": 7, "extended_s": 60, "extendable": True}
    world = world.with_running(
        world.running.with_columns(**{name: np.array([each, 0]) for name, each in columns.items()})
    )
    found = through_the_wire(world, features).running
    assert found.extendable.tolist() == [kept, False]
    assert [found.hosted_s[0], found.hosted_since_s[0], found.extended_s[0]] == [5, 7, 60]


def test_a_simulated_controller_reads_extensions_once():
    world, decisions = a_world(), DecisionsInForce()
    decision = pb.Decision(id=1, job_id="h", extend=pb.Extend(total_s=61))
    decisions.take([decision], NodeIndex(world.nodes.names), world.licences)
    longer = shared_of(decisions.plan(world)).extensions
    assert (longer.id.tolist(), longer.total_s.tolist()) == (["h"], [61])
    assert not len(shared_of(decisions.plan(world)).extensions)
    assert [fate.decision_id for fate in decisions.results(world)] == [1]
