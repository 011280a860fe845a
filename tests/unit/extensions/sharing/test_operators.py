# SPDX-License-Identifier: Apache-2.0
"""Operators see what was learnt of pairs, switch sharing off and on, export and import it."""

import asyncio
import json
from dataclasses import replace

import pytest

from bridge.errors import ConfigError, PolicyError
from bridge.extensions.sharing.methods import SharingMethods
from bridge.extensions.sharing.operators import Coscheduling
from bridge.extensions.sharing.pair_knowledge import PAIRS
from bridge.extensions.sharing.pairs import Pairs
from bridge.extensions.sharing.part import shared_of
from bridge.extensions.sharing.service_part import COSCHEDULING, EXPORTED, SHOWN, SharingPart
from bridge.extensions.sharing.switch import NAME, off_since_s, stopped
from bridge.ports import State
from bridge.registry import build, parse_policy
from bridge.rpc.controller.cycles import Published
from bridge.rpc.controller.policy_switch import PolicySwitch
from bridge.rpc.operators.extension_methods import Looking
from bridge.rpc.operators.process import Answers, ServiceFunctions
from bridge.rpc.operators.requester import Requester, change_parts, read_parts
from bridge.rpc.pb import coscheduling_pb2 as pb
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.rpc.transport.private_channel import MessageKind
from bridge.safe_cycle.decider import Decider
from bridge.service.extension_parts import ServiceContext
from bridge.state.announced_starts import StartRecords
from bridge.state.predictor_store import fresh
from schedbridge_contracts.sharing import SHARING, a_guest, a_host, a_world
from tests.unit.policies.measured_node import Machine, harmful
from tests.unit.rpc.worlds import some_cycles

ORDER = pb.CoschedulingRequest
SPEC = parse_policy({"preset": "easy", "share": "pairs"})


@pytest.fixture
def functions():
    """A service that has learnt of one pair, whose last cycle has a guest."""
    machine = Machine(harmful).with_guest()
    machine.step(10)
    decider = Decider(build(SPEC), machine.cycles.state, site=SHARING)
    cycles = some_cycles(decider.decide, "pairs", site=SHARING)
    world = a_world([a_host(), a_guest()])
    cycles.published = Published(world, decider.decide(world), NodeIndex(world.nodes.names))
    return Coscheduling(cycles, decider, PolicySwitch(SPEC, decider))


def part_of(functions):
    context = ServiceContext(
        None, lambda: functions.cycles, functions.decider, functions.switch, None, None, None, None
    )
    return SharingPart(context)


def looking(functions, who):
    """A call that changes nothing."""
    reads = part_of(functions).reads

    async def ask(name, question):
        return reads[name](question)

    return Looking(who, None, ask, None)


ROOT = Requester(0, "root", admin=True)
CHANGE = SharingMethods().changes[COSCHEDULING]


def ask(functions, order=ORDER.SHOW, text="", user=""):
    """As of an administrator, or of a user."""
    request = pb.CoschedulingRequest(order=order, text=text)
    if not CHANGE.looks(request):
        [answer] = part_of(functions).changes[COSCHEDULING](request.SerializeToString(), ROOT)
    else:
        who = Requester(1000, user, admin=False) if user else ROOT
        answer = asyncio.run(CHANGE.look(looking(functions, who), request))
    return pb.CoschedulingReply.FromString(answer)


def test_pairs_guests_and_experts_are_shown(functions):
    reply = ask(functions)
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


def test_users_see_pairs_with_jobs_of_their_own(functions):
    assert len(ask(functions, user="user").pairs) == 1
    assert len(ask(functions, user="eve").pairs) == 0


@pytest.mark.parametrize(("user", "count"), [("ann", 1), ("user", 1), ("eve", 0), ("", 1)])
def test_users_see_guests_of_their_own_and_of_their_hosts(functions, user, count):
    world = a_world([a_host(), a_guest(user="ann", name="secret")])
    functions.cycles.published = Published(
        world, functions.decider.decide(world), NodeIndex(world.nodes.names)
    )
    assert len(ask(functions, user=user).guests) == count


def test_off_ends_it_with_the_next_cycle_and_on_allows_it(functions):
    reply = ask(functions, ORDER.OFF)
    assert reply.off_since_s > 0
    assert not reply.off_by_policy
    plan = functions.decider.decide(a_world([a_host(), a_guest()]))
    assert shared_of(plan).requeues.id.tolist() == ["g0"]
    reply = ask(functions, ORDER.ON)
    assert reply.off_since_s == 0
    assert not len(shared_of(functions.decider.decide(a_world([a_host(), a_guest()]))).requeues)


def test_users_that_were_stopped_are_shown_and_may_go_on(functions):
    state = functions.decider.state
    kept = stopped(state.learnt_by(NAME), ["eve", "user"], 1000)
    functions.decider.state = replace(state, learnt={**state.learnt, NAME: kept})
    assert list(ask(functions).stopped_users) == ["eve", "user"]
    assert list(ask(functions, user="user").stopped_users) == ["user"]
    plan = functions.decider.decide(a_world([a_host(), a_guest()]))
    assert "its host's user" in shared_of(plan).requeues.reasons[0]
    assert not list(ask(functions, ORDER.ON).stopped_users)


def test_off_is_kept_over_a_restart(functions):
    ask(functions, ORDER.OFF)
    saved = functions.decider.state
    assert fresh(saved, State())[NAME, "off"][1] == 0
    ask(functions, ORDER.ON)
    assert fresh(functions.decider.state, saved)[NAME, "off"] is None


class Poisoned(Pairs):
    """Fails as long as anything is known of pairs."""

    def share(self, world, plan, context):
        if context.state.learnt_by(PAIRS).known:
            raise PolicyError("pairs", "cannot read what was learnt")
        return super().share(world, plan, context)


def test_off_is_kept_when_what_was_learnt_is_discarded(functions):
    ask(functions, ORDER.OFF)
    functions.decider.exchange(replace(build(SPEC), share=Poisoned()))
    functions.decider.decide(a_world([a_host(), a_guest()]))
    state = functions.decider.state
    assert PAIRS not in state.learnt or not state.learnt_by(PAIRS).known
    assert off_since_s(state) is not None


def test_an_export_can_be_imported_elsewhere(functions):
    text = ask(functions, ORDER.EXPORT).text
    (pair,) = json.loads(text)["pairs"]
    assert pair["host"] == {"user": "user", "name": "host", "nodes": 1}
    empty = Decider(build(SPEC), site=SHARING)
    other = Coscheduling(some_cycles(empty.decide, "pairs"), empty, PolicySwitch(SPEC, empty))
    assert not ask(other).pairs
    assert len(ask(other, ORDER.IMPORT, text).pairs) == 1
    assert json.loads(ask(other, ORDER.EXPORT).text) == json.loads(text)


def test_an_import_keeps_the_harm_to_users(functions):
    """It may end sharing, and says nothing of pairs: a file neither erases nor brings it."""
    before = ask(functions)
    assert before.observations > 0
    after = ask(functions, ORDER.IMPORT, ask(functions, ORDER.EXPORT).text)
    assert (after.observations, after.mean_harm) == (before.observations, before.mean_harm)
    assert ask(functions, ORDER.IMPORT, NOTHING).observations == before.observations
    assert not ask(functions).pairs


NOTHING = '{"format": "schedbridge coscheduling", "version": 1}'


@pytest.mark.parametrize("text", ["", "[", "[1]", "{a: 1}", '{"format": "x"}'])
def test_an_import_that_does_not_fit_changes_nothing(functions, text):
    before = functions.decider.state
    with pytest.raises(ConfigError):
        ask(functions, ORDER.IMPORT, text)
    assert functions.decider.state is before


def answers_of(functions):
    return Answers(
        ServiceFunctions(
            cycles=functions.cycles, switch=functions.switch, service="s", failures=lambda: 0,
            accuracy=StartRecords, record=lambda *_: None, metrics=lambda: b"",
            refused=lambda *_: None, parts={"sharing": part_of(functions)},
        )
    )  # fmt: skip


def reply_of(functions, parts):
    given = [bytearray(part) for part in parts]
    return answers_of(functions).reply(MessageKind.EXTENSION, given)


def test_the_operators_process_is_answered(functions):
    for parts in (read_parts("sharing", SHOWN, b"user"), read_parts("sharing", EXPORTED, b"")):
        kind, answer = reply_of(functions, parts)
        assert kind == MessageKind.ANSWER
        assert len(pb.CoschedulingReply.FromString(answer[0]).pairs) == 1
    question = pb.CoschedulingRequest(order=ORDER.IMPORT, text="[").SerializeToString()
    kind, answer = reply_of(functions, change_parts("sharing", COSCHEDULING, question, ROOT))
    assert (kind, answer[0]) == (MessageKind.ERROR, b"INVALID_ARGUMENT")


def test_a_look_changes_nothing(functions):
    """A request to change that comes as a read finds no method."""
    question = pb.CoschedulingRequest(order=ORDER.OFF).SerializeToString()
    kind, answer = reply_of(functions, read_parts("sharing", COSCHEDULING, question))
    assert (kind, answer[0]) == (MessageKind.ERROR, b"INTERNAL")
    assert off_since_s(functions.decider.state) is None


def test_users_only_see(functions):
    """And only what is shown; each other order is logged, unless it only looks."""
    orders = ORDER.Order.values()
    of_users = [order for order in orders if CHANGE.for_users(ORDER(order=order))]
    looks = [order for order in orders if CHANGE.looks(ORDER(order=order))]
    assert (of_users, looks) == ([ORDER.SHOW], [ORDER.SHOW, ORDER.EXPORT])


def test_what_was_before_a_change_is_told(functions):
    before = [asyncio.run(CHANGE.before(looking(functions, ROOT)))]
    ask(functions, ORDER.OFF)
    before.append(asyncio.run(CHANGE.before(looking(functions, ROOT))))
    assert before[0] == "on, 1 pairs learnt"
    assert before[1].startswith("off since ")
