# SPDX-License-Identifier: Apache-2.0
"""The progress that jobs tell: users write it, and it counts for their own jobs only."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.agent.processes import Processes
from bridge.agent.progress import ProgressFiles, parse
from bridge.agent.use.meter import PROGRESS_S, AgentMeter
from bridge.extensions.sharing.job_readings import JobReadings
from bridge.rpc.pb import agent_pb2 as pb
from tests.unit.agent.made_up import in_job, make_folders, make_process

PAGE = Path(__file__).parents[3] / "docs" / "COSCHEDULING.md"
ME, OTHER = 61001, 61002
WHERE = ("7", "n1")
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="acts as other users: root only")


class Node:
    """A /proc, and the folders of jobs 7 and 8."""

    def __init__(self, path: Path) -> None:
        self.proc, self.directory = path / "proc", path / "jobs"
        self.proc.mkdir()
        folders = make_folders(self.directory, "7", "8")
        self.files = ProgressFiles(Processes(self.proc, folders), folders)

    def process(self, pid: int, job: str = "7") -> None:
        make_process(self.proc, pid, cgroups=in_job(job))

    def tell(self, text: str | bytes, job: str = "7") -> Path:
        path = self.directory / job / "progress"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def test_a_job_tells_its_progress(node):
    assert node.files.read() == {}
    node.process(11)
    node.tell("0.25\n")
    assert node.files.read() == {WHERE: 0.25}


@pytest.mark.parametrize(
    "text", ["", "nan", "inf", "-1", "1.5", "1e9", "0.5 0.6", "half", "0x1", b"\xff", "0" * 33]
)
def test_what_is_no_progress_is_ignored(node, text):
    node.process(11)
    node.tell(text)
    assert node.files.read() == {}


@given(st.binary(max_size=32))
def test_any_text_is_a_number_in_bounds_or_nothing(raw):
    value = parse(raw)
    assert value is None or 0 <= value <= 1


@given(st.floats(0, 1))
def test_numbers_are_read(value):
    assert parse(f"{value:.9f}\n".encode()) == pytest.approx(value, abs=1e-9)


def test_each_job_tells_for_itself_alone(node):
    node.process(11), node.process(12, job="8")
    node.tell("0.9", job="8")
    assert node.files.read() == {("8", "n1"): 0.9}
    node.tell("0.5")
    assert node.files.read() == {WHERE: 0.5, ("8", "n1"): 0.9}


def test_links_and_pipes_are_not_read(node, tmp_path):
    node.process(11)
    secret = tmp_path / "secret"
    secret.write_text("0.5")
    link = node.directory / "7" / "progress"
    link.symlink_to(secret)
    assert node.files.read() == {}
    assert secret.exists()
    link.unlink()
    os.mkfifo(link)
    assert node.files.read() == {}  # and does not wait for a writer
    link.unlink()
    link.mkdir()
    assert node.files.read() == {}


def test_a_file_that_is_just_being_written_changes_nothing(node):
    node.process(11)
    node.tell("0.5")
    assert node.files.read() == {WHERE: 0.5}
    path = node.tell("")
    assert node.files.read() == {WHERE: 0.5}
    node.tell("0.6")
    assert node.files.read() == {WHERE: 0.6}
    path.unlink()
    assert node.files.read() == {}


def test_a_job_without_processes_tells_nothing(node):
    node.process(11, job="8")
    node.tell("0.5")
    assert node.files.read() == {}


def as_user(uid: int, script: str, **environment: str) -> int:
    """The exit code of a script of another user, under `set -e`."""
    return subprocess.run(
        ["/bin/sh", "-e", "-c", script], user=uid, group=uid, extra_groups=[], env=environment,
        cwd="/", stderr=subprocess.DEVNULL, check=False,
    ).returncode  # fmt: skip


@root_only
def test_no_user_hides_or_blocks_the_progress_of_anothers_job(tmp_path):
    """With the lines of the documentation: they end no script, whether there is a folder or not."""
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == 0 and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o711)
    (block,) = re.findall(r"```\n(echo [^`]*progress[^`]*)```", PAGE.read_text())
    directory = tmp_path / "jobs"
    recipe = block.replace("/dev/shm/schedbridge", str(directory)) + "\nexit 7"
    assert str(directory) in recipe
    assert as_user(ME, recipe, SLURM_JOB_ID="7") == 7  # neither agent nor plugin
    folders = make_folders(directory, "7", uid=ME)
    make_folders(directory, "8", uid=OTHER)
    for name in (f"{ME}.7", f"{ME}.7.new", "7/progress", "7/.progress", "9", "9/progress"):
        assert as_user(OTHER, f"touch {directory}/{name}")
        assert as_user(OTHER, f"mkdir {directory}/{name}")
    many = (
        f"for i in $(seq 5000); do : >{directory}/8/$i.new; done; echo 0.1 >{directory}/8/progress"
    )
    assert not as_user(OTHER, many)
    assert as_user(OTHER, f"mv {directory}/8 {directory}/7")
    assert as_user(OTHER, f"rm -rf {directory}/7 && test ! -e {directory}/7")
    proc = tmp_path / "proc"
    make_process(proc, 11, ME, environment="SLURM_JOB_ID=7\0SLURMD_NODENAME=n1\0")
    make_process(proc, 12, OTHER, environment="SLURM_JOB_ID=7\0SLURMD_NODENAME=n1\0")
    files = ProgressFiles(Processes(proc, folders), folders)
    assert files.read() == {}
    assert as_user(ME, recipe, SLURM_JOB_ID="7") == 7
    assert files.read() == {WHERE: 0.42}
    assert as_user(OTHER, f"rm -f {directory}/7/progress")
    assert files.read() == {WHERE: 0.42}


def test_the_agent_sends_it_and_the_service_takes_the_least(tmp_path):
    told, now = {WHERE: 0.5, ("7", ""): 0.25, ("9", "n1"): 0.1}, [0.0]
    root = tmp_path / "cgroup"
    job = root / "cpuacct" / "slurm_n1" / "uid_1000" / "job_7"
    job.mkdir(parents=True)
    (job / "cpuacct.usage").write_text("1000000000")
    meter = AgentMeter(
        ("n1",), Processes(tmp_path / "proc"), root,
        clock=lambda: now[0], progress=lambda: told,
    )  # fmt: skip
    (tmp_path / "proc").mkdir()
    use = meter.read()
    assert [(each.job, each.progress) for each in use.jobs] == [("7", 0.25)]
    told[WHERE] = told["7", ""] = 0.75
    assert meter.read().jobs[0].progress == 0.25
    now[0] += PROGRESS_S
    assert meter.read().jobs[0].progress == 0.75


def test_readings_hold_what_jobs_tell():
    readings = JobReadings()

    def took(**told):
        use = pb.Use()
        for node in ("n1", "n2"):
            use.nodes.add(node=node)
            job = use.jobs.add(job="7", node=node, cpu_s=1)
            if node in told:
                job.progress = told[node]
        readings.took(("n1", "n2"), pb.Uses(uses=[use]))
        return readings.of("7", ["n1", "n2"]).progress

    assert took() == -1
    assert took(n1=0.5) == 0.5
    assert took(n1=0.5, n2=0.25) == 0.25
    assert took(n1=float("nan"), n2=0.5) == 0.5
    assert took(n1=2.0) == -1
    assert took(n1=-0.5) == -1
