# SPDX-License-Identifier: Apache-2.0
"""Named situations every policy must handle, and what the literature says of each plan."""

import dataclasses

import numpy as np
import pytest

from bridge.lab.report.ascii import ascii_gantt
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.workloads.system import pool_of, read_system
from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import check
from schedbridge_contracts.workloads import a_workload, random_workload
from tests.workloads import quick

ALL = each(preset=list(PRESETS))


def run(preset, jobs, processors=4, system=None):
    system = system or pool_of(processors)
    workload = jobs if not isinstance(jobs, list) else a_workload(jobs, system.processors)
    decider = Decider(build(quick(preset)))

    def judged(snapshot):
        plan = decider.decide(snapshot)
        assert check(snapshot, plan) == ()
        return plan

    outcome = simulate(workload, system, judged)
    assert outcome.refusals == ()
    assert decider.failures == 0
    return outcome


def starts(outcome):
    schedule = outcome.schedule
    print(
        ascii_gantt(
            outcome.system.nodes.names,
            schedule.start_s,
            schedule.end_s,
            outcome.indptr,
            outcome.nodes,
        )
    )
    return schedule.start_s.tolist()


@ALL
def test_an_empty_machine_starts_everything_that_fits(preset):
    assert starts(run(preset, [(1, 9, 9, 1), (1, 9, 9, 2), (1, 9, 9, 1)])) == [1, 1, 1]


@ALL
def test_a_short_job_fills_the_hole_before_a_wide_one(preset):
    jobs = [(1, 10, 10, 3), (2, 10, 10, 4), (3, 8, 8, 1)]
    in_order = PRESETS[preset].plan.name == "in-order"  # there nobody passes the wide one
    assert starts(run(preset, jobs)) == [1, 11, 21 if in_order else 3]


@ALL
def test_a_long_job_does_not_delay_the_wide_one_before_it(preset):
    jobs = [(1, 10, 10, 3), (2, 10, 10, 4), (3, 9, 9, 1)]
    found = starts(run(preset, jobs))
    if PRESETS[preset].plan.name in ("easy", "conservative", "openccs", "in-order"):
        assert found == [1, 11, 21]
    else:  # what reorders lets the short one pass, since both together then wait for less
        assert found == [1, 12, 3]


def test_easy_lets_a_job_pass_the_second_in_line_and_conservative_does_not():
    # Job 4 fits beside the head's reservation but would take what job 3 was promised.
    jobs = [(1, 10, 10, 3), (2, 10, 10, 2), (2, 10, 10, 4), (3, 20, 20, 1)]
    assert starts(run("easy", jobs)) == [1, 11, 23, 3]
    assert starts(run("conservative", jobs)) == [1, 11, 21, 31]


@ALL
def test_jobs_as_large_as_the_machine_run_one_after_the_other(preset):
    assert starts(run(preset, [(1, 5, 9, 4)] * 4)) == [1, 6, 11, 16]


@ALL
def test_a_burst_of_small_jobs_keeps_every_processor_busy(preset):
    outcome = run(preset, [(1, 10, 10, 1)] * 40)
    assert sorted(starts(outcome)) == [1 + 10 * wave for wave in range(10) for _ in range(4)]


@ALL
def test_everyone_ends_early_and_the_queue_moves_up(preset):
    assert starts(run(preset, [(1, 2, 1000, 4), (1, 2, 1000, 4), (1, 2, 1000, 4)])) == [1, 3, 5]


@ALL
def test_a_stream_at_the_limit_of_the_machine_is_worked_off(preset):
    """Slow: 120 jobs under each preset, some of which solve a program in each cycle."""
    outcome = run(preset, random_workload(seed=9, n_jobs=120, processors=12), 12)
    assert outcome.schedule.finished.all()


# ---------------------------------------------------------------- nodes with several processors

ISLANDS = """
nodes:
  - {names: "thin[1-4]", cpus: 4, memory_mib: 8192}
  - {names: "fat1", cpus: 8, memory_mib: 65536, weight: 9}
partitions:
  - {name: batch, nodes: "thin[1-4]", queues: [1]}
  - {name: all}
  - {name: night, nodes: "fat1", queues: [2], exclusive: true}
use_memory: true
"""


@pytest.fixture(scope="module")
def islands(tmp_path_factory):
    path = tmp_path_factory.mktemp("system") / "islands.yaml"
    path.write_text(ISLANDS)
    return read_system(path)


def on(system, jobs, queues, memory_mib=0):
    workload = a_workload(jobs, system.processors)
    memory_kib = np.broadcast_to(np.array(memory_mib) * 1024, len(workload)).copy()
    return dataclasses.replace(workload, queue=np.array(queues), memory_kib=memory_kib)


@ALL
def test_jobs_share_nodes(preset, islands):
    outcome = run(preset, on(islands, [(1, 9, 9, 2)] * 8, [1] * 8), system=islands)
    assert starts(outcome) == [1] * 8
    assert set(outcome.nodes.tolist()) == {0, 1, 2, 3}


@ALL
def test_memory_keeps_jobs_apart(preset, islands):
    jobs = on(islands, [(1, 9, 9, 2)] * 8, [1] * 8, memory_mib=4096)
    assert sorted(starts(run(preset, jobs, system=islands))) == [1] * 4 + [10] * 4


@ALL
def test_an_exclusive_partition_runs_one_job_at_a_time(preset, islands):
    jobs = on(islands, [(1, 9, 9, 1)] * 3, [2] * 3)
    assert starts(run(preset, jobs, system=islands)) == [1, 10, 19]


@ALL
def test_overlapping_partitions_never_oversubscribe(preset, islands):
    """Slow: 120 jobs under each preset, some of which solve a program in each cycle."""
    queues = np.random.default_rng(4).choice([1, 2, 3], 120)
    workload = random_workload(seed=4, n_jobs=120, processors=8)
    workload = dataclasses.replace(workload, processors_total=islands.processors, queue=queues)
    outcome = run(preset, workload, system=islands)
    assert outcome.schedule.finished.all()
