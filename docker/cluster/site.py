# SPDX-License-Identifier: Apache-2.0
"""What a cluster looks like: its nodes, partitions and licences, and the files that say so.

Words
    own       a node with a container of its own: its loss can be played true to life
    packed    one of many slurmds in one container, told apart by their ports: the way to a
              thousand nodes on a small machine

Nodes are n1..nN, the own ones first. Partition `main` holds all of them (the default), `left` the
first two thirds, `right` the last two thirds, so that the middle belongs to all three. The first
half has the feature `fast`, the rest `large`.
"""

import io
import os
import re
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from cluster.certificates import File
from cluster.engine import ROOT, Trouble
from cluster.switches import ASIDE, FILE, READERS, plugin_of, topology_text

SCHEDULERS = ("bridge", "backfill", "backfill-tuned")
PACK = 250
"""Most slurmds in one container."""
FIRST_PORT = 7000
GPUS = 64
"""Most devices that `role` prepares."""
SLURM_CONF = ROOT / "slurm_conf"
SNIPPETS = ("bridge.conf", "backfill.conf", "backfill-tuned.conf", "plugstack.conf")


@dataclass(frozen=True)
class Site:
    """One cluster as it was asked for.

    Raises:
        Trouble: at construction, where it is impossible.
    """

    everywhere: ClassVar[str] = "main"
    """The partition that holds every node."""
    accounts: ClassVar[str] = ""
    """Shell lines that make further accounts and QOS, before slurmctld looks for them."""

    name: str = os.environ.get("SCHEDBRIDGE_CLUSTER") or "schedbridge"
    nodes: int = 4
    own: int = 4
    cpus: int = 4
    memory_mib: int = 4096
    gres: str = ""
    licenses: str = "matlab:4"
    scheduler: str = "bridge"
    bridge: bool = True
    accounting: bool = False
    cgroups: bool = False
    agents: bool = False
    power_files: str = ""
    topology: str = ""
    topology_for: str = "all"
    extra: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:  # noqa: PLR0912 - one line for each mistake
        for option, value, low, high in (
            ("--nodes", self.nodes, 1, 5000),
            ("--containers", self.own, 0, 64),
            ("--cpus", self.cpus, 1, 1024),
            ("--memory-mib", self.memory_mib, 64, 1 << 24),
        ):
            if not low <= value <= high:
                raise Trouble(f"{option} must be {low} to {high}, not {value}")
        if self.power_files and not Path(self.power_files).is_dir():
            raise Trouble(f"--power-files: there is no directory {self.power_files}")
        if self.gres and not re.fullmatch(r"\w+:[1-9]\d*(,\w+:[1-9]\d*)*", self.gres):
            raise Trouble(f"--gres must look like gpu:2 or gpu:2,fpga:1, not '{self.gres}'")
        if any(
            int(part.split(":")[1]) > GPUS for part in self.gres.split(",") if part[:4] == "gpu:"
        ):
            raise Trouble(f"--gres: at most {GPUS} gpu, not '{self.gres}'")
        if self.licenses and not re.fullmatch(r"\w+:\d+(,\w+:\d+)*", self.licenses):
            raise Trouble(f"--licenses must look like matlab:4, not '{self.licenses}'")
        if self.scheduler not in SCHEDULERS:
            raise Trouble(f"--scheduler must be one of {', '.join(SCHEDULERS)}")
        for option, wanted in (("--scheduler bridge", self.scheduler == "bridge"),
                               ("--agents", self.agents)):  # fmt: skip
            if wanted and not self.bridge:
                raise Trouble(f"--no-bridge and {option} contradict each other")
        if self.topology_for not in READERS:
            raise Trouble(f"--topology-for must be one of {', '.join(READERS)}")
        if self.topology:
            topology_text(self.topology, self.nodes)
        if self.topology_for == "bridge" and not (self.topology and self.bridge):
            raise Trouble("--topology-for bridge needs --topology, and the bridge")
        for line in self.extra:
            if not re.fullmatch(r"\w+=.*", line):
                raise Trouble(f"--set must look like KEY=VALUE, not '{line}'")

    def containers(self) -> dict[str, range]:
        """Hosts of slurmds: their names, and the numbers of the nodes they hold."""
        own = min(self.own, self.nodes)
        hosts = {f"n{number}": range(number, number + 1) for number in range(1, own + 1)}
        rest = self.nodes - own
        packs = -(-rest // PACK)
        for pack in range(packs):
            first = own + 1 + rest * pack // packs
            hosts[f"pack{pack + 1}"] = range(first, own + 1 + rest * (pack + 1) // packs)
        return hosts

    @property
    def topology_file(self) -> str:
        """Where in /etc/slurm the switches are described."""
        return FILE if self.topology_for == "all" else ASIDE

    def files(self) -> dict[str, str]:
        """All of /etc/slurm but the munge key."""
        files = {
            "slurm.conf": self._slurm_conf(),
            "scheduler.conf": scheduler_conf(self.scheduler),
            "cgroup.conf": "CgroupPlugin=cgroup/v1\nConstrainRAMSpace=yes\n"
            if self.cgroups
            else "CgroupPlugin=disabled\n",
            "gres.conf": self._gres_conf(),
        }
        for name in SNIPPETS:
            files[f"schedbridge/{name}"] = (SLURM_CONF / name).read_text()
        if self.topology:
            files[self.topology_file] = topology_text(self.topology, self.nodes)
        if self.bridge:
            files["plugstack.conf"] = "include /etc/slurm/schedbridge/plugstack.conf\n"
            if self.cgroups and self.agents:
                files["plugstack.conf"] += "optional spank_bridge_shares.so\n"
        if self.accounting:
            files["slurmdbd.conf.all"] = _lines(
                DbdHost="dbd", SlurmUser="slurm", AuthType="auth/munge",
                LogFile="/var/log/slurm/slurmdbd.log", PidFile="/run/slurm/slurmdbd.pid",
                StorageType="accounting_storage/mysql", StorageHost="localhost",
                StorageUser="slurm", StorageLoc="slurm_acct_db",
            )  # fmt: skip
        return files

    def _gres_conf(self) -> str:
        lines = ["AutoDetect=off"]
        for part in filter(None, self.gres.split(",")):
            name, count = part.split(":")
            line = f"NodeName=n[1-{self.nodes}] Name={name} Count={count}"
            if name == "gpu":  # Slurm ignores GPUs without device files
                line += f" File=/run/slurm/device{_span(range(int(count)), 0)}"
            lines.append(line)
        return "\n".join(lines) + "\n"

    def _slurm_conf(self) -> str:
        # A node is missed soon where there are few; many share two processors and answer late.
        node_timeout_s = 30 if self.nodes <= 64 else 300
        conf = _lines(
            ClusterName=self.name, SlurmctldHost="controller", SlurmUser="slurm",
            AuthType="auth/munge", CredType="cred/munge",
            StateSaveLocation="/var/lib/slurm/state",
            SlurmdSpoolDir="/var/spool/slurmd/%n",
            SlurmctldPidFile="/run/slurm/slurmctld.pid",
            SlurmdPidFile="/run/slurm/slurmd-%n.pid",
            SlurmctldLogFile="/var/log/slurm/slurmctld.log",
            SlurmdLogFile="/var/log/slurm/slurmd-%n.log",
            SlurmctldDebug="info", SlurmdDebug="info",
            # One volume holds everybody's configuration; there are no others to differ from.
            DebugFlags="NO_CONF_HASH",
            SlurmdTimeout=node_timeout_s, SlurmctldTimeout=30, MessageTimeout=30, KillWait=5,
            MinJobAge=300, MaxJobCount=200_000, MaxArraySize=100_001,
            ReturnToService=2, SlurmdParameters="config_overrides", MpiDefault="none",
            PriorityType="priority/basic",
            SelectType="select/cons_tres", SelectTypeParameters="CR_Core_Memory",
            DefMemPerCPU=max(1, self.memory_mib // self.cpus),
        )  # fmt: skip
        if self.cgroups:
            conf += _lines(
                ProctrackType="proctrack/cgroup", TaskPlugin="task/cgroup",
                JobAcctGatherType="jobacct_gather/cgroup",
            )  # fmt: skip
        else:
            conf += _lines(
                ProctrackType="proctrack/linuxproc", TaskPlugin="task/none",
                JobAcctGatherType="jobacct_gather/none",
            )  # fmt: skip
        if self.accounting:
            conf += _lines(
                AccountingStorageType="accounting_storage/slurmdbd",
                AccountingStorageHost="dbd",
                AccountingStorageEnforce="associations,limits,qos",
            )  # fmt: skip
        if self.gres:
            conf += _lines(GresTypes=",".join(part.split(":")[0] for part in self.gres.split(",")))
        if self.topology and self.topology_for == "all":
            text = topology_text(self.topology, self.nodes)
            conf += _lines(TopologyPlugin=plugin_of(text))
        if self.licenses:
            conf += _lines(Licenses=self.licenses)
        conf += "Include /etc/slurm/scheduler.conf\n" + self._nodes() + self._partitions()
        return conf + "".join(f"{line}\n" for line in self.extra)

    def _nodes(self) -> str:
        each = (
            f"CPUs={self.cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={self.cpus} "
            f"ThreadsPerCore=1 RealMemory={self.memory_mib}"
        )
        if self.gres:
            each += f" Gres={self.gres}"
        lines = []
        half = -(-self.nodes // 2)
        for host, numbers in self.containers().items():
            # The halves differ by a feature, so a host that holds the border needs two lines.
            for feature, part in (
                ("fast", range(numbers.start, min(numbers.stop, half + 1))),
                ("large", range(max(numbers.start, half + 1), numbers.stop)),
            ):
                if not part:
                    continue
                line = f"NodeName={names(part)} NodeHostname={host} NodeAddr={host} {each}"
                if host.startswith("pack"):
                    line += f" Port={_span(part, FIRST_PORT)}"
                lines.append(f"{line} Feature={feature}\n")
        return "".join(lines)

    def _partitions(self) -> str:
        third = self.nodes // 3
        parts = {
            "main": f"{names(range(1, self.nodes + 1))} Default=YES",
            "left": names(range(1, self.nodes - third + 1)),
            "right": names(range(third + 1, self.nodes + 1)),
        }
        return "".join(
            f"PartitionName={name} Nodes={nodes} MaxTime=INFINITE State=UP\n"
            for name, nodes in parts.items()
        )


def names(numbers: range) -> str:
    """The hostlist of a row of nodes, e.g. n[5-8]."""
    return f"n{_span(numbers, 0)}"


def scheduler_conf(scheduler: str) -> str:
    """What slurm.conf includes to be scheduled by this one."""
    return f"Include /etc/slurm/schedbridge/{scheduler}.conf\n"


def archive(files: dict[str, str], further: Iterable[File] = ()) -> bytes:
    """A tar of /etc/slurm: the files, and a munge key of this cluster alone."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in files.items():
            _add(tar, name, text.encode(), 0o755 if text.startswith("#!") else 0o644, "root")
        for entry in further:
            _add(tar, *entry)
        _add(tar, "munge.key", os.urandom(128), 0o400, "munge")
    return buffer.getvalue()


def _add(tar: tarfile.TarFile, name: str, data: bytes, mode: int, owner: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.uname, entry.gname = len(data), mode, owner, owner
    tar.addfile(entry, io.BytesIO(data))


def _span(numbers: range, base: int) -> str:
    low, high = numbers.start + base, numbers.stop - 1 + base
    return str(low) if low == high else f"[{low}-{high}]"


def _lines(**settings: object) -> str:
    return "".join(f"{key}={value}\n" for key, value in settings.items())
