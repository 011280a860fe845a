# SPDX-License-Identifier: Apache-2.0
"""Waiting malleable jobs that start on fewer nodes than they ask for, on a real Slurm.

The policy `malleable` decides, the plugin starts; Slurm's variables, the limit and the launcher fit
the width that the job got.
"""

import json

import pytest

from tests.integration.elastic.jobs import HURRY, Elastic, exports
from tests.integration.elastic.whole import HEAT, ended, has_width, width

RESHAPE = {"name": "malleable", "between_s": 15, "learn": False}
POLICY = {"preset": "malleable", "reshape": RESHAPE}
"""Nothing is learnt: what these programs do at the end would teach that nodes gain them nothing."""
SCRIPT = """#!/bin/bash
{settings}
{hurry}
export TMPDIR=/tmp
env | grep -E '^SLURM_(NTASKS|NPROCS|NNODES|JOB_NUM_NODES|TASKS_PER_NODE)=' | sort
echo "steps $(srun hostname | sort | uniq -c | awk '{{print $1}}' | tr '\\n' ' ')"
schedbridge run --mpi pmi2 --no-mpi-time -- {program}
echo "exit $?"
"""


@pytest.fixture(scope="module")
def policy() -> str:
    return json.dumps(POLICY)


def start(cluster: Elastic, program: str, *options: str) -> str:
    text = SCRIPT.format(settings=exports(), hurry=HURRY, program=program)
    return cluster.run(
        "sbatch", "--parsable", "--exclusive", "-t10", "-o", "elastic/%j.out", *options, stdin=text
    )


def test_a_job_starts_narrow_and_is_widened(cluster, rigid):
    before = cluster.sbatch("-N3", "--exclusive", "-t30", run="sleep 1000")
    cluster.wait_state(before, "RUNNING")
    job = start(cluster, HEAT.format(1), "-N4", "--ntasks-per-node=2", "--malleable=1-4")
    stiff = cluster.sbatch("-N4", "--exclusive", "-t1", run="true")
    cluster.wait_state(job, "RUNNING", timeout_s=60)
    assert width(cluster, job) == 1
    assert cluster.job(job)["TimeLimit"] == "00:40:00"
    assert cluster.job(stiff)["JobState"] == "PENDING"
    cluster.run("scancel", before)
    has_width(cluster, job, 4)  # until the waiting job can have them all
    said = ended(cluster, job, rigid)
    assert "SLURM_NTASKS=2\nSLURM_TASKS_PER_NODE=2\n" in said
    for line in ("SLURM_NNODES=1", "SLURM_JOB_NUM_NODES=1", "SLURM_NPROCS=2", "steps 2 "):
        assert line in said.splitlines(), said
    cluster.wait_state(stiff, "COMPLETED")
    assert cluster.job(stiff)["NumNodes"] == "4"


def test_a_job_that_gives_nodes_back_may_run_longer(cluster, rigid):
    job = start(cluster, HEAT.format(1), "-N1", "--ntasks-per-node=1", "--malleable=1-4")
    has_width(cluster, job, 4)
    assert cluster.job(job)["TimeLimit"] == "00:10:00"
    cluster.run("schedbridge", "elastic", "shrink", job, "2")
    has_width(cluster, job, 2)
    # What it had at first was ten minutes on one node.
    assert cluster.job(job)["TimeLimit"] == "00:10:00"
    cluster.run("scancel", job)
    cluster.wait_empty()
    wide = start(cluster, HEAT.format(1), "-N4", "--ntasks-per-node=1", "--malleable=1-4")
    cluster.wait_for("it runs on 4", lambda: width(cluster, wide) == 4, 60)
    has_width(cluster, wide, 4)
    waiting = cluster.sbatch("-N3", "--exclusive", "-t1", run="sleep 5")
    cluster.wait_state(waiting, "RUNNING", timeout_s=120)
    assert width(cluster, wide) == 1
    hours, minutes, _ = map(int, cluster.job(wide)["TimeLimit"].split(":"))
    assert 30 <= 60 * hours + minutes <= 40
    ended(cluster, wide, rigid)


def test_a_job_that_was_started_narrow_asks_for_the_same_again(cluster):
    before = cluster.sbatch("-N2", "--exclusive", "-t30", run="sleep 1000")
    cluster.wait_state(before, "RUNNING")
    job = cluster.sbatch(
        "-N4", "--ntasks-per-node=2", "--malleable=2-4", "--exclusive", "-t10", "--requeue",
        run="sleep 1000",
    )  # fmt: skip
    cluster.wait_state(job, "RUNNING", timeout_s=60)
    assert width(cluster, job) == 2
    assert cluster.job(job)["TimeLimit"] == "00:20:00"
    cluster.run("scancel", before)
    cluster.run("scontrol", "requeuehold", job, user="root")
    cluster.wait_for("it waits", lambda: cluster.job(job)["JobState"] == "PENDING", 60)
    again = cluster.job(job)
    assert again["NumTasks"] == "8"
    assert "node=4" in again["ReqTRES"]
    cluster.wait_for("its own limit", lambda: cluster.job(job)["TimeLimit"] == "00:10:00", 20)
    cluster.run("scontrol", "release", job, user="root")
    cluster.root("scontrol", "update", f"JobId={job}", "StartTime=now")  # not in two minutes
    cluster.wait_state(job, "RUNNING")
    assert width(cluster, job) in (2, 4)


@pytest.mark.parametrize(
    "options", [("-N4",), ("-N4", "-n8", "--malleable=1-4"), ("-N4", "--malleable=4-4")]
)
def test_other_jobs_wait_for_all_their_nodes(cluster, options):
    before = cluster.sbatch("-N1", "--exclusive", "-t5", run="sleep 1000")
    cluster.wait_state(before, "RUNNING")
    job = cluster.sbatch(*options, "--exclusive", "-t1", run="true")
    cluster.wait_for("its plan", lambda: cluster.job(job)["StartTime"] != "Unknown", 30)
    assert cluster.state(job) == "PENDING"
    cluster.run("scancel", before)
    cluster.wait_state(job, "COMPLETED")
    assert cluster.job(job)["NumNodes"] == "4"
