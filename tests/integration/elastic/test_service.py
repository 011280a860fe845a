# SPDX-License-Identifier: Apache-2.0
"""The whole path: service, plugin, agents, launcher and a real MPI program that is resized.

Nothing stands in for anything here: the policy decides, slurmctld grants and releases, the program
redistributes its data, and its result is compared with a rigid run.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.elastic.conftest import KEEP
from tests.integration.elastic.jobs import SETTINGS, Elastic
from tests.integration.slurm import ROOT

NAME = "sbwhole"
CONFIG = ROOT / "slurm_conf" / "bridge.yaml"
WAITS = {"add_s": 30, "grace_s": 8, "withdraw_s": 8, "vacate_s": 20, "rest_s": 8}
SCRIPT = """#!/bin/bash
{settings}
export TMPDIR=/tmp
schedbridge run --mpi pmi2 -- {program}
echo "exit $?"
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elastic]:
    file: Path = tmp_path_factory.mktemp("whole") / "bridge.yaml"
    text = CONFIG.read_text().replace("policy: slurm-like", "policy: malleable-performance")
    file.write_text(f"{text}\nresizing: {json.dumps(WAITS)}\n")
    cluster = Elastic(
        NAME, "--nodes", "4", "--cpus", "4", "--image", "mpi", "--agents", "--accounting",
        "--service-config", str(file),
    )  # fmt: skip
    if not (KEEP and NAME in cluster.process("scontrol", "show", "config").stdout):
        cluster.up()
        cluster.compile()
    yield cluster
    if not KEEP:
        cluster.down()


@pytest.fixture
def cluster(whole: Elastic) -> Iterator[Elastic]:
    yield whole
    whole.root("sh", "-c", "squeue -h -o %A | sort -u | xargs -r scancel --quiet")
    whole.wait_empty()


@pytest.fixture(scope="module")
def rigid(whole: Elastic) -> Callable[[str], str]:
    known: dict[str, str] = {}

    def result(program: str) -> str:
        if program not in known:
            known[program] = whole.rigid(program)
        return known[program]

    return result


def start(cluster: Elastic, program: str, bounds: str = "1-4", *options: str) -> str:
    """Submits a malleable job of one node at first."""
    text = SCRIPT.format(
        settings="\n".join(f"export {name}={value}" for name, value in SETTINGS.items()),
        program=program,
    )
    return cluster.run(
        "sbatch", "--parsable", "-N1", "--ntasks-per-node=1", "--exclusive", "-t", "20",
        f"--malleable={bounds}", "-o", "elastic/%j.out", *options, stdin=text,
    )  # fmt: skip


def width(cluster: Elastic, job: str) -> int:
    return int(cluster.job(job)["NumNodes"])


def shown(cluster: Elastic, job: str) -> dict[str, Any]:
    """What the service says of a job; nothing if it does not know it, or does not answer."""
    done = cluster.process("schedbridge", "elastic", "show", job, "--json")
    return json.loads(done.stdout) if done.returncode == 0 else {}


def output(cluster: Elastic, job: str) -> str:
    return cluster.run("cat", f"elastic/{job}.out")


def has_width(cluster: Elastic, job: str, nodes: int, timeout_s: float = 120) -> None:
    """Waits until the job holds so many nodes and nothing is under way."""

    def settled() -> bool:
        return width(cluster, job) == nodes and shown(cluster, job).get("state") == "running"

    cluster.wait_for(f"job {job} has {nodes} nodes", settled, timeout_s)


def ended(cluster: Elastic, job: str, expected: str) -> str:
    """Waits for the job's end; its output, once its result is the rigid run's."""
    cluster.wait_state(job, "COMPLETED", timeout_s=300)
    said = output(cluster, job)
    assert "exit 0" in said, said
    assert expected in said.splitlines(), said
    return said


def test_a_job_grows_into_idle_nodes_and_gives_them_to_a_waiting_job(cluster, rigid):
    heat = "elastic/wheel/heat 64 64 {} 5 {}"
    job = start(cluster, heat.format(3000, 20000))
    has_width(cluster, job, 4)
    waiting = cluster.sbatch("-N3", "--exclusive", "-t5", run="sleep 5")
    cluster.wait_state(waiting, "RUNNING", timeout_s=90)
    assert width(cluster, job) == 1
    cluster.wait_state(waiting, "COMPLETED", timeout_s=90)
    has_width(cluster, job, 4)
    said = ended(cluster, job, rigid(heat.format(3000, 0)))
    widths = [int(found) for found in re.findall(r"width (\d+)", said)]
    assert 4 in widths
    assert 1 in widths[widths.index(4) :]
    cluster.wait_empty()


def test_operators_and_users_grow_shrink_and_hold(cluster, rigid):
    heat = "elastic/wheel/heat 64 64 {} 5 {}"
    job = start(cluster, heat.format(3000, 20000))
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
    ended(cluster, job, rigid(heat.format(3000, 0)))


def test_an_application_that_never_answers_keeps_its_nodes(cluster, rigid):
    never = "elastic/wheel/heat 64 64 {} 100000 {}"
    job = start(cluster, never.format(4000, 20000), "1-4", "-w", "n1")
    cluster.wait_for("it was asked", lambda: shown(cluster, job).get("state") == "adding", 90)
    cluster.wait_for(
        "the new nodes are given back",
        lambda: width(cluster, job) == 1 and shown(cluster, job).get("state") == "running", 120,
    )  # fmt: skip
    ended(cluster, job, rigid(never.format(4000, 0)))


@pytest.mark.parametrize("daemon", ["service", "controller", "agent"])
@pytest.mark.parametrize("direction", ["grow", "shrink"])
def test_a_daemon_that_dies_while_a_job_changes_loses_nothing(cluster, rigid, daemon, direction):
    heat = "elastic/wheel/heat 64 64 {} 25 {}"
    job = start(cluster, heat.format(2500, 20000))
    has_width(cluster, job, 4)
    cluster.run("schedbridge", "elastic", "hold", job)
    if direction == "grow":
        cluster.run("schedbridge", "elastic", "shrink", job, "1")
        has_width(cluster, job, 1)
    cluster.run("schedbridge", "elastic", direction, job, "2")
    cluster.wait_for(
        "it changes", lambda: shown(cluster, job).get("state") != "running"
        or width(cluster, job) == 2, 60,
    )  # fmt: skip
    words = [daemon, "n1"] if daemon == "agent" else [daemon]
    cluster.script("kill", *words)
    cluster.script("restart", *words)
    # `hold` is forgotten by a new service: the policy then has it grow again.
    cluster.wait_for(
        "it has settled", lambda: shown(cluster, job).get("state") == "running"
        and shown(cluster, job).get("engine"), 150,
    )  # fmt: skip
    held = width(cluster, job)
    assert held in (1, 2, 4)
    ended(cluster, job, rigid(heat.format(2500, 0)))
    cluster.wait_empty()


def test_a_job_without_launcher_is_never_resized(cluster):
    job = cluster.sbatch("-N2", "--exclusive", "-t5", "--malleable=1-4", run="sleep 1000")
    cluster.wait_state(job, "RUNNING")
    waiting = cluster.sbatch("-N3", "--exclusive", "-t5", run="true")
    cluster.wait_for("it was planned", lambda: cluster.job(waiting)["StartTime"] != "Unknown", 30)
    assert shown(cluster, job).get("engine", "") == ""
    assert width(cluster, job) == 2
    cluster.run("scancel", job)
    cluster.wait_state(waiting, "COMPLETED", timeout_s=60)
