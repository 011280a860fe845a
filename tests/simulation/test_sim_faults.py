# SPDX-License-Identifier: Apache-2.0
"""Everything goes wrong at once, from a seed: nodes, jobs and the decider. Nothing may be lost."""

from importlib.resources import files

import numpy as np
import pytest

from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.runs.faults import Saboteur, random_faults
from bridge.lab.sim.workloads.swf import read_swf
from bridge.lab.sim.workloads.system import pool_of
from bridge.lab.sim.workloads.workload import workload_from
from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider
from bridge.units import NEVER
from schedbridge_contracts.crosses import each, seeds
from schedbridge_contracts.workloads import random_workload
from tests.simulation.test_sim_saboteurs import no_node_twice
from tests.workloads import ReferenceBackfill, quick

PROCESSORS = 16


def storm(seed, preset="easy", n_faults=40, share=0.3):
    workload = random_workload(seed, n_jobs=80, processors=PROCESSORS)
    faults = random_faults(seed, workload, PROCESSORS, n_faults)
    saboteur = Saboteur(Decider(build(quick(preset)), seed=seed).decide, seed, share)
    outcome = simulate(
        workload, pool_of(PROCESSORS), saboteur, faults=faults, fallback=ReferenceBackfill()
    )
    return outcome, saboteur


@pytest.mark.parametrize("preset", PRESETS)
@each(seed=seeds(5, whole=20))
def test_nothing_is_lost_and_nothing_is_held_twice(seed, preset):
    """Slow: simulates a storm for each seed."""
    if seed > 1 and quick(preset) is not PRESETS[preset]:
        pytest.skip("a storm under a solver takes seconds: few of them")
    outcome, saboteur = storm(seed, preset)
    schedule, cancelled = outcome.schedule, outcome.cancelled
    lost = np.flatnonzero(~schedule.finished & ~cancelled)
    assert not len(lost), f"jobs {outcome.workload.id[lost].tolist()} lost"
    ran = schedule.start_s != NEVER
    assert (schedule.start_s[ran] >= schedule.submit_s[ran]).all()
    assert (np.diff(outcome.indptr)[ran] == schedule.processors[ran]).all()
    whole = ran & ~cancelled
    took_s = (schedule.end_s - schedule.start_s)[whole]
    assert (took_s <= outcome.workload.runtime_s[whole]).all()
    assert no_node_twice(outcome)
    assert saboteur.broken["silent"] == outcome.failures


@each(seed=range(3))
def test_the_same_seed_gives_the_same_schedule(seed):
    first, second = storm(seed)[0], storm(seed)[0]
    assert np.array_equal(first.schedule.start_s, second.schedule.start_s)
    assert np.array_equal(first.nodes, second.nodes)
    assert [str(r) for r in first.refusals] == [str(r) for r in second.refusals]


def test_the_storm_is_one():
    """Over the seeds every kind of fault really strikes; otherwise the test above shows nothing."""
    outcomes = [storm(seed) for seed in range(5)]
    assert all(min(saboteur.broken.values()) > 0 for _, saboteur in outcomes)
    assert sum(outcome.restarts.sum() for outcome, _ in outcomes) > 5
    assert sum(outcome.cancelled.sum() for outcome, _ in outcomes) > 20
    assert sum(len(outcome.refusals) for outcome, _ in outcomes) > 50


def test_a_real_trace_with_faults_runs_to_its_end():
    trace = files("bridge.lab.sim").joinpath("data/KTH-SP2-1996-excerpt.swf.gz")
    workload = workload_from(read_swf(trace)).first(300)
    faults = random_faults(3, workload, 100, 60)
    decider = Decider(build(PRESETS["slurm-like"]))
    outcome = simulate(workload, pool_of(100), decider.decide, faults=faults)
    assert outcome.restarts.sum() > 0
    assert outcome.refusals == ()
    assert decider.failures == 0
    assert (outcome.schedule.finished | outcome.cancelled).all()
