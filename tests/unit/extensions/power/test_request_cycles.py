# SPDX-License-Identifier: Apache-2.0
"""What a controller is asked to power up, in whole cycles."""

from bridge.extensions.power.requests import AGAIN_S
from bridge.extensions.power.wire import POWER
from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider
from tests.unit.rpc import worlds


def wide(job_id):
    request = worlds.a_request(min_nodes=4, max_nodes=4, exclusive=True)
    return worlds.a_job(job_id, request=request)


def powered(reply):
    return [decision.power.nodes for decision in reply.decisions if decision.HasField("power")]


def test_a_node_that_was_on_in_between_is_powered_up_again_at_once():
    decide = Decider(build(PRESETS["conservative"])).decide
    hello = worlds.a_hello(features=[POWER])
    cycles = worlds.some_cycles(decide, "conservative", hello=hello)
    saving = {"power_saving": True, "resume_s": 60}
    off = worlds.a_node("n0", off=True, state="UP+POWERED_DOWN", **saving)
    on = worlds.a_node("n0", **saving)
    others = [worlds.a_node(f"n{number}", **saving) for number in (1, 2, 3)]
    reply = cycles.run(worlds.a_full([wide("1")], nodes=[off, *others]))
    assert powered(reply) == ["n0"]
    cycles.run(worlds.a_delta(1, now_s=worlds.NOW_S + 5, nodes=[on], removed_jobs=["1"]))
    reply = cycles.run(worlds.a_delta(2, now_s=worlds.NOW_S + 10, nodes=[off], jobs=[wide("2")]))
    assert powered(reply) == ["n0"]


def test_a_node_that_does_not_come_is_asked_again_after_a_while_only():
    decide = Decider(build(PRESETS["conservative"])).decide
    hello = worlds.a_hello(features=[POWER])
    cycles = worlds.some_cycles(decide, "conservative", hello=hello)
    saving = {"power_saving": True, "resume_s": 60}
    off = worlds.a_node("n0", off=True, state="UP+POWERED_DOWN", **saving)
    others = [worlds.a_node(f"n{number}", **saving) for number in (1, 2, 3)]
    assert powered(cycles.run(worlds.a_full([wide("1")], nodes=[off, *others]))) == ["n0"]
    early = worlds.a_delta(1, now_s=worlds.NOW_S + AGAIN_S - 1, jobs=[wide("2")])
    assert powered(cycles.run(early)) == []
    late = worlds.a_delta(2, now_s=worlds.NOW_S + AGAIN_S, jobs=[wide("3")])
    assert powered(cycles.run(late)) == ["n0"]
