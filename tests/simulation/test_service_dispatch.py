# SPDX-License-Identifier: Apache-2.0
"""Policies of another kind in a living service: solvers in processes of their own, and windows."""

import psutil
import pytest

from bridge.loop import Decider
from bridge.registry import PRESETS, build
from bridge.rpc.client import RemoteDecider
from bridge.sim.engine import simulate
from bridge.sim.system import pool_of
from tests.simulation.services import a_home, a_service, controller_of
from tests.workloads import random_workload


@pytest.mark.parametrize("preset", ["pcp19", "hcp19", "pcp20"])
def test_a_service_dispatches_and_counts(preset):
    workload = random_workload(7, n_jobs=40, processors=12)
    policy = {"preset": preset, "plan": {"name": preset, "budget_ms": 200, "effort": 0.2}}
    with a_home() as home:
        before = set(psutil.Process().children())
        with (
            a_service(home, policy=policy) as service,
            RemoteDecider(controller_of(home)) as remote,
        ):
            outcome = simulate(workload, pool_of(workload.processors_total), remote.decide)
            value = service._metrics.registry.get_sample_value
            plans = value("schedbridge_solver_plans_total")
            reasons = ("settled", "small", "late", "starting", "timeout", "crash", "infeasible",
                       "no gain")  # fmt: skip
            fallbacks = {
                reason: value("schedbridge_solver_fallbacks_total", {"reason": reason}) or 0
                for reason in reasons
            }
            assert service._decider.failures == 0
        assert outcome.failures == 0
        assert outcome.schedule.finished.all()
        assert plans + sum(fallbacks.values()) == len(outcome.decision_ms)
        assert fallbacks["crash"] == fallbacks["infeasible"] == 0
        assert set(psutil.Process().children()) <= before  # its process has gone with it


def test_a_service_starts_jobs_at_the_ends_of_periods():
    """What a controller is told is what the cycle decides: it asks again when a window opens."""
    workload = random_workload(8, n_jobs=40, processors=12)
    preset = "tjap-annealing"
    with (
        a_home() as home,
        a_service(home, policy=preset) as service,
        RemoteDecider(controller_of(home)) as remote,
    ):
        outcome = simulate(workload, pool_of(12), remote.decide)
        assert service._decider.failures == 0
    alone = simulate(workload, pool_of(12), Decider(build(PRESETS[preset])).decide)
    assert outcome.schedule.start_s.tolist() == alone.schedule.start_s.tolist()
    assert (outcome.schedule.start_s % 60 == 0).all()
    assert not outcome.refusals
