# SPDX-License-Identifier: Apache-2.0
"""The two clusters as Slurm's tests find them; they differ in SchedulerType and its parameters.

LayoutOptions:

    standing   for the tests in expect, which take the cluster as it is: 8 equal nodes of 2 sockets
               x 2 cores with 2 GPUs each, accounting with limits and QOS, licences
    bare       for those of them that cannot be run so: the same nodes without accounting; order of
               submission; jobs packed onto nodes, and soon forgotten
    seed       for those in Python, which make of it what they need, daemons stopped: one node

All of it is in slurm.conf itself: the tests read, change and restore that file.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from cluster.site import FIRST_PORT, SLURM_CONF, Site

from tests.differential.site import STOCK

NODES = 8
HOST = "controller"
_NODE = "CPUs=4 Boards=1 SocketsPerBoard=2 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=4096"


class Layout(StrEnum):
    """What the tests find."""

    STANDING = "standing"
    BARE = "bare"
    SEED = "seed"


@dataclass(frozen=True)
class SuiteSite(Site):
    """One of the two clusters, in one of the layouts."""

    layout: Layout = Layout.STANDING

    def files(self) -> dict[str, str]:
        """With what they could include in them."""
        files = {name: text for name, text in super().files().items() if "/" not in name}
        for name in ("slurm.conf", "slurmdbd.conf.all"):
            if name in files:  # slurmdbd starts where it is said to be only
                files[name] = re.sub(r"(Host)=dbd$", rf"\1={HOST}", files[name], flags=re.MULTILINE)
        if self.bridge:
            files["plugstack.conf"] = _plain("plugstack.conf")
        return files

    def _slurm_conf(self) -> str:
        conf = super()._slurm_conf()
        conf = conf.replace("Include /etc/slurm/scheduler.conf\n", _plain(f"{self.scheduler}.conf"))
        if self.bridge:  # tests wait for so long: that of the other one
            conf = conf.replace("SchedulerParameters=", "SchedulerParameters=bf_interval=1,")
        if self.layout is Layout.STANDING:
            return conf.replace("PriorityType=priority/basic\n", "")
        if self.layout is Layout.BARE:
            conf = conf.replace("MinJobAge=300", "MinJobAge=30")
            return conf.replace("CR_Core_Memory", "CR_Core_Memory,CR_PACK_NODES")
        # As little as can be: the tests' own nodes may have next to no memory, and a node that they
        # set down stays so.
        conf = re.sub(r"DefMemPerCPU=\d+\n", "", conf)
        conf = conf.replace("ReturnToService=2", "ReturnToService=1")
        return conf.replace("CR_Core_Memory", "CR_CPU")

    def _gres_conf(self) -> str:
        if self.layout is Layout.SEED:
            return "AutoDetect=off\n"
        return f"AutoDetect=off\nNodeName=n[1-{self.nodes}] Name=gpu File=/run/slurm/device[0-1]\n"

    def _nodes(self) -> str:
        where = f"NodeHostname={HOST} NodeAddr={HOST}"
        if self.layout is Layout.SEED:
            return f"NodeName=node0 {where} Port={FIRST_PORT} CPUs=4 RealMemory=4096\n"
        ports = f"[{FIRST_PORT + 1}-{FIRST_PORT + self.nodes}]"
        return f"NodeName=n[1-{self.nodes}] {where} Port={ports} {_NODE} Gres=gpu:2\n"

    def _partitions(self) -> str:
        if self.layout is Layout.SEED:
            return "PartitionName=primary Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
        return "".join(
            f"PartitionName={name} Nodes=n[1-{self.nodes}] MaxTime=INFINITE State=UP{rest}\n"
            for name, rest in (("main", " Default=YES"), ("all", ""))
        )


def _plain(snippet: str) -> str:
    """The settings of one of the files that slurm.conf includes elsewhere."""
    lines = (SLURM_CONF / snippet).read_text().splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("#"))


def site(name: str, *, bridged: bool, layout: Layout) -> SuiteSite:
    """The cluster with or without the bridge."""
    extra = ("GresTypes=gpu",) if layout is not Layout.SEED else ()
    if layout is Layout.STANDING:
        extra += ("AccountingStorageTRES=gres/gpu", "PriorityType=priority/multifactor")
    return SuiteSite(
        name=name, nodes=1 if layout is Layout.SEED else NODES, own=0, cpus=4, licenses="matlab:4",
        scheduler="bridge" if bridged else STOCK, bridge=bridged,
        accounting=layout is Layout.STANDING, layout=layout, extra=extra,
    )  # fmt: skip
