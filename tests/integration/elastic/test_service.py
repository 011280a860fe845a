# SPDX-License-Identifier: Apache-2.0
"""The whole path: service, plugin, agents, launcher and a real MPI program that is resized.

Nothing stands in for anything here: the policy decides, slurmctld grants and releases, the program
redistributes its data, and its result is compared with a rigid run.
"""

import re

from tests.integration.elastic.whole import HEAT, NEVER, ended, has_width, shown, start, width


def test_a_job_grows_into_idle_nodes_and_gives_them_to_a_waiting_job(cluster, rigid):
    job = start(cluster, HEAT.format(1))
    has_width(cluster, job, 4)
    waiting = cluster.sbatch("-N3", "--exclusive", "-t5", run="sleep 5")
    cluster.wait_state(waiting, "RUNNING", timeout_s=90)
    assert width(cluster, job) == 1
    cluster.wait_state(waiting, "COMPLETED", timeout_s=90)
    has_width(cluster, job, 4)
    said = ended(cluster, job, rigid)
    widths = [int(found) for found in re.findall(r"width (\d+)", said)]
    assert 4 in widths
    assert 1 in widths[widths.index(4) :]
    cluster.wait_empty()


def test_operators_and_users_grow_shrink_and_hold(cluster, rigid):
    job = start(cluster, HEAT.format(1))
    has_width(cluster, job, 4)
    cluster.run("schedbridge", "elastic", "hold", job)
    assert "held" in cluster.run("schedbridge", "elastic", "status")
    bad = cluster.process("schedbridge", "elastic", "shrink", job, "2", user="alice")
    assert bad.returncode == 1
    assert "user's, not alice's" in bad.stderr
    bad = cluster.process("schedbridge", "elastic", "grow", job, "5")
    assert bad.returncode == 1
    assert "may have 1 to 4 nodes" in bad.stderr
    cluster.run("schedbridge", "elastic", "shrink", job, "2")
    has_width(cluster, job, 2)
    cluster.run("schedbridge", "elastic", "grow", job, "3")
    has_width(cluster, job, 3)
    cluster.run("schedbridge", "elastic", "hold", job, "--release")
    has_width(cluster, job, 4)
    cluster.run("schedbridge", "elastic", "hold", job)
    ended(cluster, job, rigid)


def test_an_application_that_never_answers_keeps_its_nodes(cluster, rigid):
    job = start(cluster, HEAT.format(NEVER), "1-4", "-w", "n1")
    cluster.wait_for("it was asked", lambda: shown(cluster, job).get("state") == "adding", 90)
    cluster.wait_for(
        "the new nodes are given back",
        lambda: width(cluster, job) == 1 and shown(cluster, job).get("state") == "running", 120,
    )  # fmt: skip
    ended(cluster, job, rigid)


def test_a_job_without_launcher_is_never_resized(cluster):
    job = cluster.sbatch("-N2", "--exclusive", "-t5", "--malleable=1-4", run="sleep 1000")
    cluster.wait_state(job, "RUNNING")
    waiting = cluster.sbatch("-N3", "--exclusive", "-t5", run="true")
    cluster.wait_for("it was planned", lambda: cluster.job(waiting)["StartTime"] != "Unknown", 30)
    assert shown(cluster, job).get("engine", "") == ""
    assert width(cluster, job) == 2
    cluster.run("scancel", job)
    cluster.wait_state(waiting, "COMPLETED", timeout_s=60)
