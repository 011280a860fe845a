# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of malleable jobs on clusters: their program, and how they read logs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.extensions.elastic.lines import Grow, Shrink
from bridge.model.job import WidthRule
from tests.unit.extensions.elastic.test_run import started  # noqa: F401 - a fixture

BENCHMARKS = Path(__file__).parents[4] / "benchmarks"
sys.path.append(str(BENCHMARKS))

from cluster_bench import batch  # noqa: E402
from elastic_bench import esp_run, paced  # noqa: E402
from elastic_bench.esp_jobs import Costs, Esp, real_jobs, simulated_jobs  # noqa: E402
from elastic_bench.steps import changes, resizes, stages  # noqa: E402

PROGRAM = [sys.executable, paced.__file__]


def environment(job: int, task: int, size: int) -> dict[str, str]:
    return {
        "SLURM_JOB_ID": str(job), "SLURM_PROCID": str(task), "SLURM_STEP_NUM_TASKS": str(size),
        "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1", "SLURMD_NODENAME": f"n{task + 1}",
        "PYTHONPATH": str(BENCHMARKS.parent),
    }  # fmt: skip


@pytest.mark.parametrize("size", [1, 3])
def test_the_program_prints_what_is_expected_on_every_width(size):
    words = [*PROGRAM, "9", "0.05", "0.1", "7"]
    tasks = [
        subprocess.Popen(
            words,
            env={**os.environ, **environment(os.getpid(), task, size)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for task in range(size)
    ]
    said = [task.communicate(timeout=60)[0] for task in tasks]
    assert [task.returncode for task in tasks] == [0] * size
    assert said[0].split()[2] == paced.expected(9, "7") != paced.expected(10, "7")
    assert not any(said[1:])


def test_the_program_grows_and_shrinks_and_prints_the_same(started, tmp_path):  # noqa: F811
    """Slow: a real program is at work for 12 s while it grows and shrinks."""
    out = tmp_path / "out"
    env = [f"{name}={value}" for name, value in environment(os.getpid(), 0, 1).items()]
    env = [each for each in env if not each.startswith("SLURMD_")]  # as the fake srun says
    script = f'exec "$@" >>{out}'
    words = [*PROGRAM, "120", "12", "0.1", "7"]
    run = started(
        "--mpi", "none", "--engine", "join", "--", "env", *env, "sh", "-c", script, "sh", *words
    )
    run.attached()
    assert run.result(Grow("g", ("n1", "n2"), ("n2",), 30.0)).outcome == "done"
    assert run.result(Shrink("s", ("n1",), ("n2",), 30.0)).outcome == "done"
    code, said = run.end()
    assert code == 0, said
    lines = out.read_text().splitlines()
    assert [line.split()[2] for line in lines] == ["2", "1", paced.expected(120, "7")]
    assert [outcome for _, outcome, _ in stages(said)] == ["done", "done"]
    grown, shrunk = (set(each) for *_, each in stages(said))
    assert grown == {"starting", "asked", "going"}
    # Whoever leaves may be gone before the others say that they are done: then nobody waits for it.
    assert shrunk - {"leaving"} == {"asked", "going"}


HEAD = "2026-11-23 14:43:{} INFO bridge.extensions.elastic.resizing.changes: job {}, {} nodes: {}"
SERVICE = "\n".join(
    HEAD.format(*words)
    for words in (
        ("21,462", "1", "1 to 2", "granting"), ("21,486", "1", "1 to 2", "adding"),
        ("21,500", "2", "4 to 2", "leaving"), ("22,533", "1", "1 to 2", "over"),
        ("22,600", "2", "4 to 2", "failed: the application says: no"),
        ("23,000", "1", "2 to 3", "granting"), ("23,100", "1", "2 to 3", "adding"),
        ("23,200", "1", "2 to 3", "vacating"), ("23,300", "1", "2 to 3", "releasing"),
        ("23,400", "1", "2 to 3", "over"), ("24,000", "1", "2 to 1", "leaving"),
        ("25,000", "3", "1 to 2", "granting"), ("26,000", "3", "1 to 2", "over"),
    )
)  # fmt: skip


def test_changes_are_read_from_the_services_log():
    found = changes(SERVICE)
    assert [(one.job, one.before, one.after, one.done) for one in found] == [
        ("1", 1, 2, True), ("2", 4, 2, False), ("1", 2, 3, False), ("3", 1, 2, False),
    ]  # fmt: skip
    assert found[0].lasted_s() == {"granting": 0.024, "adding": 1.047}
    assert found[1].why == "the application says: no"


CONTROLLER = """
[2026-11-23T14:43:20.000] bridge: start JobId=5 NodeList=n[3-4,7] #CPUs=12 Partition=main
[2026-11-23T14:43:20.000] bridge: start JobId=9 NodeList=n9 #CPUs=4 Partition=main
[2026-11-23T14:43:21.000] sched: Allocate JobId=6 NodeList=n1 #CPUs=4 Partition=main
[2026-11-23T14:43:21.000] sched/backfill: _start_job: Started JobId=7 in main on n[1-2]
[2026-11-23T14:43:30.000] bridge: resize JobId=5 to 5 nodes in 0.37 ms: n[1-4,7]
[2026-11-23T14:43:31.000] bridge: resize JobId=5 to 6 nodes in 0.10 ms: Requested nodes are busy
[2026-11-23T14:43:40.000] _job_complete: JobId=5 done
[2026-11-23T14:43:41.000] _job_complete: JobId=6 done
[2026-11-23T14:43:42.000] _job_complete: JobId=7 done
"""


def test_widths_and_node_seconds_are_read_from_slurmctlds_log():
    jobs = real_jobs(Esp(100, 0, 32, 20, 3))
    ran = [batch.Ran(job, job_id, 0.0) for job, job_id in zip(jobs, ("5", "6", "7"), strict=True)]
    batch.read_log(ran, CONTROLLER)
    assert [one.width for one in ran] == [3, 1, 2]
    assert [one.node_s() for one in ran] == [3 * 10 + 5 * 10, 20, 2 * 21]
    assert [one.lock_ms for one in resizes(CONTROLLER)] == [0.37, 0.1]


def test_a_lost_unit_is_noticed():
    (job,) = real_jobs(Esp(0, 0, 32, 20, 1))
    right, wrong = (paced.expected(job.units - lost, str(job.number)) for lost in (0, 1))
    for value, expected in ((right, True), (wrong, False)):
        one = batch.Ran(job, "5", 0.0)
        esp_run.read_outputs([one], f"== 5\npaced: result {value} in 1.0 s\n")
        assert one.right is expected


def test_jobs_are_those_of_esp_compressed():
    given = Esp(50, 3, 32, 20, 230)
    jobs, simulated = real_jobs(given), simulated_jobs(given, Costs(1.5, 0.1, 1.0, 2.0))
    assert sum(job.malleable for job in jobs) == 115
    assert json.dumps(sorted({job.at_s for job in jobs})[:3]) == "[0.0, 1.5, 3.0]"
    for at, job in enumerate(jobs):
        assert job.limit_min * 60 >= 1.5 * job.runs_s
        assert simulated.time_limit_s[at] == job.limit_min * 60 * 20
        extra_s = 40 if job.malleable else 20
        assert simulated.runtime_s[at] == min(
            round(job.runs_s * 20) + extra_s, simulated.time_limit_s[at]
        )
        speedup = simulated.malleable.speedup[at]
        alone_s, program_s = (
            simulated.runtime_s[at] * speedup.at(job.nodes) / part.speedup.at(n) * part.share
            for part, n in zip(speedup.parts(), (1, job.nodes), strict=True)
        ) if job.malleable else (extra_s, 20 * job.runs_s)  # fmt: skip
        if simulated.runtime_s[at] < simulated.time_limit_s[at]:
            assert alone_s == pytest.approx(extra_s, abs=0.1)
            assert program_s == pytest.approx(20 * job.runs_s, abs=0.1)
        constrained = job.malleable and job.rule != WidthRule.ANY
        assert any("--node-constraints" in word for word in job.options) == constrained
