# SPDX-License-Identifier: Apache-2.0
"""What jobs use, from made-up trees of cgroups and processes; and the message made of it."""

import os

import pytest

from bridge.agent.processes import Processes
from bridge.agent.use.batches import APART_S, MAX, Batches
from bridge.agent.use.cgroups import NodeCgroups, usable_cpus
from bridge.agent.use.job_use import PROCESSES_S, JobUse
from bridge.agent.use.meter import AgentMeter
from bridge.agent.use.process_use import LOOKS, ProcessUse
from bridge.extensions.power.on_nodes.node_service import differs
from bridge.rpc.pb import agent_pb2 as pb
from tests.unit.agent.made_up import make_folders, make_process

MIB = 1 << 20


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(str(value))


def list_processes(folder, pids):
    """The processes of a job are in its step."""
    write(folder / "cgroup.procs", "")
    write(folder / "step_0" / "cgroup.procs", "".join(f"{pid}\n" for pid in pids))


class V1:
    def __init__(self, root, base="slurm_n1"):
        self.root, self.base = root, base

    def total(self, cpu_s):
        write(self.root / "cpuacct" / self.base / "cpuacct.usage", int(cpu_s * 1e9))

    def job(self, number, cpu_s, mib, uid=1000):
        below = f"{self.base}/uid_{uid}/job_{number}"
        write(self.root / "cpuacct" / below / "cpuacct.usage", int(cpu_s * 1e9))
        write(self.root / "cpuacct" / below / "step_0" / "cpuacct.usage", 5)
        write(self.root / "memory" / below / "memory.usage_in_bytes", mib * MIB)

    def processes(self, number, *pids, uid=1000):
        folder = self.root / "cpuacct" / self.base / f"uid_{uid}" / f"job_{number}"
        list_processes(folder, pids)

    def swap(self, number, mib, uid=1000):
        folder = self.root / "memory" / self.base / f"uid_{uid}" / f"job_{number}"
        memory = int((folder / "memory.usage_in_bytes").read_text())
        write(folder / "memory.memsw.usage_in_bytes", memory + mib * MIB)


class V2:
    def __init__(self, root, base="system.slice/n1_slurmstepd.scope"):
        self.root, self.base = root, base
        write(root / "cgroup.controllers", "cpu memory")

    def total(self, cpu_s):
        write(self.root / self.base / "cpu.stat", f"usage_usec {int(cpu_s * 1e6)}\nuser_usec 1\n")

    def job(self, number, cpu_s, mib):
        folder = self.root / self.base / f"job_{number}"
        write(folder / "cpu.stat", f"usage_usec {int(cpu_s * 1e6)}\nuser_usec 1\n")
        write(folder / "memory.current", mib * MIB)
        write(folder / "step_0" / "cpu.stat", "usage_usec 1\n")

    def processes(self, number, *pids):
        list_processes(self.root / self.base / f"job_{number}", pids)

    def swap(self, number, mib):
        write(self.root / self.base / f"job_{number}" / "memory.swap.current", mib * MIB)


@pytest.fixture(
    params=[
        V1,
        V2,
        lambda root: V1(root, "slurm"),
        lambda root: V2(root, "slurmstepd.scope"),
        lambda root: V2(root, "system.slice/slurmstepd.scope"),
    ],
    ids=["v1 named", "v2 named", "v1", "v2 root", "v2"],
)
def cgroups(request, tmp_path):
    return request.param(tmp_path / "cgroup")


def test_jobs_and_their_node(cgroups, tmp_path):
    use = JobUse(["n1"], Processes(tmp_path), cgroups.root, tmp_path)
    cgroups.total(100)
    cgroups.job(7, 40, 300)
    first = use.read(10.0)["n1"]
    assert (first.busy_cpus, first.jobs["7"].cpus, first.jobs["7"].memory_mib) == (None, None, 300)
    cgroups.total(104)
    cgroups.job(7, 43, 200)
    cgroups.job(8, 1, 10)
    found = use.read(12.0)["n1"]
    assert found.busy_cpus == pytest.approx(2)
    assert found.jobs["7"].cpus == pytest.approx(1.5)
    assert found.jobs["7"].memory_mib == 200
    assert found.jobs["8"].cpus is None  # a first reading
    assert set(found.jobs) == {"7", "8"}


def test_a_cgroup_without_processes_is_no_idle_job(cgroups):
    """A reboot of the node, or a killed slurmd, may leave it behind."""
    cgroups.total(20)
    for job, pids in ((7, (41,)), (8, ())):
        cgroups.job(job, 12, 100)
        cgroups.processes(job, *pids)
    node = NodeCgroups("n1", alone=True, root=cgroups.root)
    assert set(node.jobs()) == {"7"}
    cgroups.processes(8, 42)
    assert set(node.jobs()) == {"7", "8"}
    cgroups.processes(7)
    assert set(node.jobs()) == {"8"}


def test_a_job_that_is_swapped_out_waits_for_memory(cgroups, tmp_path):
    """While its swap grows by 16 MiB in 10 s, and for 10 s after that; what is out stays out."""
    use, waits = JobUse(["n1"], Processes(tmp_path), cgroups.root, tmp_path), []
    for at, mib in enumerate([None, 100, 101, 110, 112, 120, *[120] * 25, 40, 40, 57]):
        cgroups.job(7, at, 300)
        cgroups.job(8, at, 300)
        if mib is not None:
            cgroups.swap(7, mib)
        jobs = use.read(float(at))["n1"].jobs
        waits.append(jobs["7"].pressure)
        assert jobs["8"].pressure is None
    assert waits == [None] * 5 + [1.0] * 18 + [None] * 10 + [1.0]


def test_a_machine_that_swaps_waits_for_memory(tmp_path):
    now = [0.0]
    meter = AgentMeter(["n1"], Processes(tmp_path), tmp_path, clock=lambda: now[0], proc=tmp_path)
    pages = 16 * MIB // os.sysconf("SC_PAGE_SIZE")
    waits = []
    for swapped in (None, "nr_free 7\npswpin 9", 0, pages - 1, pages, pages, pages):
        if swapped is not None:
            write(tmp_path / "vmstat", f"pswpin 3\npswpout {swapped}\n" if
                  isinstance(swapped, int) else swapped)  # fmt: skip
        now[0] += 5
        (node,) = meter.read().nodes
        waits.append(node.memory_pressure if node.HasField("memory_pressure") else None)
    assert waits == [None, None, None, None, 1.0, 1.0, 1.0]


def test_another_nodes_cgroups_are_not_taken(tmp_path):
    V1(tmp_path, "slurm_n2").job(7, 1, 1)
    V1(tmp_path, "slurm").job(8, 1, 1)
    assert NodeCgroups("n1", alone=False, root=tmp_path).jobs() is None
    assert set(NodeCgroups("n1", alone=True, root=tmp_path).jobs()) == {"8"}


def test_without_cgroups_of_jobs_the_root_is_the_node(tmp_path):
    write(tmp_path / "cpuacct" / "cpuacct.usage", 5 * 10**9)
    assert NodeCgroups("n1", alone=True, root=tmp_path).cpu_s() == 5
    assert NodeCgroups("n1", alone=False, root=tmp_path).cpu_s() is None
    write(tmp_path / "cgroup.controllers", "")
    write(tmp_path / "cpu.stat", "usage_usec 7000000\n")
    assert NodeCgroups("n1", alone=True, root=tmp_path).cpu_s() == 7


def test_a_container_has_the_cpus_of_its_quota(tmp_path):
    here = len(os.sched_getaffinity(0))
    assert usable_cpus(tmp_path) == here
    write(tmp_path / "cpu" / "cpu.cfs_quota_us", 50_000)
    write(tmp_path / "cpu" / "cpu.cfs_period_us", 100_000)
    assert usable_cpus(tmp_path) == 0.5
    write(tmp_path / "cpu" / "cpu.cfs_quota_us", -1)
    assert usable_cpus(tmp_path) == here
    write(tmp_path / "cpu.max", "25000 100000")
    assert usable_cpus(tmp_path) == 0.25
    write(tmp_path / "cpu.max", "max 100000")
    assert usable_cpus(tmp_path) == here


# ------------------------------------------------------------------ processes


@pytest.fixture
def proc(tmp_path):
    folder = tmp_path / "proc"
    folder.mkdir()
    own = os.geteuid()
    tick, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")

    def process(pid, cpu_s, mib=1, *, job=7, node="n1", start=1, user=own):
        words = f"SLURM_JOB_ID={job}\0SLURMD_NODENAME={node}\0" if job else "A=b\0"
        made = make_process(folder, pid, user, environment=words)
        cpu, rest = f"{int(cpu_s * tick)} 0", "0 " * 6
        rss = mib * MIB // page
        (made / "stat").write_text(f"{pid} (a) b) S {'0 ' * 10}{cpu} {rest}{start} 0 {rss} 0")

    process.path = folder
    process.seen = Processes(folder, make_folders(tmp_path / "jobs", "7", "8", "9"))
    return process


def test_the_processes_of_a_job_add_up(proc):
    use = ProcessUse(proc.seen, proc.path)
    proc(11, 5, 10)
    proc(12, 7, 20)
    proc(13, 9, job=0)
    proc(14, 9, user=0, job=0)
    first = use.read()
    assert list(first) == [("7", "n1")]
    assert (first["7", "n1"].cpu_s, first["7", "n1"].memory_bytes >> 20) == (0, 30)
    proc(11, 6)
    proc(12, 9, start=2)  # another process of this number, all of whose time is new
    proc(15, 3, job=8)
    found = use.read()
    assert found["7", "n1"].cpu_s == pytest.approx(1 + 9)
    assert found["8", "n1"].cpu_s == pytest.approx(3)


def test_a_process_that_slurm_puts_into_a_job_a_moment_later_counts(proc):
    use = ProcessUse(proc.seen, proc.path)
    proc(11, 1, job=0)
    assert use.read() == {}
    proc(11, 2)
    assert use.read()["7", "n1"].cpu_s == pytest.approx(1)
    proc(12, 1, job=0)
    for _ in range(LOOKS):
        use.read()
    proc(12, 2, job=9)
    assert ("9", "n1") not in use.read()


def test_several_nodes_of_a_machine_without_cgroups(proc, tmp_path):
    use = JobUse(["n1", "n2"], proc.seen, tmp_path, proc.path)
    proc(11, 0, node="n2")
    proc(12, 0, node="", job=8)
    assert use.read(100.0)["n1"].jobs["8"].memory_mib == 1
    proc(11, 5, node="n2")
    found = use.read(100.0 + PROCESSES_S / 2)  # not read again so soon
    assert found["n2"].jobs["7"].cpus is None
    found = use.read(100.0 + PROCESSES_S)
    assert found["n2"].jobs["7"].cpus == pytest.approx(5 / PROCESSES_S)
    assert found["n2"].busy_cpus == pytest.approx(5 / PROCESSES_S)
    assert set(found["n1"].jobs) == {"8"}


# ------------------------------------------------------------------ messages


def sent(*powers, batches=None):
    """Numbers of readings in each message, and seconds between them, one reading a second."""
    batches, found = batches or Batches(differs), []
    for second, watts in enumerate(powers):
        use = pb.Use()
        node = use.nodes.add(node="n1")
        if watts is not None:
            node.watts = watts
        message = batches.add(use, 100.0 + second)
        if message is not None:
            found.append((second, [each.ago_ms // 1000 for each in message.uses]))
    return found


def test_readings_that_hardly_differ_are_collected():
    steady = [100, *[104, 97] * MAX]
    collected = list(range(MAX - 1, -1, -1))
    assert sent(*steady) == [(0, [0]), (MAX, collected), (2 * MAX, collected)]


@pytest.mark.parametrize("change", [111, 89, None])
def test_a_large_change_is_sent_soon(change):
    assert sent(100, 100, 100, change)[:2] == [(0, [0]), (3, [2, 1, 0])]
    assert sent(100, *[change] * 3)[1] == (APART_S, [2, 1, 0])


def test_after_another_service_came_the_first_reading_is_sent_at_once():
    batches = Batches(differs)
    sent(100, 100, batches=batches)
    batches.forget()
    assert sent(100, batches=batches) == [(0, [0])]
