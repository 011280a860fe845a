# SPDX-License-Identifier: Apache-2.0
"""CPU time of a cluster's daemons, and other load of the machine meanwhile.

Figures depend on other load: every part of the benchmark records the CPUs used by neither the
cluster nor the benchmark itself ("foreign"), and those taken by the hypervisor ("stolen"). All are
read from /proc and the containers' cgroups (v1 and v2), so that short-lived job processes are
counted, too.
"""

import os
import resource
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# Positions in the first line of /proc/stat: work, and time taken by the hypervisor.
_WORK = (0, 1, 2, 5, 6)
_STOLEN = 7


@dataclass(frozen=True)
class Reading:
    """Seconds since the machine, or the daemon, started."""

    when_s: float
    busy_s: float
    stolen_s: float
    cluster_s: float
    own_s: float
    slurmctld_s: float
    service_s: float


class Meters:
    """Reads the CPU clocks of one cluster's containers."""

    def __init__(self, containers: list[str]) -> None:
        self._groups = {pid: _cpu_group(pid) for pid in map(_first_process, containers)}
        processes = [p for group in self._groups.values() for p in _processes(group)]
        # Debian calls the programs slurmctld-wlm and the like.
        self._slurmctld = [p for p in processes if _program(p).startswith("slurmctld")]
        self._service = [p for p in processes if _is_service(p)]
        if not self._slurmctld:
            raise RuntimeError("no slurmctld runs in the cluster's containers")

    def read(self) -> Reading:
        """All clocks at this instant."""
        clocks = _clocks_s()
        own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return Reading(
            when_s=time.monotonic(),
            busy_s=sum(clocks[i] for i in _WORK),
            stolen_s=clocks[_STOLEN],
            cluster_s=sum(_group_cpu_s(group) for group in self._groups.values()),
            own_s=sum(usage.ru_utime + usage.ru_stime for usage in own),
            slurmctld_s=sum(map(_process_cpu_s, self._slurmctld)),
            service_s=sum(map(_process_cpu_s, self._service)),
        )


def load_between(before: Reading, after: Reading) -> dict[str, float]:
    """CPUs in use between two readings, by user; and the machine's load average afterwards."""
    elapsed_s = max(after.when_s - before.when_s, 1e-9)
    cluster_s, own_s = after.cluster_s - before.cluster_s, after.own_s - before.own_s
    foreign_s = max(0.0, after.busy_s - before.busy_s - cluster_s - own_s)
    shares = {
        "cluster_cpus": cluster_s,
        "slurmctld_cpus": after.slurmctld_s - before.slurmctld_s,
        "service_cpus": after.service_s - before.service_s,
        "foreign_cpus": foreign_s,
        "stolen_cpus": after.stolen_s - before.stolen_s,
    }
    found = {name: round(seconds / elapsed_s, 3) for name, seconds in shares.items()}
    return found | {"load_average_1min": round(os.getloadavg()[0], 2)}


def wait_quiet(most_s: float, foreign_cpus: float = 0.15, over_s: float = 3.0) -> float:
    """Waits until the machine is nearly idle; returns the CPUs in use at the end of it.

    Args:
        most_s: maximum wait; the measurement then records the other load.
        foreign_cpus: maximum use by others that counts as idle.
        over_s: length of one reading.
    """
    deadline = time.monotonic() + most_s
    while True:
        busy_s, when_s = _machine_busy_s(), time.monotonic()
        time.sleep(over_s)
        busy = (_machine_busy_s() - busy_s) / (time.monotonic() - when_s)
        if busy <= foreign_cpus or time.monotonic() > deadline:
            return busy


def _clocks_s() -> list[float]:
    """The machine's CPU clocks since its start: user, nice, system, idle, iowait, ..."""
    with Path("/proc/stat").open() as file:
        return [int(n) / _TICKS_PER_S for n in file.readline().split()[1:]]


def _machine_busy_s() -> float:
    clocks = _clocks_s()
    return sum(clocks[i] for i in _WORK)


def machine() -> dict[str, str | int]:
    """The machine of the measurement."""
    models = [
        line.split(":", 1)[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    memory_kib = int(Path("/proc/meminfo").read_text().split()[1])
    return {
        "cpus": os.cpu_count() or 0,
        "cpu_model": models[0] if models else "unknown",
        "memory_mib": memory_kib // 1024,
        "kernel": os.uname().release,
    }


def _first_process(container: str) -> int:
    out = subprocess.run(
        ["docker", "inspect", "--format", "{{.State.Pid}}", container],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return int(out)


def _cpu_group(pid: int) -> Path:
    """The folder of the cgroup that counts this process's CPU time."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "cpuacct" in controllers.split(","):
            roots = [Path("/sys/fs/cgroup") / part for part in (controllers, "cpuacct")]
            return next(root for root in roots if root.is_dir()) / path.lstrip("/")
        unified = Path("/sys/fs/cgroup") / path.lstrip("/")
        if not controllers and (unified / "cpu.stat").exists():
            return unified
    raise RuntimeError(f"no CPU accounting for process {pid}: neither cgroup v1 cpuacct nor v2")


def _group_cpu_s(group: Path) -> float:
    if (v1 := group / "cpuacct.usage").exists():
        return int(v1.read_text()) / 1e9
    fields = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
    return int(fields["usage_usec"]) / 1e6


def _processes(group: Path) -> list[int]:
    return [int(pid) for file in group.rglob("cgroup.procs") for pid in file.read_text().split()]


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return ""


def _is_service(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return _program(pid).startswith("python") and b"serve" in words


def _process_cpu_s(pid: int) -> float:
    """CPU seconds of a process and the children it has waited for; 0 if it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    return sum(int(n) for n in stat.rsplit(")", 1)[1].split()[11:15]) / _TICKS_PER_S


def cost_of_jobs(before: Reading, after: Reading, jobs: int) -> dict[str, object]:
    """CPU time of slurmctld and the service per job, ms; and the load meanwhile."""
    slurmctld_ms = (after.slurmctld_s - before.slurmctld_s) * 1000 / jobs
    service_ms = (after.service_s - before.service_s) * 1000 / jobs
    return {
        "slurmctld_ms_per_job": round(slurmctld_ms, 2),
        "service_ms_per_job": round(service_ms, 2),
        "controller_ms_per_job": round(slurmctld_ms + service_ms, 2),
        "load": load_between(before, after),
    }
