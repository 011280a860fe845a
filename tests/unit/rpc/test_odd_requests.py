# SPDX-License-Identifier: Apache-2.0
"""What any user can have Slurm say: it stops nobody, under no preset, and people can read of it."""

import pytest

from bridge.cli.operators.asking import job_cells
from bridge.registry import PRESETS, build
from bridge.rpc.operators.explain import explain, planned_jobs
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.crosses import each
from tests.unit.rpc.worlds import (
    a_full,
    a_job,
    a_request,
    partitions,
    some_cycles,
)

MINUTE_S = 1_000_020
"""A full minute: windows begin."""

YEAR_9999_S = 253_402_300_200  # 9999-12-31T23:50
YEAR_2030_S = 1_893_456_000

REQUESTS = {
    # sbatch --begin=2029-01-01 --deadline=2030-01-01, then scontrol update StartTime=9999-12-31
    "begin in 9999, deadline before": {"begin_s": YEAR_9999_S, "deadline_s": YEAR_2030_S},
    "begin in 9999": {"begin_s": YEAR_9999_S, "time_limit_s": 86_400},
    "begin beyond 9999": {"begin_s": 1 << 62, "hold": 3},
    "deadline beyond 9999": {"deadline_s": 1 << 62},
    "fixed start in 9999": {
        "begin_s": YEAR_9999_S,
        "request": a_request(min_nodes=1, max_nodes=1, fixed_start=True),
    },
    "deadline long ago": {"deadline_s": 1},
    "no limit where the default exceeds the greatest": {"time_limit_s": 0},
    "a deep constraint": {"request": a_request(features="(" * 1500 + "a" + ")" * 1500)},
    "a long constraint": {"request": a_request(features="&".join("a" * 2000))},
    "many tasks": {"request": a_request(tasks=(1 << 32) - 1, cpus_per_task=(1 << 32) - 1)},
    "many nodes": {"request": a_request(min_nodes=1, max_nodes=(1 << 32) - 1, tasks=1 << 20)},
    "many array tasks": {"array_tasks": (1 << 32) - 1, "array_startable": (1 << 32) - 1},
    "the largest priority": {"priority": (1 << 64) - 1},
}


@pytest.mark.parametrize("preset", PRESETS)
@each(odd=REQUESTS)
def test_an_odd_job_stops_nobody(preset, odd):
    decider = Decider(build(PRESETS[preset]))
    cycles = some_cycles(decider.decide, preset)
    times = partitions(default_time_s=7200, max_time_s=86_400)
    jobs = [a_job("1", **odd), a_job("2", user="bob")]
    reply = cycles.run(a_full(jobs, partitions=times, now_s=MINUTE_S))
    assert decider.failures == 0
    assert not [note for note in cycles.published.plan.notes if "set aside" in note]
    told = {d.job_id: d for d in reply.decisions}
    assert told.keys() == {"1", "2"}
    # EASY, and in-order plans, book nodes for the array's next task before they look at job 2.
    blocking = PRESETS[preset].plan.name == "easy" or preset in ("malleable-performance", "fpsma")
    if not blocking:
        assert not told["2"].HasField("pending")
    for job in planned_jobs(cycles.published, 0):
        job_cells(job, MINUTE_S)
    assert explain(cycles.published, "1").lines
