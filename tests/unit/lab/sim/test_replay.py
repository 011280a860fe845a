# SPDX-License-Identifier: Apache-2.0
"""The fast engine and the cycle must give the very same starts."""

from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.core import UNLIMITED
from bridge.lab.report.ascii import ascii_gantt
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.runs.replay import replay, replay_depth
from bridge.lab.sim.workloads.swf import read_swf
from bridge.lab.sim.workloads.system import pool_of
from bridge.lab.sim.workloads.workload import workload_from
from bridge.measures import measure
from bridge.ports import Environment
from bridge.registry import PRESETS, build, parse_policy
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.workloads import a_workload, random_workload
from tests.workloads import ReferenceBackfill

EXCERPT = workload_from(
    read_swf(files("bridge.lab.sim").joinpath("data/KTH-SP2-1996-excerpt.swf.gz"))
)
DEPTHS = {"easy": 1, "conservative": None, "slurm-like": None, "depth 3": 3}


def policy(name):
    if name in PRESETS:
        return PRESETS[name]
    return parse_policy({"preset": "easy", "name": name, "plan": {"name": "easy", "depth": 3}})


def in_the_cycle(workload, spec, seed=0):
    truth = dict(zip(workload.id, workload.runtime_s.tolist(), strict=True))
    decider = Decider(build(spec), seed=seed, environment=Environment(run_s=truth))
    return simulate(workload, pool_of(workload.processors_total), decider.decide)


def both(workload, name):
    system = pool_of(workload.processors_total)
    depth = replay_depth(policy(name), system)
    fast = replay(workload, system, depth, placed=True)
    return fast, in_the_cycle(workload, policy(name))


def chart(outcome):
    schedule = outcome.schedule
    return ascii_gantt(
        outcome.system.nodes.names, schedule.start_s, schedule.end_s, outcome.indptr, outcome.nodes
    )


def told(outcome):
    """Starts beside what had been announced, in an order of their own."""
    starts = outcome.starts
    return sorted(zip(starts.start_s.tolist(), starts.promise.tolist(), strict=True))


def assert_equal(workload, fast, cycle):
    assert cycle.refusals == ()
    assert np.array_equal(fast.schedule.start_s, cycle.schedule.start_s), (
        f"fast:\n{chart(fast)}\ncycle:\n{chart(cycle)}\njobs: "
        f"{workload.submit_s} {workload.runtime_s} {workload.time_limit_s} {workload.processors}"
    )
    assert np.array_equal(fast.schedule.end_s, cycle.schedule.end_s)
    assert len(fast.decision_ms) == len(cycle.decision_ms)
    assert told(fast) == told(cycle)
    assert np.array_equal(fast.promise, cycle.promise)


JOBS = st.lists(
    st.tuples(st.integers(1, 60), st.integers(1, 40), st.integers(1, 40), st.integers(1, 6)),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize("name", DEPTHS)
@settings(max_examples=60, deadline=None)
@given(jobs=JOBS, spare=st.integers(0, 3))
def test_any_workload(name, jobs, spare):
    workload = a_workload(jobs, max(size for *_, size in jobs) + spare)
    assert_equal(workload, *both(workload, name))


@pytest.mark.parametrize("name", DEPTHS)
@settings(max_examples=60, deadline=None)
@given(jobs=JOBS, spare=st.integers(0, 3))
def test_a_second_opinion(name, jobs, spare):
    workload = a_workload(jobs, max(size for *_, size in jobs) + spare)
    system = pool_of(workload.processors_total)
    fast = replay(workload, system, replay_depth(policy(name), system), placed=True)
    assert_equal(workload, fast, simulate(workload, system, ReferenceBackfill(DEPTHS[name])))


@pytest.mark.parametrize("name", ["easy", "slurm-like"])
def test_the_bundled_trace(name):
    workload = EXCERPT.first(400)
    assert_equal(workload, *both(workload, name))


@pytest.mark.parametrize("name", DEPTHS)
def test_orders_of_magnitude(name):
    workload = random_workload(seed=5, n_jobs=200, processors=24)
    assert_equal(workload, *both(workload, name))


def test_no_node_is_held_twice_at_a_time():
    fast = replay(EXCERPT, pool_of(100), UNLIMITED, placed=True)
    jobs = np.repeat(np.arange(len(EXCERPT)), np.diff(fast.indptr))
    assert np.array_equal(np.diff(fast.indptr), EXCERPT.processors)
    order = np.lexsort((fast.schedule.start_s[jobs], fast.nodes))
    node, start = fast.nodes[order], fast.schedule.start_s[jobs][order]
    end = fast.schedule.end_s[jobs][order]
    same = node[1:] == node[:-1]
    assert (start[1:][same] >= end[:-1][same]).all()


def test_known_answers_of_the_bundled_trace():
    """Figures of an independent EASY on the whole-processor rules; see docs/SIMULATOR.md."""
    found = measure(replay(EXCERPT, pool_of(100), 1).schedule, np.zeros(1))
    assert found.jobs == 1500
    assert found.wait_s.mean == pytest.approx(15669.0, rel=1e-3)
    assert found.bounded_slowdown.mean == pytest.approx(207.5, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        ("easy", 1),
        ("conservative", UNLIMITED),
        ("slurm-like", UNLIMITED),
        ({"preset": "easy", "place": "best-fit"}, 1),
        ({"preset": "easy", "plan": {"name": "easy", "depth": 7}}, 7),
        ({"preset": "easy", "plan": {"name": "conservative", "depth": None}}, UNLIMITED),
        ({"preset": "easy", "plan": {"name": "easy", "array_depth": 7}}, None),
    ],
)
def test_which_policies_are_replayed(text, depth):
    assert replay_depth(parse_policy(text), pool_of(4)) == depth


def test_a_described_system_is_not_replayed(tmp_path):
    from bridge.lab.sim.workloads.system import read_system

    path = tmp_path / "system.yaml"
    path.write_text('nodes: [{names: "n[1-4]", cpus: 1}]')
    assert replay_depth(PRESETS["easy"], read_system(path)) is None
