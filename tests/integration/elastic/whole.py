# SPDX-License-Identifier: Apache-2.0
"""Jobs on the whole path: submitted, looked at, and ended as they should."""

import json
import re
from typing import Any

from tests.integration.elastic.jobs import HURRY, Elastic, exports
from tests.integration.slurm import ROOT

CONFIG = ROOT / "slurm_conf" / "bridge.yaml"
WAITS = {"add_s": 20, "grace_s": 20, "withdraw_s": 15, "vacate_s": 20, "rest_s": 8}
RULES = {
    "resizes": [
        {"user": "alice", "extra_nodes": 1},
        {"user": "bob", "apart": "1h"},
        {"partition": "right", "never": True},
    ]
}
"""Limits on resizes; none of the user `user` in the usual partition."""
PAUSE = " 200000"
HEAT = f"/home/user/elastic/wheel/heat 64 64 1800 {{}}{PAUSE}"
"""Steps of a fifth of a second for six minutes, unless `ended` ends the pauses; takes the number
of steps from probe to probe."""
NEVER = 100_000
SCRIPT = """#!/bin/bash
{settings}
{hurry}
export TMPDIR=/tmp
schedbridge run --mpi pmi2 {options} -- {program}
echo "exit $?"
"""


def start(
    cluster: Elastic, program: str, bounds: str = "1-4", *options: str, user: str = "user",
    engine: str = "--engine join",
) -> str:  # fmt: skip
    """Submits a malleable job of one node at first; by default without the self-test."""
    text = SCRIPT.format(settings=exports(), hurry=HURRY, program=program, options=engine)
    cluster.run("mkdir", "-p", "elastic", user=user)
    return cluster.run(
        "sbatch", "--parsable", "-N1", "--ntasks-per-node=1", "--exclusive", "-t", "20",
        f"--malleable={bounds}", "-o", "elastic/%j.out", *options, stdin=text,
        user=user,
    )  # fmt: skip


def width(cluster: Elastic, job: str) -> int:
    return int(cluster.job(job)["NumNodes"].split("-")[0])  # of a waiting job: from-to


def shown(cluster: Elastic, job: str) -> dict[str, Any]:
    """What the service says of a job; nothing if it does not know it, or does not answer."""
    done = cluster.process("schedbridge", "elastic", "show", job, "--json")
    return json.loads(done.stdout) if done.returncode == 0 else {}


def stage(cluster: Elastic, job: str) -> str:
    """What a change of the job waits for, as `scontrol` shows it; empty: nothing is under way."""
    said = cluster.run("scontrol", "show", "job", "-o", job)
    found = re.search(r"schedbridge: \w+ from \d+ to \d+ nodes: (\w+)", said)
    return found[1] if found else ""


def at_stage(cluster: Elastic, job: str, *stages: str, timeout_s: float = 90) -> None:
    """Waits until a change of the job is there."""
    cluster.wait_for(f"job {job} is at {stages}", lambda: stage(cluster, job) in stages, timeout_s)


def attached(cluster: Elastic, job: str) -> None:
    """Waits until the job runs and its launcher has attached."""
    cluster.wait_for("the launcher attaches", lambda: shown(cluster, job).get("engine"), 90)


def order(cluster: Elastic, verb: str, job: str, *words: str, user: str = "user") -> str:
    """Gives an order; what was wrong with it, empty if it was taken."""
    done = cluster.process("schedbridge", "elastic", verb, job, *words, user=user)
    assert done.returncode == 0 or done.stderr
    return done.stderr if done.returncode else ""


def on_node(cluster: Elastic, node: str, command: str) -> str:
    """Runs a command of root's shell on a node."""
    return cluster.inside(node, "sh", "-c", command)


def output(cluster: Elastic, job: str, user: str = "user") -> str:
    return cluster.run("cat", f"elastic/{job}.out", user=user)


def has_width(cluster: Elastic, job: str, nodes: int, timeout_s: float = 120) -> None:
    """Waits until the job holds so many nodes and nothing is under way."""

    def settled() -> bool:
        return width(cluster, job) == nodes and shown(cluster, job).get("state") == "running"

    cluster.wait_for(f"job {job} has {nodes} nodes", settled, timeout_s)


def ended(cluster: Elastic, job: str, expected: str, user: str = "user") -> str:
    """Has the job end; its output, once its result is the rigid run's."""
    cluster.hurry(job)
    cluster.wait_state(job, "COMPLETED", timeout_s=300)
    said = output(cluster, job, user)
    assert "exit 0" in said, said
    assert expected in said.splitlines(), said
    return said
