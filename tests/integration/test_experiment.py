# SPDX-License-Identifier: Apache-2.0
"""Experiments whose workers are jobs of a real Slurm."""

import json

from tests.integration.slurm import Cluster

PLAN = """
results: kept
policies: [easy, conservative]
traces: [{file: TRACE, name: kth, jobs: 200}]
seeds: 2
perturbations: [ties]
"""
_TRACE = "import bridge.lab.sim as s; print(s.__path__[0] + '/data/KTH-SP2-1996-excerpt.swf.gz')"


def test_cells_are_computed_in_jobs_of_slurm(cluster: Cluster) -> None:
    trace = cluster.run("/opt/schedbridge/bin/python", "-c", _TRACE)
    cluster.run("sh", "-c", "rm -rf kept; cat > plan.yaml", stdin=PLAN.replace("TRACE", trace))
    command = ("schedbridge", "lab", "experiment", "plan.yaml", "--json")
    slurm = ("--on", "slurm", "--jobs", "2", "--memory", "500MiB", "--walltime", "00:05:00")
    done = cluster.process(*command, *slurm)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert (found["computed"], found["failed"], found["left"]) == (4, 0, 0)
    ran = cluster.run("sacct", "-X", "-n", "-P", "-o", "JobName,State", "--starttime", "now-1hour")
    jobs = [line for line in ran.splitlines() if line.startswith("schedbridge-experiment|")]
    assert len(jobs) >= 2
    cluster.wait_empty(30)  # the workers' jobs are gone with the command
    # and so are their credentials
    assert not cluster.run("sh", "-c", "ls -A kept | grep credentials || true")

    again = json.loads(cluster.run(*command, *slurm))
    assert (again["computed"], again["kept"]) == (0, 4)
    cell = f"kept/cells/{found['cells'][0]['key']}.json"
    assert "it came out the same" in cluster.run("schedbridge", "lab", "rerun", cell)
