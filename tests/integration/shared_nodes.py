# SPDX-License-Identifier: Apache-2.0
"""The cluster of the tests of jobs that share nodes: two nodes, and a partition for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.slurm import Cluster

CONFIG = Path(__file__).parents[2] / "slurm_conf" / "bridge.yaml"
PLANNING = """
planning:
  coscheduling: [{partition: share}]
"""
PARTITION = "PartitionName=share Nodes=n[1-2] OverSubscribe=YES:2 MaxTime=INFINITE State=UP"


@contextmanager
def shared_nodes(name: str, *options: str) -> Iterator[Cluster]:
    """A cluster with agents; see `Cluster.standing`.

    Args:
        name: of the cluster.
        options: further ones of `scripts/cluster up`.
    """
    cluster = Cluster(
        name, "--nodes", "2", "--containers", "2", "--cpus", "2", "--agents", "--set", PARTITION,
        *options,
    )  # fmt: skip
    with cluster.standing():
        yield cluster


def with_service(folder: Path) -> tuple[str, str]:
    """The options for a service that lets jobs share the partition's nodes.

    Args:
        folder: for its configuration.
    """
    file = folder / "bridge.yaml"
    file.write_text(CONFIG.read_text() + PLANNING)
    return "--service-config", str(file)
