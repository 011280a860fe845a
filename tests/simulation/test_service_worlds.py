# SPDX-License-Identifier: Apache-2.0
"""Clusters that change at random, through session, policy and announcements: all is answered."""

import random

from bridge.model.rules.site import NO_RULES
from bridge.registry import PRESETS, build
from bridge.rpc.controller.announcements import Announcements
from bridge.rpc.controller.cycles import Cycles
from bridge.rpc.reported.session import Session
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.crosses import each
from tests.unit.rpc.test_session_properties import World
from tests.unit.rpc.worlds import NOW_S, a_delta, a_hello


@each(seed=range(40))
def test_every_report_is_answered_by_the_policy_itself(seed):
    rng = random.Random(seed)
    world = World(rng)
    decider = Decider(build(PRESETS[rng.choice(list(PRESETS))]))
    cycles = Cycles(
        decider.decide,
        session=Session(),
        announcements=Announcements(),
        service="test",
        policy=lambda: "any",
        site=lambda: NO_RULES,
    )
    cycles.greet(
        a_hello(
            whole_cores=rng.random() < 0.5,
            memory_consumable=rng.random() < 0.5,
            memory_optional=rng.random() < 0.5,
        )
    )
    told = set()
    for generation in range(15):
        request = (
            a_delta(generation, now_s=NOW_S + generation, **world.step())
            if generation
            else world.full()
        )
        reply = cycles.run(request)
        if reply.need_full:  # it is odd: what a full report says is planned with
            request = world.full(now_s=NOW_S + generation, generation=generation + 1)
            reply, told = cycles.run(request), set()
        assert not reply.need_full
        told |= {decision.job_id for decision in reply.decisions}
        told -= set(request.removed_jobs)
        waiting = set(cycles.published.snapshot.jobs.id)
        assert waiting <= told, f"seed {seed}: {waiting - told} were told nothing"
    assert decider.failures == 0, f"seed {seed}"
