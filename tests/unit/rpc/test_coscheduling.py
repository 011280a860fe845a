# SPDX-License-Identifier: Apache-2.0
"""Operators see what was learnt of pairs, switch sharing off and on, export and import it."""

import json
from dataclasses import replace

import pytest

from bridge.errors import ConfigError, PolicyError
from bridge.planning.sharing.pair_knowledge import PAIRS
from bridge.planning.sharing.switch import NAME, off_since_s, stopped
from bridge.policies.share.pairs import Pairs
from bridge.ports import State
from bridge.registry import build, parse_policy
from bridge.rpc.controller.cycles import Published
from bridge.rpc.controller.policy_switch import PolicySwitch
from bridge.rpc.operators.coscheduling import Coscheduling
from bridge.rpc.operators.process import Answers, Desk
from bridge.rpc.pb import coscheduling_pb2 as pb
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.rpc.transport.private_channel import MessageKind
from bridge.safe_cycle.decider import Decider
from bridge.state.announced_starts import StartRecords
from bridge.state.predictor_store import fresh
from tests.sharing import SHARING, a_guest, a_host, a_world
from tests.unit.policies.test_share_pairs import Machine, harmful
from tests.unit.rpc.worlds import some_cycles

ORDER = pb.CoschedulingRequest
SPEC = parse_policy({"preset": "easy", "share": "pairs"})


@pytest.fixture
def desk():
    """A service that has learnt of one pair, whose last cycle has a guest."""
    machine = Machine(harmful).with_guest()
    machine.step(10)
    decider = Decider(build(SPEC), machine.cycles.state, site=SHARING)
    cycles = some_cycles(decider.decide, "pairs", site=SHARING)
    world = a_world([a_host(), a_guest()])
    cycles.published = Published(world, decider.decide(world), NodeIndex(world.nodes.names))
    return Coscheduling(cycles, decider, PolicySwitch(SPEC, decider))


def ask(desk, order=ORDER.SHOW, text="", user=""):
    return desk.answer(pb.CoschedulingRequest(order=order, text=text), user)


def test_pairs_guests_and_experts_are_shown(desk):
    reply = ask(desk)
    assert (reply.policy, list(reply.partitions)) == ("pairs", ["batch"])
    assert reply.off_since_s == 0
    (pair,) = reply.pairs
    assert (pair.host_user, pair.host_name, pair.guest_name) == ("user", "host", "job")
    assert pair.ceilings[-1].harm == pytest.approx(0.5, abs=0.02)
    assert pair.ceilings[-1].expected > 0.1
    assert reply.observations == 2
    (guest,) = reply.guests
    assert (guest.job_id, guest.host_job_id, guest.nodes) == ("g0", "h0", "n1")
    assert guest.quota_milli_cpus > 0
    assert sum(expert.weight for expert in reply.experts) == pytest.approx(1)


def test_users_see_pairs_with_jobs_of_their_own(desk):
    assert len(ask(desk, user="user").pairs) == 1
    assert len(ask(desk, user="eve").pairs) == 0


@pytest.mark.parametrize(("user", "count"), [("ann", 1), ("user", 1), ("eve", 0), ("", 1)])
def test_users_see_guests_of_their_own_and_of_their_hosts(desk, user, count):
    world = a_world([a_host(), a_guest(user="ann", name="secret")])
    desk.cycles.published = Published(
        world, desk.decider.decide(world), NodeIndex(world.nodes.names)
    )
    assert len(ask(desk, user=user).guests) == count


def test_off_ends_it_with_the_next_cycle_and_on_allows_it(desk):
    reply = ask(desk, ORDER.OFF)
    assert reply.off_since_s > 0
    assert not reply.off_by_policy
    plan = desk.decider.decide(a_world([a_host(), a_guest()]))
    assert plan.requeues.id.tolist() == ["g0"]
    reply = ask(desk, ORDER.ON)
    assert reply.off_since_s == 0
    assert not len(desk.decider.decide(a_world([a_host(), a_guest()])).requeues)


def test_users_that_were_stopped_are_shown_and_may_go_on(desk):
    state = desk.decider.state
    kept = stopped(state.learnt_by(NAME), ["eve", "user"], 1000)
    desk.decider.state = replace(state, learnt={**state.learnt, NAME: kept})
    assert list(ask(desk).stopped_users) == ["eve", "user"]
    assert list(ask(desk, user="user").stopped_users) == ["user"]
    plan = desk.decider.decide(a_world([a_host(), a_guest()]))
    assert "its host's user" in plan.requeues.reasons[0]
    assert not list(ask(desk, ORDER.ON).stopped_users)


def test_off_is_kept_over_a_restart(desk):
    ask(desk, ORDER.OFF)
    saved = desk.decider.state
    assert fresh(saved, State())[NAME, "off"][1] == 0
    ask(desk, ORDER.ON)
    assert fresh(desk.decider.state, saved)[NAME, "off"] is None


class Poisoned(Pairs):
    """Fails as long as anything is known of pairs."""

    def share(self, world, plan, context):
        if context.state.learnt_by(PAIRS).known:
            raise PolicyError("pairs", "cannot read what was learnt")
        return super().share(world, plan, context)


def test_off_is_kept_when_what_was_learnt_is_discarded(desk):
    ask(desk, ORDER.OFF)
    desk.decider.exchange(replace(build(SPEC), share=Poisoned()))
    desk.decider.decide(a_world([a_host(), a_guest()]))
    state = desk.decider.state
    assert PAIRS not in state.learnt or not state.learnt_by(PAIRS).known
    assert off_since_s(state) is not None


def test_an_export_can_be_imported_elsewhere(desk):
    text = ask(desk, ORDER.EXPORT).text
    (pair,) = json.loads(text)["pairs"]
    assert pair["host"] == {"user": "user", "name": "host", "nodes": 1}
    empty = Decider(build(SPEC), site=SHARING)
    other = Coscheduling(some_cycles(empty.decide, "pairs"), empty, PolicySwitch(SPEC, empty))
    assert not ask(other).pairs
    assert len(ask(other, ORDER.IMPORT, text).pairs) == 1
    assert json.loads(ask(other, ORDER.EXPORT).text) == json.loads(text)


def test_an_import_keeps_the_harm_to_users(desk):
    """It may end sharing, and says nothing of pairs: a file neither erases nor brings it."""
    before = ask(desk)
    assert before.observations > 0
    after = ask(desk, ORDER.IMPORT, ask(desk, ORDER.EXPORT).text)
    assert (after.observations, after.mean_harm) == (before.observations, before.mean_harm)
    assert ask(desk, ORDER.IMPORT, NOTHING).observations == before.observations
    assert not ask(desk).pairs


NOTHING = '{"format": "schedbridge coscheduling", "version": 1}'


@pytest.mark.parametrize("text", ["", "[", "[1]", "{a: 1}", '{"format": "x"}'])
def test_an_import_that_does_not_fit_changes_nothing(desk, text):
    before = desk.decider.state
    with pytest.raises(ConfigError):
        ask(desk, ORDER.IMPORT, text)
    assert desk.decider.state is before


def test_the_operators_process_is_answered(desk):
    answers = Answers(
        Desk(
            cycles=desk.cycles, switch=desk.switch, service="s", failures=lambda: 0,
            accuracy=StartRecords, record=lambda *_: None, metrics=lambda: b"",
            refused=lambda *_: None, coscheduling=desk,
        )
    )  # fmt: skip
    question = pb.CoschedulingRequest().SerializeToString()
    kind, parts = answers.reply(MessageKind.COSCHEDULING, [bytearray(question), bytearray()])
    assert kind == MessageKind.ANSWER
    assert len(pb.CoschedulingReply.FromString(parts[0]).pairs) == 1
    question = pb.CoschedulingRequest(order=ORDER.IMPORT, text="[").SerializeToString()
    kind, parts = answers.reply(MessageKind.COSCHEDULING, [bytearray(question), bytearray()])
    assert (kind, parts[0]) == (MessageKind.ERROR, b"INVALID_ARGUMENT")


def test_without_a_service_nothing_is_known():
    assert Coscheduling().answer(pb.CoschedulingRequest(), "") == pb.CoschedulingReply()
