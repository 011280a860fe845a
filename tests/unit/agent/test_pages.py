# SPDX-License-Identifier: Apache-2.0
"""What the agent makes of the pages that processes write about their time in MPI."""

import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.agent.pages import BYTES, MAGIC, Pages
from bridge.agent.processes import Processes, read_status
from bridge.extensions.elastic.mpitime import FOLDER
from tests.unit.agent.made_up import in_job, make_folders, make_process

S = 1_000_000_000
WHERE = ("7", "n1")


class Node:
    """A /proc and a directory of pages; all processes are of job 7 on n1."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.folder = folder / "proc", folder / "jobs" / "7"
        self.proc.mkdir()
        folders = make_folders(folder / "jobs", "7", "8")
        self.pages = Pages(Processes(self.proc, folders), folders)

    def process(self, pid: int, job: int = 7) -> None:
        make_process(self.proc, pid, cgroups=in_job(job))

    def path(self, pid: int) -> Path:
        return self.folder / f"mpi.{pid}"

    def page(self, pid: int, mpi_s: float, in_since_s: float = 0, begin: int = 1) -> None:
        said = struct.pack(
            "<8sII32sIIQQQQ", MAGIC, 1, pid, b"666", 0, 0, begin,
            int(mpi_s * S), 1, int(in_since_s * S),
        )  # fmt: skip
        self.path(pid).write_bytes(said.ljust(BYTES, b"\0"))

    def read(self, now_s: float):
        found = self.pages.read(int(now_s * S))
        return {key: (use.mpi_s, use.wall_s, use.processes) for key, use in found.items()}


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def test_the_first_reading_is_a_baseline_and_later_ones_are_differences(node):
    for pid in (11, 12):
        node.process(pid)
        node.page(pid, mpi_s=50)
    assert node.read(100) == {WHERE: (0, 0, 2)}
    node.page(11, mpi_s=52)
    node.page(12, mpi_s=51)
    assert node.read(110) == {WHERE: (3, 20, 2)}
    assert node.read(115) == {WHERE: (0, 10, 2)}


def test_a_call_that_goes_on_counts(node):
    node.process(11)
    node.page(11, mpi_s=1)
    node.read(100)
    node.page(11, mpi_s=1, in_since_s=102)
    assert node.read(110) == {WHERE: (8, 10, 1)}
    assert node.read(120) == {WHERE: (10, 10, 1)}


def test_a_page_cannot_say_more_than_the_time_that_passed_nor_less_than_nothing(node):
    node.process(11)
    node.page(11, mpi_s=5)
    node.read(100)
    node.page(11, mpi_s=5000)
    assert node.read(110) == {WHERE: (10, 10, 1)}
    node.page(11, mpi_s=1)
    assert node.read(120) == {WHERE: (0, 10, 1)}


def test_a_program_that_began_anew_has_a_new_baseline(node):
    node.process(11)
    node.page(11, mpi_s=5)
    node.read(100)
    node.page(11, mpi_s=9, begin=2)
    assert node.read(110) == {WHERE: (0, 0, 1)}


def test_only_pages_of_living_processes_of_the_job_count(node):
    for pid, job in ((11, 7), (12, 8)):
        node.process(pid, job)
    for pid in (11, 12, 13):
        node.page(pid, mpi_s=1)
    for name in ("notes", "mpi.", "mpi.x", "mpi.011.new", "11"):
        (node.folder / name).write_bytes(node.path(11).read_bytes())
    assert node.read(100) == {WHERE: (0, 0, 1)}


def test_links_and_other_files_do_not_count(node, tmp_path):
    for pid in (12, 13, 14):
        node.process(pid)
    node.page(12, mpi_s=1)
    node.path(12).rename(tmp_path / "elsewhere")
    node.path(12).symlink_to(tmp_path / "elsewhere")
    os.mkfifo(node.path(13))
    node.path(14).write_bytes(MAGIC)
    assert node.read(100) == {}


def test_names_that_a_user_makes_hide_no_page_and_cost_no_more_than_processes(node, monkeypatch):
    pages = {7: (11, 12), 8: (21,)}
    for job, pids in pages.items():
        for pid in pids:
            node.process(pid, job)
    node.process(31, job=9)  # of a job without a folder
    node.page(11, mpi_s=1)
    raw = node.path(11).read_bytes()
    names = [f"mpi.{pid}" for pid in (*range(11, 200), "011", "0011", "00000012", "021", "1_1")]
    for job in pages:
        for name in names:
            (node.folder.parent / str(job) / name).write_bytes(raw)
    examined = []
    monkeypatch.setattr(
        "bridge.agent.processes.read_status",
        lambda pid, proc: examined.append(pid) or read_status(pid, proc),
    )
    assert node.read(100) == {WHERE: (0, 0, 2), ("8", "n1"): (0, 0, 1)}
    assert sorted(examined) == [11, 12, 21, 31]


def test_without_files_no_process_is_examined(node, monkeypatch):
    node.process(11)
    node.process(21, job=8)
    monkeypatch.setattr(Processes, "job_of", lambda *_: pytest.fail("a process was examined"))
    assert node.read(100) == {}


@given(st.lists(st.binary(max_size=120) | st.binary(max_size=100).map(
    lambda raw: (MAGIC + b"\1\0\0\0" + raw).ljust(BYTES, b"\0")), max_size=4))  # fmt: skip
def test_no_page_stops_the_agent_or_leaves_the_bounds(pages):
    with tempfile.TemporaryDirectory() as folder:
        node = Node(Path(folder))
        node.process(11)
        for turn, raw in enumerate(pages):
            node.path(11).write_bytes(raw)
            for mpi_s, total_s, processes in node.read(100 + turn).values():
                assert 0 <= mpi_s <= total_s <= 1
                assert processes == 1


# ------------------------------------------------------------ the library, with a small fake MPI

FAKE = """
#include <time.h>
#include <unistd.h>
int MPI_Init(int *c, char ***v) { return 0; }
int MPI_Finalize(void) { return 0; }
int MPI_Allgather(long a, long b, long c, long d, long e, long f, long g) {
    struct timespec t = {0, 20000000}; nanosleep(&t, 0);
    return a + b + c + d + e + f + g; }
int MPI_Barrier(long a) { return MPI_Allgather(1, 1, 1, 1, 1, 1, 1) != 7; }
"""
MAIN = """
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int MPI_Init(int *, char ***), MPI_Barrier(long), MPI_Finalize(void);
int MPI_Allgather(long, long, long, long, long, long, long);
int main(int n, char **v) {
    if (n > 1) return 0;
    if (MPI_Init(0, 0)) return 1;
    if (!fork()) { int bad = MPI_Allgather(1, 2, 3, 4, 5, 6, 7) != 28; return bad; }
    int status; wait(&status); if (status) return 2;
    if (MPI_Barrier(0)) return 3;
    if (MPI_Allgather(1, 2, 3, 4, 5, 6, -7) != 14) return 4;
    puts("there"); fflush(stdout); getchar();
    return MPI_Finalize();
}
"""
needs_cc = pytest.mark.skipif(
    not (shutil.which("cc") and shutil.which("make")), reason="no C compiler here"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A library and a program on a fake MPI."""
    out = tmp_path_factory.mktemp("mpitime")
    (out / "mpi.c").write_text(FAKE)
    (out / "main.c").write_text(MAIN)
    for command in (
        ["make", "-s", "-f", FOLDER / "Makefile", f"OUT={out}"],
        ["cc", "-shared", "-fPIC", "-o", out / "libmpi.so", out / "mpi.c"],
        ["cc", "-o", out / "main", out / "main.c", f"-L{out}", "-lmpi", f"-Wl,-rpath,{out}"],
    ):
        subprocess.run(command, check=True)
    return out


def start(built, folders, *words, program=None):
    env = os.environ | {
        "LD_PRELOAD": str(built / "libschedbridge_mpitime.so"),
        "SCHEDBRIDGE_JOB_FOLDERS": str(folders), "SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n1",
    }  # fmt: skip
    return subprocess.Popen(
        program or [built / "main", *words], env=env, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@needs_cc
def test_a_program_is_measured_and_takes_its_page_away(built, tmp_path):
    folders = make_folders(tmp_path / "jobs", "7")
    pages = Pages(Processes(folders=folders), folders)
    program = start(built, tmp_path / "jobs")
    assert program.stdout.readline() == "there\n"
    now_ns = 10**18
    assert pages.read(now_ns)["7", "n1"].processes == 1
    raw = (tmp_path / "jobs" / "7" / f"mpi.{program.pid}").read_bytes()
    page = struct.unpack_from("<8sII32sIIQQQQ", raw)
    assert page[:4] == (MAGIC, 1, program.pid, b"7".ljust(32, b"\0"))
    mpi_ns, calls, in_since_ns = page[7:]
    assert calls == 2  # the call within Barrier and those of the child are none of them
    assert mpi_ns >= 40_000_000
    assert in_since_ns == 0
    program.communicate("\n")
    assert program.returncode == 0
    assert not list((tmp_path / "jobs" / "7").iterdir())


@needs_cc
def test_without_a_directory_or_without_mpi_nothing_happens(built, tmp_path):
    program = start(built, tmp_path / "missing")
    assert program.communicate("\n") == ("there\n", "")
    assert program.returncode == 0
    make_folders(tmp_path / "jobs", "7")
    plain = start(built, tmp_path / "jobs", program=[sys.executable, "-c", "print(1)"])
    assert plain.communicate() == ("1\n", "")
    assert not list((tmp_path / "jobs" / "7").iterdir())
    assert not (tmp_path / "missing").exists()


@needs_cc
def test_mpi_that_is_loaded_while_the_program_runs(built, tmp_path):
    make_folders(tmp_path / "jobs", "7")
    code = f"""
import ctypes, os
mpi = ctypes.CDLL({str(built / "libmpi.so")!r})
ours = ctypes.CDLL(None)
assert ours.MPI_Init(None, None) == 0
assert ours.MPI_Barrier(0) == 0
assert ours.MPI_Send(0) != 0  # this MPI has none
assert len(os.listdir({str(tmp_path / "jobs" / "7")!r})) == 1
"""
    program = start(built, tmp_path / "jobs", program=[sys.executable, "-c", code])
    assert program.communicate() == ("", "")
    assert program.returncode == 0
    assert not list((tmp_path / "jobs" / "7").iterdir())
