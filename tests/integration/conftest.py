# SPDX-License-Identifier: Apache-2.0
"""A real cluster for the tests: 8 nodes of 4 CPUs with accounting, scheduled by the bridge.

Nothing here skips: where no cluster can be had, the tests fail and say why.
SCHEDBRIDGE_KEEP_CLUSTER=1 leaves it running for the next run; SCHEDBRIDGE_TEST_CLUSTER names it.
"""

import os
from collections.abc import Iterator

import pytest

from tests.integration.decider import Decider, deciding
from tests.integration.slurm import Cluster

NAME = os.environ.get("SCHEDBRIDGE_TEST_CLUSTER", "sbtest")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def session_cluster() -> Iterator[Cluster]:
    cluster = Cluster(NAME, "--nodes", "8", "--cpus", "4", "--accounting")
    with cluster.standing():
        yield cluster


@pytest.fixture
def cluster(session_cluster: Cluster) -> Cluster:
    """The cluster, empty and whole again, however the last test left it."""
    if session_cluster.process("schedbridge", "status").returncode:
        session_cluster.script("restart", "service")
    session_cluster.root("scancel", "--me", "--quiet")
    session_cluster.root("sh", "-c", "squeue -h -o %A | sort -u | xargs -r scancel --quiet")
    session_cluster.wait_empty()

    def whole() -> bool:
        states = session_cluster.run("sinfo", "-N", "-h", "-o", "%N %T").splitlines()
        bad = {line.split()[0] for line in states if line.split()[1] != "idle"}
        if bad:
            session_cluster.process(
                "scontrol", "update", f"NodeName={','.join(sorted(bad))}", "State=RESUME",
                user="root",
            )  # fmt: skip
        return not bad

    session_cluster.wait_for("all nodes idle", whole, 60)
    return session_cluster


@pytest.fixture
def decider(cluster: Cluster) -> Iterator[Decider]:
    with deciding(cluster) as found:
        yield found
