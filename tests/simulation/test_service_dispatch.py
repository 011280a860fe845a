# SPDX-License-Identifier: Apache-2.0
"""Policies of another kind in a living service: solvers in processes of their own, and windows."""

import psutil
import pytest

from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.workloads.system import pool_of
from bridge.registry import PRESETS, build
from bridge.rpc.clients.remote_decider import RemoteDecider
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.workloads import a_workload, random_workload
from tests.simulation.services import a_home, a_service, controller_of


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
            assert service.scheduling.decider.failures == 0
        assert outcome.failures == 0
        assert outcome.schedule.finished.all()
        assert plans + sum(fallbacks.values()) == len(outcome.decision_ms)
        assert fallbacks["crash"] == fallbacks["infeasible"] == 0
        assert set(psutil.Process().children()) <= before  # its process has gone with it


@pytest.mark.parametrize("preset", ["pcp19", "hcp19", "pcp20", "search"])
def test_the_solver_s_plan_serves_where_it_is_better(preset):
    """Two jobs that fit beside each other for a little longer than the one that stands first.

    Slow: a solver plans each cycle.
    """
    workload = a_workload([(0, 600, 600, 3), (0, 660, 660, 2), (0, 660, 660, 2)], processors=4)
    with (
        a_home() as home,
        a_service(home, policy={"preset": preset, "plan": {"budget_ms": 20_000}}) as service,
        RemoteDecider(controller_of(home)) as remote,
    ):
        service._solver.warm_up()
        service._solver.wait_ready(120)
        outcome = simulate(workload, pool_of(4), remote.decide)
        value = service._metrics.registry.get_sample_value
        assert value("schedbridge_solver_plans_total") >= 1
        assert value("schedbridge_solver_saved_ratio") is not None
        for reason in ("late", "starting", "timeout", "crash", "infeasible"):
            assert not value("schedbridge_solver_fallbacks_total", {"reason": reason})
        assert service.scheduling.decider.failures == 0
    assert outcome.schedule.start_s.tolist() == [660, 0, 0]


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
        assert service.scheduling.decider.failures == 0
    alone = simulate(workload, pool_of(12), Decider(build(PRESETS[preset])).decide)
    assert outcome.schedule.start_s.tolist() == alone.schedule.start_s.tolist()
    assert (outcome.schedule.start_s % 60 == 0).all()
    assert not outcome.refusals
