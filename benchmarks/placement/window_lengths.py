# SPDX-License-Identifier: Apache-2.0
"""Figure 6 of the paper: the length of a period, compared with first come first served and EASY.

All methods run through the product's cycle and simulator: the machine is the paper's tree, the
policies are those that a site would configure. A method is a policy; an epoch is a stream of jobs
on an empty machine, the same for all methods.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from paper_stream import NODES, draw, workload
from policy_bench.placement import hop_tree_for

from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.runs.simulation_result import SimulationResult
from bridge.lab.sim.workloads.system import System, pool_of
from bridge.model.hop_tree import HopTree, Metric
from bridge.model.snapshot import Partition
from bridge.registry import build, choices, parse_policy
from bridge.safe_cycle.decider import Decider

PERIODS_S = (10, 20, 30, 40, 50, 60)
PLACES: dict[str, dict[str, Any]] = {
    "annealing": {"name": "annealing"},
    "neural": {"name": "neural"},
    "compact": {"name": "compact", "budget_ms": 0, "effort": 1000},
}
"""Limited by moves and steps, not by time: the same figures on any machine."""


def methods() -> dict[str, dict[str, Any]]:
    """All methods, as policies."""
    first = {"name": "window", "period_s": 0, "pass_over": False}
    known = {
        "fcfs": {"order": "fcfs", "plan": first, "place": "sequential"},
        "easy": {"order": "fcfs", "plan": "easy", "place": "sequential"},
    }
    for name, place in PLACES.items():
        if name not in choices()["place"]:
            continue
        known[f"easy, {name}"] = {"order": "fcfs", "plan": "easy", "place": place}
        for period_s in PERIODS_S:
            known[f"{period_s} s, {name}"] = {
                "order": {"name": "waiting-periods", "period_s": period_s},
                "plan": {"name": "window", "period_s": period_s},
                "place": place,
            }
    # The windows of the public code: five jobs, and none overtakes one that does not fit.
    for period_s in PERIODS_S:
        known[f"{period_s} s, as the public code"] = {
            "order": {"name": "waiting-periods", "period_s": period_s},
            "plan": {"name": "window", "period_s": period_s, "most_jobs": 5, "pass_over": False},
            "place": {"name": "annealing", "published": True},
        }
    return known


def machine(hop_tree: HopTree) -> System:
    """Nodes that are allocated whole, on the paper's tree."""
    pool = pool_of(NODES)
    every = Partition("all", np.arange(NODES, dtype=np.int32), exclusive=True)
    return dataclasses.replace(
        pool, name="the paper's tree", partitions=(every,), topology=hop_tree.topology
    )


def epoch(metric: Metric, number: int, *, n_jobs: int, seed: int) -> Iterator[tuple[str, Any]]:
    """Runs all methods on one stream.

    Yields:
        A method, with the mean cost of a job, its mean wait, s, and that of a decision, ms.
    """
    hop_tree = hop_tree_for(metric, None, [])
    system = machine(hop_tree)
    jobs = workload(draw(np.random.default_rng((seed, 6, number)), n_jobs))
    for name, policy in methods().items():
        decider = Decider(build(parse_policy(policy)), seed=number)
        outcome = simulate(jobs, system, decider.decide)
        assert not outcome.refusals
        assert not decider.failures
        yield (
            name,
            {
                "cost": round(_cost(hop_tree, outcome), 1),
                "wait_s": round(float((outcome.schedule.start_s - jobs.submit_s).mean()), 1),
                "decision_ms": round(float(outcome.decision_ms.mean()), 2),
            },
        )


def mean(epochs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means over epochs, for the methods that all epochs have."""
    return {
        name: {key: round(float(np.mean([one[name][key] for one in epochs])), 2) for key in row}
        for name, row in epochs[0].items()
        if all(name in one for one in epochs)
    }


def _cost(hop_tree: HopTree, outcome: SimulationResult) -> float:
    sets = [np.sort(outcome.nodes[a:b]) for a, b in pairwise(outcome.indptr)]
    costs = hop_tree.costs((outcome.indptr, np.concatenate(sets).astype(np.int32)))
    assert np.isfinite(costs).all()
    return float(costs.mean())
