# SPDX-License-Identifier: Apache-2.0
"""Nine nodes of unlike sockets, features and disks; a FreePool keeps one, and users are limited.

    node   sockets  features     /tmp
    n1     2        fast, rack1  20 GB
    n2     1        rack1        1 GB
    n3     2        fast, rack2  1 GB
    n4     1        rack2        20 GB
    n5     2        fast, rack1  20 GB   kept: no job may have it
    n6     2        fast, rack1  1 GB
    n7     1        fast, rack2  1 GB
    n8     2        rack2        20 GB
    n9     1        rack1        20 GB

To the service they are alike: 4 CPUs, 4 GiB and two GPUs (one at each socket) each.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.integration.slurm import ROOT, Cluster

sys.path.insert(0, str(ROOT / "docker"))

from cluster import life
from cluster.site import FIRST_PORT, Site

KEPT = "n5"
NODES = tuple(f"n{number}" for number in range(1, 10))
USABLE = tuple(name for name in NODES if name != KEPT)
USERS = ("alice", "bob")
MAX_CPUS = 20
"""Of each user's running jobs."""

RETRY_S = 5
"""Until a refused start is tried again; twice as long other nodes are tried."""
_SERVICE = f"""
planning:
  free_pools:
    - {{name: spare, nodes: {{names: [{KEPT}]}}}}
  limits:
    - {{user: "*", resource: cpus, items: {MAX_CPUS}}}
"""
_FAST, _LARGE = ("n1", "n3", "n5", "n6", "n7"), ("n1", "n4", "n5", "n8", "n9")
_TWO_SOCKETS, _RACK2 = ("n1", "n3", "n5", "n6", "n8"), ("n3", "n4", "n7", "n8")
_PARTITIONS = """
main Default=YES
lln LLN=YES
peruser ExclusiveUser=YES
force OverSubscribe=FORCE:2
capped MaxCPUsPerNode=2
cappedsocket MaxCPUsPerSocket=1
"""


@dataclass(frozen=True)
class _PooledSite(Site):
    def _nodes(self) -> str:
        return "".join(_node(number, name) for number, name in enumerate(NODES, start=1))

    def _partitions(self) -> str:
        return "".join(
            f"PartitionName={line} Nodes=n[1-{len(NODES)}] MaxTime=INFINITE State=UP\n"
            for line in _PARTITIONS.strip().splitlines()
        )

    def _gres_conf(self) -> str:
        two = ",".join(_TWO_SOCKETS)
        one = ",".join(name for name in NODES if name not in _TWO_SOCKETS)
        return (
            "AutoDetect=off\n"
            f"NodeName={two} Name=gpu File=/run/slurm/device0 Cores=0-1\n"
            f"NodeName={two} Name=gpu File=/run/slurm/device1 Cores=2-3\n"
            f"NodeName={one} Name=gpu File=/run/slurm/device[0-1] Cores=0-3\n"
        )


def _node(number: int, name: str) -> str:
    sockets = 2 if name in _TWO_SOCKETS else 1
    features = ["rack2" if name in _RACK2 else "rack1", *(["fast"] if name in _FAST else [])]
    return (
        f"NodeName={name} NodeHostname=pack1 NodeAddr=pack1 Port={FIRST_PORT + number} CPUs=4 "
        f"Sockets={sockets} CoresPerSocket={4 // sockets} ThreadsPerCore=1 RealMemory=4096 "
        f"Gres=gpu:2 TmpDisk={20_000 if name in _LARGE else 1000} Feature={','.join(features)}\n"
    )


class _PooledCluster(Cluster):
    def up(self) -> None:
        self.process_of("down")
        site = _PooledSite(
            name=self.name, nodes=len(NODES), own=0, gres="gpu:2",
            extra=("AllowSpecResourcesUsage=yes",),
        )  # fmt: skip
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
            text = life.SERVICE_CONFIG.read_text() + _SERVICE
            config.write(text.replace("controller:", f"controller:\n  retry_s: {RETRY_S}", 1))
            config.flush()
            life.up(site, Path(config.name))


@contextmanager
def pooled_nodes(name: str) -> Iterator[Cluster]:
    """The cluster; see `Cluster.standing`."""
    cluster = _PooledCluster(name)
    with cluster.standing():
        yield cluster
