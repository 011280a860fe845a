# SPDX-License-Identifier: Apache-2.0
"""Two clusters with three MPIs: one scheduled by Slurm itself (`jobs.py`), one by the bridge
(`whole.py`).

SCHEDBRIDGE_KEEP_CLUSTER=1 leaves them running for the next run; SCHEDBRIDGE_ELASTIC_CLUSTER and
SCHEDBRIDGE_WHOLE_CLUSTER name them.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.elastic.jobs import Elastic
from tests.integration.elastic.whole import CONFIG, HEAT, PAUSE, RULES, WAITS

NAME = os.environ.get("SCHEDBRIDGE_ELASTIC_CLUSTER", "sbelastic")
POLICY = "malleable-performance"
WHOLE = os.environ.get("SCHEDBRIDGE_WHOLE_CLUSTER", "sbwhole")


@pytest.fixture(scope="session")
def session_elastic() -> Iterator[Elastic]:
    cluster = Elastic(
        NAME, "--nodes", "5", "--containers", "5", "--no-bridge", "--scheduler", "backfill",
        "--image", "mpi", "--set",
        "SchedulerParameters=permit_job_expansion,bf_interval=1,sched_min_interval=100000",
    )  # fmt: skip
    with cluster.standing():
        cluster.compile()
        yield cluster


@pytest.fixture
def elastic(session_elastic: Elastic) -> Elastic:
    """The cluster, empty."""
    session_elastic.root("sh", "-c", "squeue -h -o %A | sort -u | xargs -r scancel --quiet")
    session_elastic.wait_empty()
    return session_elastic


@pytest.fixture(scope="session")
def session_whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elastic]:
    file: Path = tmp_path_factory.mktemp("whole") / "bridge.yaml"
    text = CONFIG.read_text().replace("policy: slurm-like", f"policy: {POLICY}")
    file.write_text(f"{text}\nresizing: {json.dumps(WAITS)}\nplanning: {json.dumps(RULES)}\n")
    cluster = Elastic(
        WHOLE, "--nodes", "4", "--cpus", "4", "--image", "mpi", "--agents", "--accounting",
        "--service-config", str(file), "--set", "SlurmdTimeout=120",
    )  # fmt: skip
    with cluster.standing(lambda: cluster.compile(["wheel"], "examples/heat.c")):
        yield cluster


@pytest.fixture(scope="module")
def policy() -> str:
    """In force until the service restarts; a module may have its own."""
    return POLICY


@pytest.fixture(scope="module")
def whole(session_whole: Elastic, policy: str) -> Elastic:
    """The cluster with the module's policy."""
    session_whole.run("sh", "-c", "cat >/tmp/policy.yaml", user="root", stdin=policy)
    session_whole.root("schedbridge", "policy", "set", "/tmp/policy.yaml")
    return session_whole


@pytest.fixture
def cluster(whole: Elastic) -> Iterator[Elastic]:
    """The cluster, empty before and after; all its nodes are idle at the end."""
    emptied(whole)
    yield whole
    emptied(whole)
    whole.wait_for(
        "all nodes are idle",
        lambda: set(whole.root("sinfo", "-h", "-N", "-o", "%T").split()) == {"idle"}, 60,
    )  # fmt: skip


def emptied(whole: Elastic) -> None:
    whole.root("sh", "-c", "squeue -h -o %A | sort -u | xargs -r scancel --quiet")
    whole.wait_empty()


@pytest.fixture(scope="session")
def rigid(session_whole: Elastic) -> str:
    """The result of `HEAT` that runs alone on one node, without pauses; made while it is idle."""
    return session_whole.rigid(HEAT.format(1).removesuffix(PAUSE) + " 0")
