# SPDX-License-Identifier: Apache-2.0
"""The progress that jobs tell: users write it, and it counts for their own jobs only."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.agent.power.choice import PowerSettings
from bridge.agent.power.meter import PROGRESS_S, AgentMeter
from bridge.agent.processes import Processes
from bridge.agent.progress import ProgressFiles, parse
from bridge.agent.public_folder import make_public
from bridge.rpc.agents.job_readings import JobReadings
from bridge.rpc.pb import agent_pb2 as pb
from tests.unit.agent.made_up import in_job, make_process

ME, OTHER = 1000, 2000
WHERE = ("7", "n1")


class Node:
    """A /proc and a directory of files; all users are made up, so tests need root."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.folder = folder / "proc", folder / "progress"
        self.proc.mkdir()
        assert make_public(self.folder)
        self.files = ProgressFiles(Processes(self.proc), self.folder, self.proc)

    def process(self, pid: int, user: int = ME, job: str = "7") -> None:
        os.chown(make_process(self.proc, pid, user, cgroups=in_job(job)), user, user)

    def tell(self, text: str | bytes, user: int = ME, name: str = "") -> Path:
        path = self.folder / (name or f"{user}.7")
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        os.chown(path, user, user)
        return path


@pytest.fixture
def node(tmp_path):
    if os.geteuid():
        pytest.skip("needs root to make files of several users")
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


def test_nobody_tells_the_progress_of_anothers_job(node):
    node.process(11)
    for path in (node.tell("0.9", user=OTHER), node.tell("0.9", user=OTHER, name=f"{ME}.7")):
        assert node.files.read() == {}
        path.unlink(missing_ok=True)
    # Without cgroups anybody can claim to be of a job: then nobody tells anything.
    node.tell("0.5")
    assert node.files.read() == {WHERE: 0.5}
    node.process(12, user=OTHER)
    node.tell("0.9", user=OTHER)
    assert node.files.read() == {}


def test_a_name_that_another_took_is_free_again(node):
    node.process(11)
    squatted = node.tell("0.9", user=OTHER, name=f"{ME}.7")
    node.files.read()
    assert not squatted.exists()


def test_links_and_pipes_are_not_read(node, tmp_path):
    node.process(11)
    secret = tmp_path / "secret"
    secret.write_text("0.5")
    link = node.folder / f"{ME}.7"
    link.symlink_to(secret)
    os.lchown(link, ME, ME)
    assert node.files.read() == {}
    assert secret.exists()
    link.unlink(missing_ok=True)
    os.mkfifo(link)
    os.chown(link, ME, ME)
    assert node.files.read() == {}  # and does not wait for a writer
    link.unlink(missing_ok=True)
    link.mkdir()
    os.chown(link, ME, ME)
    assert node.files.read() == {}


def test_files_of_ended_jobs_and_others_are_removed(node):
    node.process(11, job="8")
    ended, strange = node.tell("0.5"), node.tell("0.5", name="hello")
    node.files.read()
    assert not ended.exists()
    assert not strange.exists()


def test_a_file_that_is_just_being_written_stays(node):
    node.process(11)
    new = node.tell("0.5", name=f"{ME}.7.new")
    assert node.files.read() == {}
    assert new.exists()


def test_the_agent_sends_it_and_the_service_takes_the_least(tmp_path):
    told, now = {WHERE: 0.5, ("7", ""): 0.25, ("9", "n1"): 0.1}, [0.0]
    root = tmp_path / "cgroup"
    job = root / "cpuacct" / "slurm_n1" / "uid_1000" / "job_7"
    job.mkdir(parents=True)
    (job / "cpuacct.usage").write_text("1000000000")
    meter = AgentMeter(
        ("n1",), PowerSettings(), Processes(tmp_path / "proc"), root,
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
