# SPDX-License-Identifier: Apache-2.0
"""Resizes and quotas on their way to a controller."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from bridge.extensions.elastic.resizing.adjustments import Adjustments
from bridge.extensions.elastic.resizing.launchers import Willing
from bridge.extensions.elastic.resizing.runtime import Runtime
from bridge.extensions.elastic.resizing.states import Deadlines
from bridge.extensions.sharing.part import having_shared
from bridge.extensions.sharing.quotas import Quotas
from bridge.model.decisions.resizes import NO_RESIZES, Resizes
from bridge.model.rules.site import NO_RULES
from bridge.registry import build, parse_policy
from bridge.rpc.controller.progress import ProgressMessages
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.extension_wire import ExtensionRequests, sentences
from bridge.rpc.reported.hostlist import NodeIndex
from schedbridge_contracts.builders import a_running_job, a_snapshot
from schedbridge_contracts.cycles import Memory, run

WAITS = Deadlines()
BOTH = frozenset({"resize", "quota"})


def a_world(nodes=(1, 2, 3), now_s=10, version=7):
    return a_snapshot(
        nodes=6, now_s=now_s,
        running=[a_running_job(nodes, id="m", min_nodes=1, max_nodes=6, version=version,
                               end_s=1000)],
    )()  # fmt: skip


def to(*nodes, by_s=20):
    return Resizes.of([(0, by_s, np.array(nodes, np.int32), "a job waits for its nodes")])


class Link:
    """Adjustments and the cycle around them."""

    def __init__(self):
        numbers, self.awaited = count(1), False
        runtime = Runtime(Willing(), lambda job: f"{job}-{next(numbers)}")
        self.adjustments = Adjustments(lambda: next(numbers), runtime)
        self.progress = ProgressMessages(lambda: next(numbers))
        self.extensions = ExtensionRequests(lambda: next(numbers))

    def cycle(self, world, resizes=NO_RESIZES, quotas=None, features=BOTH):
        shown = self.adjustments.overlay(world, nodes_awaited=self.awaited)
        plan = replace(run(world, Memory(), build(parse_policy("easy"))), resizes=resizes)
        if quotas is not None:
            ids, milli = list(quotas), list(quotas.values())
            quotas = Quotas(np.array(ids, dtype=object), np.array(milli), np.full(len(ids), 100))
            plan = having_shared(plan, quotas=quotas)
        nodes = NodeIndex(world.nodes.names)
        changes = []
        if "resize" in features:
            changes += self.adjustments.decide(shown, plan, NO_RULES, nodes)
        if "progress" in features:
            told = sentences(shown) | self.adjustments.sentences()
            changes += self.progress.decide(shown, told)
        return shown, [*changes, *self.extensions.decide(shown, plan, nodes, features)]

    def close(self, number, outcome, now_s=11):
        return self.adjustments.close(pb.Fate(decision_id=number, outcome=outcome), now_s)


def test_a_resize_is_sent_with_nodes_version_time_and_reason():
    _, (message,) = Link().cycle(a_world(), to(1, 2))
    assert (message.job_id, message.job_version) == ("m", 7)
    assert message.resize == pb.Resize(
        nodes="n[2-3]", by_s=20, reason="a job waits for its nodes", end_s=1495
    )


def test_a_shrinking_job_is_shown_with_what_it_keeps_and_what_it_gives_back():
    link = Link()
    link.cycle(a_world(), to(1, 2))
    shown, _ = link.cycle(a_world(now_s=12))
    running = shown.running
    assert running.id.tolist() == ["m", "m"]
    assert running.adapting.tolist()[0]
    assert running.releasing.tolist() == [False, True]
    assert running.nodes.tolist() == [1, 2, 3]
    assert running.end_s.tolist() == [1000, 20]


def test_starts_are_planned_around_the_end_at_the_new_width_while_it_is_under_way():
    link = Link()
    link.cycle(a_world(), replace(to(1, 2), end_s=np.array([1500])))
    shown, _ = link.cycle(a_world(now_s=12))
    assert shown.running.end_s.tolist() == [1500, 20]


def test_a_growing_job_is_shown_with_what_it_will_have():
    link = Link()
    link.cycle(a_world(), to(1, 2, 3, 4))
    shown, _ = link.cycle(a_world(now_s=12))
    assert shown.running.nodes.tolist() == [1, 2, 3, 4]
    assert shown.running.adapting.all()


def test_it_is_over_when_the_job_holds_these_nodes():
    link = Link()
    _, (message,) = link.cycle(a_world(), to(1, 2))
    assert link.close(message.id, pb.OUTCOME_APPLIED)
    shown, _ = link.cycle(a_world(nodes=(1, 2), now_s=15, version=8))
    assert not shown.running.adapting.any()
    assert len(shown.running) == 1
    _, (later,) = link.cycle(a_world(nodes=(1, 2), now_s=15, version=8), to(1, by_s=30))
    assert later.id > message.id


@pytest.mark.parametrize("refused", [True, False], ids=["refused", "late"])
def test_after_a_failure_the_job_keeps_its_nodes_for_a_while(refused):
    link, since_s = Link(), 11
    _, (message,) = link.cycle(a_world(), to(1, 2, 3, 4))
    if refused:
        assert link.close(message.id, pb.OUTCOME_REFUSED, since_s)
    else:
        since_s = 20 + WAITS.grant_s + 1
    for now_s, maximum in (
        (since_s, 0),
        (since_s + WAITS.rest_s - 1, 0),
        (since_s + WAITS.rest_s, 6),
    ):
        shown, _ = link.cycle(a_world(now_s=now_s))
        assert shown.running.max_nodes.tolist() == [maximum]
        assert shown.running.nodes.tolist() == [1, 2, 3]
        assert not shown.running.adapting.any()


def test_another_version_may_be_resized_at_once():
    link = Link()
    _, (message,) = link.cycle(a_world(), to(1, 2, 3, 4))
    link.close(message.id, pb.OUTCOME_REFUSED)
    shown, _ = link.cycle(a_world(now_s=12, version=8))
    assert shown.running.max_nodes.tolist() == [6]


def test_a_job_that_has_ended_or_lost_a_node_is_forgotten():
    link = Link()
    link.cycle(a_world(), to(1, 2))
    gone = replace(a_world(now_s=12), running=a_snapshot(nodes=6)().running)
    shown, _ = link.cycle(gone)
    assert len(shown.running) == 0
    shown, _ = link.cycle(a_world(now_s=13))
    assert not shown.running.adapting.any()


@pytest.mark.parametrize("nodes", [(), (1,)], ids=["no nodes", "nodes that are cleaned up"])
def test_a_job_in_its_last_seconds_is_left_alone(nodes):
    link = Link()
    link.cycle(a_world(), to(1, 2))
    ending = a_world(nodes=nodes, now_s=12)
    ending = replace(ending, running=replace(ending.running, end_s=np.zeros(1, np.int64)))
    shown, _ = link.cycle(ending)
    assert shown.running.nodes.tolist() == list(nodes)
    assert not shown.running.adapting.any()


def test_what_does_not_fit_a_report_is_forgotten_and_stops_nothing(monkeypatch):
    link = Link()
    link.cycle(a_world(), to(1, 2))

    def fails(*_):
        raise IndexError("planted")

    monkeypatch.setattr("bridge.extensions.elastic.resizing.runtime.overlaid", fails)
    world = a_world(now_s=12)
    assert link.adjustments.overlay(world) is world
    monkeypatch.undo()
    shown = link.adjustments.overlay(world)
    assert not shown.running.adapting.any()  # nothing is under way any more
    assert shown.running.nodes.tolist() == [1, 2, 3]


def test_results_of_others_are_left_to_them():
    link = Link()
    link.cycle(a_world(), to(1, 2))
    assert not link.close(99, pb.OUTCOME_REFUSED)


def test_quotas_are_sent_when_they_change_and_taken_back_at_the_end():
    link = Link()
    _, (message,) = link.cycle(a_world(), quotas={"m": 500})
    assert message.quota == pb.Quota(milli_cpus_per_node=500, weight=100)
    assert link.cycle(a_world(), quotas={"m": 500})[1] == []
    _, (message,) = link.cycle(a_world(), quotas={"m": 750})
    assert message.quota.milli_cpus_per_node == 750
    _, (message,) = link.cycle(a_world(), quotas={})
    assert message.quota.milli_cpus_per_node == 0
    assert link.cycle(a_world(), quotas={})[1] == []


def test_a_controller_is_asked_for_nothing_that_it_did_not_offer():
    link = Link()
    assert link.cycle(a_world(), to(1, 2), {"m": 5}, features=frozenset({"start"}))[1] == []
    assert not link.cycle(a_world(now_s=12))[0].running.adapting.any()


def test_a_new_epoch_begins_with_nothing_under_way():
    link = Link()
    link.cycle(a_world(), to(1, 2), {"m": 500})
    link.adjustments.reset()
    link.extensions.reset()
    shown, (message,) = link.cycle(a_world(now_s=12), quotas={"m": 500})
    assert not shown.running.adapting.any()
    assert message.HasField("quota")


def test_growth_onto_nodes_that_are_still_busy_is_sent_again():
    link = Link()
    _, (message,) = link.cycle(a_world(), to(1, 2, 3, 4))
    link.close(message.id, pb.OUTCOME_BUSY)
    assert link.cycle(a_world(now_s=11))[1] == []
    shown, (again,) = link.cycle(a_world(now_s=12))
    assert again.resize.nodes == message.resize.nodes
    assert shown.running.adapting.all()


def test_what_is_under_way_is_told_when_it_changes():
    link, features = Link(), BOTH | {"progress"}
    _, messages = link.cycle(a_world(), to(1, 2), features=features)
    assert messages[1].progress.text == "shrinking from 3 to 2 nodes: releasing"
    assert link.cycle(a_world(now_s=11), features=features)[1] == []
    _, (message,) = link.cycle(a_world(nodes=(1, 2), now_s=15, version=8), features=features)
    assert (message.job_version, message.progress.text) == (8, "")


def test_no_job_grows_into_nodes_that_a_waiting_job_is_about_to_get():
    link = Link()
    link.awaited = True
    assert link.cycle(a_world(), to(1, 2, 3, 4))[1] == []
    _, (message,) = link.cycle(a_world(now_s=11), to(1, 2))
    assert message.resize.nodes == "n[2-3]"


def test_an_order_of_an_operator_is_carried_out_on_a_job_that_is_held():
    link = Link()
    link.cycle(a_world())
    link.adjustments.runtime.held.add("m")
    link.adjustments.runtime.wishes["m"] = 2, True
    _, (message,) = link.cycle(a_world(now_s=11))
    assert message.resize.nodes == "n[2-3]"
    link.cycle(a_world(nodes=(1, 2), now_s=12, version=8))
    link.adjustments.runtime.wishes["m"] = 4, True
    _, (message,) = link.cycle(a_world(nodes=(1, 2), now_s=13, version=8))
    assert message.resize.nodes == "n[1-4]"


def test_a_pair_is_told_of_each_other_until_one_has_ended():
    def world(*running):
        return a_snapshot(nodes=6, now_s=10, running=running)()

    host = a_running_job((1, 2), id="h", version=7)
    guest = a_running_job((1, 2), id="g", version=8, host_id="h")
    link, features = Link(), frozenset({"progress"})
    _, messages = link.cycle(world(host, guest), features=features)
    told = {message.job_id: (message.job_version, message.progress.text) for message in messages}
    assert told == {
        "h": (7, "shares its nodes with a guest, job g"), "g": (8, "a guest on the nodes of job h"),
    }  # fmt: skip
    assert link.cycle(world(host, guest), features=features)[1] == []
    _, (message,) = link.cycle(world(host), features=features)
    assert (message.job_id, message.progress.text) == ("h", "")
