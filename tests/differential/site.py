# SPDX-License-Identifier: Apache-2.0
"""The two clusters: 16 nodes of several kinds, partitions of every kind of sharing.

Both have the same slurm.conf but for what scheduler.conf includes, and plugstack.conf. In the
variants (`tests.differential.variants`) both allocate CPUs in another way, or the bridge has a rule
more.

    n1-n8      2 sockets x 2 cores, 4 GiB      fast: n1-n4, large: n3-n8, rack1..3, rare: n8
    n9-n10     1 socket x 2 cores x 2 threads  ht
    n11-n12    2 sockets x 2 cores x 2 threads ht
    n13-n14    2 sockets x 4 cores, GPUs: 2 a100 at the first socket, 2 v100 at the second
    n15        2 sockets x 2 cores, 2 GPUs of no type, each 4 shards
    n16        1 socket x 4 cores, 16 GiB, /tmp of 20 GB, bandwidth (no_consume), scratch

Weights: n5, n6 (5) before n7, n8 (10) before n1 to n4 (20).
"""

import re
from dataclasses import dataclass
from typing import ClassVar

from cluster.site import FIRST_PORT, Site

from tests.differential.accounts import commands
from tests.differential.variants import VARIANTS, Variant

NODES = 16
STOCK = "backfill-tuned"
"""Slurm's own scheduler, looking every second: it decides the same as with its defaults, sooner."""

_PLAIN = "Sockets=2 CoresPerSocket=2 ThreadsPerCore=1 CPUs=4 RealMemory=4096 TmpDisk=1000"
_HT1 = "Sockets=1 CoresPerSocket=2 ThreadsPerCore=2 CPUs=4 RealMemory=4096 TmpDisk=1000"
_HT2 = "Sockets=2 CoresPerSocket=2 ThreadsPerCore=2 CPUs=8 RealMemory=8192 TmpDisk=1000"
_GPU = "Sockets=2 CoresPerSocket=4 ThreadsPerCore=1 CPUs=8 RealMemory=8192 TmpDisk=1000"
_BIG = "Sockets=1 CoresPerSocket=4 ThreadsPerCore=1 CPUs=4 RealMemory=16384 TmpDisk=20000"

_NODES = (
    ("1-2", f"{_PLAIN} Weight=20 Feature=plain,fast,rack1"),
    ("3", f"{_PLAIN} Weight=20 Feature=plain,fast,large,rack1"),
    ("4", f"{_PLAIN} Weight=20 Feature=plain,fast,large,rack2"),
    ("5-6", f"{_PLAIN} Weight=5 Feature=plain,large,rack2"),
    ("7", f"{_PLAIN} Weight=10 Feature=plain,large,rack3"),
    ("8", f"{_PLAIN} Weight=10 Feature=plain,large,rack3,rare"),
    ("9-10", f"{_HT1} Weight=30 Feature=ht,ht1"),
    ("11-12", f"{_HT2} Weight=30 Feature=ht,ht2"),
    ("13-14", f"{_GPU} Weight=50 Feature=typed Gres=gpu:a100:2,gpu:v100:2"),
    ("15", f"{_PLAIN} Weight=50 Feature=untyped Gres=gpu:2,shard:8"),
    ("16", f"{_BIG} Weight=60 Feature=big Gres=bandwidth:lustre:no_consume:4G,scratch:10"),
)

_GRES = """AutoDetect=off
NodeName=n[13-14] Name=gpu Type=a100 File=/run/slurm/device[0-1] Cores=0-3
NodeName=n[13-14] Name=gpu Type=v100 File=/run/slurm/device[2-3] Cores=4-7
NodeName=n15 Name=gpu File=/run/slurm/device[0-1]
NodeName=n15 Name=shard Count=8
NodeName=n16 Name=bandwidth Type=lustre Count=4G Flags=CountOnly
NodeName=n16 Name=scratch Count=10
"""

_PROLOG = """#!/bin/sh
[ ! -e /etc/slurm/prolog-fails ]
"""

_PARTITIONS = """
main Nodes=n[1-8] Default=YES
all Nodes=n[1-16]
mixed Nodes=n[7-12]
ht Nodes=n[9-12]
gpu Nodes=n[13-15]
typed Nodes=n[13-14]
big Nodes=n16
exclusive Nodes=n[1-4] OverSubscribe=EXCLUSIVE
force Nodes=n[1-4] OverSubscribe=FORCE:2
force1 Nodes=n[1-4] OverSubscribe=FORCE:1
yes Nodes=n[1-4] OverSubscribe=YES:2
peruser Nodes=n[1-8] ExclusiveUser=YES
lln Nodes=n[1-8] LLN=YES
capped Nodes=n[1-8] MaxCPUsPerNode=2
cappedsocket Nodes=n[1-8] MaxCPUsPerSocket=1
cappedmem Nodes=n[1-8] MaxMemPerNode=1000
defmem Nodes=n[1-8] DefMemPerNode=3000
short Nodes=n[1-8] MaxTime=10 DefaultTime=5
narrow Nodes=n[1-8] MaxNodes=2
wide Nodes=n[1-8] MinNodes=2
down Nodes=n[1-8] State=DOWN
inactive Nodes=n[1-8] State=INACTIVE
drained Nodes=n[1-8] State=DRAIN
high Nodes=n[1-8] PriorityTier=10
low Nodes=n[1-8] PriorityTier=1
urgent Nodes=n[1-8] PriorityJobFactor=100
physicsonly Nodes=n[1-8] AllowAccounts=physics
nochem Nodes=n[1-8] DenyAccounts=chem
onlyqos Nodes=n[1-8] AllowQos=twonodes,normal
partqos Nodes=n[1-8] QOS=twonodes
rootonly Nodes=n[1-8] RootOnly=YES
hidden Nodes=n[1-8] Hidden=YES
needsresv Nodes=n[1-8] ReqResv=YES
noroot Nodes=n[1-8] DisableRootJobs=YES
pergpu Nodes=n[13-15] DefCpuPerGPU=2
"""


@dataclass(frozen=True)
class DifferentialSite(Site):
    """One of the two clusters."""

    everywhere: ClassVar[str] = "all"
    accounts: ClassVar[str] = commands(early=True)
    variant: Variant = VARIANTS["plain"]

    def files(self) -> dict[str, str]:
        """With a Prolog, which fails while a file is there."""
        return super().files() | {"prolog": _PROLOG}

    def _gres_conf(self) -> str:
        return _GRES if self.variant.gres else "AutoDetect=off\n"

    def _slurm_conf(self) -> str:
        # What ended is looked at soon, and every look shows all that is remembered.
        conf = super()._slurm_conf().replace("PriorityType=priority/basic\n", "")
        for key, value in {"MinJobAge": "60", **self.variant.settings}.items():
            conf = re.sub(rf"^{key}=.*$", f"{key}={value}", conf, flags=re.MULTILINE)
        return conf

    def _nodes(self) -> str:
        lines = []
        for numbers, rest in _NODES:
            low, _, high = numbers.partition("-")
            ports = "-".join(str(FIRST_PORT + int(n)) for n in (low, high) if n)
            lines.append(
                f"NodeName=n[{numbers}] NodeHostname=pack1 NodeAddr=pack1 Port=[{ports}] {rest}\n"
            )
        found = "".join(lines)
        return found if self.variant.gres else re.sub(r" Gres=\S+", "", found)

    def _partitions(self) -> str:
        return "".join(f"PartitionName={line}\n" for line in _PARTITIONS.strip().splitlines())


def site(name: str, *, bridged: bool, variant: str = "plain") -> DifferentialSite:
    """The cluster with or without the bridge."""
    return DifferentialSite(
        name=name, nodes=NODES, own=0, cpus=4, memory_mib=1024, licenses="matlab:4,ansys:2",
        scheduler="bridge" if bridged else STOCK, bridge=bridged, accounting=True,
        variant=VARIANTS[variant],
        extra=(
            "GresTypes=gpu,shard,bandwidth,scratch",
            "AccountingStorageTRES=gres/gpu,gres/gpu:a100,license/matlab",
            "PriorityType=priority/multifactor", "PriorityWeightQOS=10000",
            "PriorityWeightPartition=1000", "RequeueExitHold=7",
            "Prolog=/etc/slurm/prolog",
        ),
    )  # fmt: skip
