# SPDX-License-Identifier: Apache-2.0
"""`schedbridge run` as real processes, on a Slurm of shell scripts; the agent is this test."""

import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from bridge.cli import run as command
from bridge.extensions.elastic.launcher.steps import CANCEL
from bridge.extensions.elastic.lines import (
    Attach,
    Attached,
    Grow,
    Lines,
    Result,
    Shrink,
    encode,
    from_launcher,
)
from tests.in_the_way import imported, shadows

FAKES = {
    # The nodes and options of a step go into a file; its program runs here.
    "srun": r"""
if [ "$1" = --mpi=list ]; then printf 'MPI plugin types are...\n\tnone\n\tpmi2\n'; exit; fi
env | grep -E '^(SLURM|PMI)' | grep -v SLURM_HOSTFILE >>"$FAKE/leaked"
node=
while :; do case $1 in
    -w) node=$2; shift 2 ;;
    -[Nnmc]) shift 2 ;;
    -J) name=$2; shift 2 ;;
    -*) shift ;;
    *) break ;;
esac; done
echo "$name $node" >>"$FAKE/steps"
echo $$ >"$FAKE/$name.pid"
SLURMD_NODENAME=$node exec "$@"
""",
    "scontrol": "echo n1\n",
    "squeue": 'while read -r name node; do echo "7.$name $name"; done <"$FAKE/steps"\n',
    "scancel": r"""
for word; do case $word in
    7.*) kill -TERM $(cat "$FAKE/${word#7.}.pid") ;;
esac; done
""",
}
MAIN = """
import sys, time
from bridge.extensions.elastic.program import Program, nodes_in_use
program = Program()
until = time.monotonic() + 60
while time.monotonic() < until:
    change = program.change(0.05)
    if change is not None:
        change.done() if change.add != ["bad"] else change.cannot("I do not like it.")
    if len(nodes_in_use()) == int(sys.argv[1]):
        sys.exit(int(sys.argv[2]))
sys.exit(9)
"""


class Run:
    """One `schedbridge run`, and the agent it attaches to."""

    def __init__(self, folder: Path, *words: str, cwd: Path | None = None) -> None:
        self.folder, self.temporary = folder / "fake", folder / "run"
        self.temporary.mkdir()
        self.folder.mkdir()
        for name, text in FAKES.items():
            (self.folder / name).write_text(f"#!/bin/sh\n{text}")
            (self.folder / name).chmod(0o755)
        (self.folder / "leaked").touch()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / "agent.sock"))
        self.listener.listen()
        self.listener.settimeout(60)
        self.stream: socket.socket | None = None
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "bridge.cli.main", "run", *words],
            env={
                **os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}",
                "FAKE": str(self.folder), "TMPDIR": str(self.temporary),
                "SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n1", "SLURM_NNODES": "1",
                "PMI_RANK": "0", "SCHEDBRIDGE_AGENT": str(folder / "agent.sock"),
            },
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=cwd,
        )  # fmt: skip

    def attached(self) -> Attach:
        """Takes the next launcher's connection."""
        self.stream, _ = self.listener.accept()
        self.stream.settimeout(60)
        self.lines, self.waiting = Lines(), []
        attach = self.heard()
        assert isinstance(attach, Attach)
        self.stream.sendall(encode(Attached()))
        return attach

    def heard(self):
        while not self.waiting:
            data = self.stream.recv(65536)
            assert data, "the launcher is gone"
            self.waiting += [from_launcher(line) for line in self.lines.feed(data)]
        return self.waiting.pop(0)

    def result(self, change) -> Result:
        """Asks for a change and waits for its result."""
        self.stream.sendall(encode(change))
        while not isinstance(said := self.heard(), Result):
            pass
        assert said.id == change.id
        return said

    def connected(self) -> None:
        """Waits until the program has introduced itself."""
        until_s = time.monotonic() + 60
        while not any('"connected": true' in path.read_text()
                      for path in self.temporary.glob("*/state.json")):  # fmt: skip
            assert time.monotonic() < until_s, "the program does not connect"
            time.sleep(0.02)

    def kill_launcher(self) -> None:
        [path] = self.temporary.glob("*/launcher.pid")
        os.kill(int(path.read_text()), signal.SIGKILL)

    def steps(self) -> list[str]:
        return (self.folder / "steps").read_text().splitlines()

    def end(self) -> tuple[int, str]:
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said


@pytest.fixture
def started():
    runs = []
    short = Path(tempfile.mkdtemp(prefix="sb"))  # sockets have short names

    def start(*words: str, cwd: Path | None = None) -> Run:
        runs.append(Run(short, *words, cwd=cwd))
        return runs[-1]

    yield start
    for run in runs:
        if run.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                for path in run.temporary.glob("*/steps/*/pid"):
                    os.killpg(int(path.readlink().name), signal.SIGKILL)
            run.process.kill()
            run.process.wait()
        run.process.stderr.close()
        run.listener.close()
    shutil.rmtree(short)


GROW = Grow("g", ("n1", "n2"), ("n2",), 30.0)


def test_a_program_grows_and_ends_with_its_own_code(started):
    run = started("--engine", "program", "--", sys.executable, "-c", MAIN, "2", "5")
    attach = run.attached()
    assert (attach.job, attach.nodes, attach.engine) == ("7", ("n1",), "program")
    assert run.result(GROW) == Result("g", "done", "", ("n1", "n2"))
    code, said = run.end()
    assert code == 5
    assert "change 1: done" in said
    assert (run.folder / "leaked").read_text() == "", "steps see nothing of the batch script"
    assert not list(run.temporary.iterdir()), "nothing is left behind"


def test_a_program_may_refuse(started):
    run = started("--engine", "program", "--", sys.executable, "-c", MAIN, "2", "0")
    run.attached()
    run.connected()
    result = run.result(Grow("x", ("n1", "bad"), ("bad",), 30.0))
    assert (result.outcome, result.reason) == ("refused", "I do not like it.")
    assert run.result(GROW).outcome == "done"
    assert run.end()[0] == 0


def test_the_launcher_is_killed_again_and_again(started):
    run = started("--engine", "program", "--", sys.executable, "-c", MAIN, "3", "6")
    nodes = ("n1",)
    for number, change in enumerate(
        [
            GROW,
            Shrink("s", ("n1",), ("n2",), 30.0),
            Grow("h", ("n1", "n2", "n3"), ("n2", "n3"), 30.0),
        ]
    ):
        attach = run.attached()
        run.connected()
        assert attach.nodes == nodes, "a new launcher knows where the program is"
        result = run.result(change)
        assert result.outcome == "done"
        nodes = result.nodes
        if number < 2:
            run.kill_launcher()
    code, said = run.end()
    assert code == 6, said
    assert said.count("died and is started again") == 2
    assert len(run.steps()) == 1, "the program itself was started once"


def test_on_a_full_disk_no_change_is_begun_and_the_code_is_the_programs(started):
    wait = 'until [ -e "$FAKE/go" ]; do sleep 0.05; done; exit 5'
    run = started("--engine", "program", "--", "sh", "-c", wait)
    run.attached()
    [path] = run.temporary.glob("*/launcher.pid")
    for pid in (run.process.pid, int(path.read_text())):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0))  # no file can be written
    refused = run.result(GROW)
    assert (refused.outcome, refused.nodes) == ("refused", ("n1",))
    assert "no room" in refused.reason
    run.kill_launcher()
    assert run.attached().nodes == ("n1",)
    (run.folder / "go").touch()
    code, said = run.end()
    assert code == 5, said


def test_without_an_agent_it_says_so_once_and_runs(started):
    run = started("--engine", "program", "--", "sh", "-c", "sleep 1.5; exit 3")
    run.listener.close()
    code, said = run.end()
    assert code == 3
    assert said.count("no agent answers") == 1


def test_an_mpi_program_without_the_library_is_rigid(started):
    run = started("--", "sh", "-c", "exit 4")
    assert run.end()[0] == 4


def test_an_agent_that_talks_nonsense_is_left_and_found_again(started):
    run = started("--engine", "program", "--", sys.executable, "-c", MAIN, "2", "0")
    run.attached()
    run.stream.sendall(b"nonsense\n")
    assert run.stream.recv(65536) == b""
    run.attached()
    assert run.result(GROW).outcome == "done"
    assert run.end()[0] == 0


def test_sigterm_reaches_the_program(started):
    run = started(
        "--engine", "program", "--", "sh", "-c", "trap 'exit 8' TERM; while :; do sleep 0.05; done"
    )
    run.attached()
    time.sleep(0.3)
    run.process.send_signal(signal.SIGTERM)
    assert run.end()[0] == 8


def test_a_job_folder_with_names_of_modules_stops_nothing(started, tmp_path):
    shadows(tmp_path)
    assert started("--engine", "program", "--", "sh", "-c", "exit 7", cwd=tmp_path).end()[0] == 7
    assert not imported(tmp_path)


def test_outside_of_a_job_it_says_where_it_belongs():
    environment = {name: value for name, value in os.environ.items() if name != "SLURM_JOB_ID"}
    done = subprocess.run(
        [sys.executable, "-m", "bridge.cli.main", "run", "true"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "belongs in a batch script" in done.stderr


@pytest.mark.parametrize("park", ["shm", "/dev/shm/\xe4", '/dev/"', "/dev\\", "/d" * 300])
def test_a_place_that_the_library_would_read_otherwise_is_refused(park):
    done = subprocess.run(
        [sys.executable, "-m", "bridge.cli.main", "run", "--park", park, "true"],
        env={**os.environ, "SLURM_JOB_ID": "7"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "--park" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("option", ["--mpi-time", "--no-mpi-time"])
def test_time_in_mpi_is_measured_beside_what_the_user_preloads(
    started, tmp_path, monkeypatch, option
):
    library, users = tmp_path / "ours.so", str(tmp_path / "users.so")
    library.touch()
    monkeypatch.setenv("SCHEDBRIDGE_MPI_TIME", str(library))
    monkeypatch.setenv("LD_PRELOAD", users)
    code = "import os, sys; print(os.environ['LD_PRELOAD'], file=open(sys.argv[1], 'w'))"
    words = (sys.executable, "-c", code, str(tmp_path / "seen"))
    run = started("--engine", "program", option, "--", *words)
    assert run.end()[0] == 0
    preloaded = f"{library} {users}" if option == "--mpi-time" else users
    assert (tmp_path / "seen").read_text() == f"{preloaded}\n"


@pytest.mark.parametrize(
    ("says", "nodes"), [("n[2-4]\n", ("n3", "n2", "n4")), ("", ("n3", "n1"))], ids=["now", "away"]
)
def test_the_nodes_are_those_of_now_and_of_the_start_if_nobody_answers(monkeypatch, says, nodes):
    lists = {"n[2-4]": "n2\nn3\nn4\n", "n[1,3]": "n1\nn3\n"}
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1,3]")
    monkeypatch.setenv("SLURMD_NODENAME", "n3")
    monkeypatch.setattr(command, "_answered", lambda *_: says)
    monkeypatch.setattr(command, "_said", lambda *words: lists[words[-1]])
    assert command._nodes("7") == nodes


def test_steps_of_a_task_are_asked_for_by_its_name_and_ended_by_its_number(tmp_path):
    (tmp_path / "squeue").write_text('#!/bin/sh\necho "$4" >$FAKE/asked\necho 7_2.3 main-1\n')
    (tmp_path / "scancel").write_text('#!/bin/sh\necho "$2" >$FAKE/ended\n')
    for name in ("squeue", "scancel"):
        (tmp_path / name).chmod(0o755)
    subprocess.run(
        ["/bin/sh", "-c", CANCEL, "sh", "7_2", "main-1", "TERM", "0", "9"], check=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "FAKE": str(tmp_path)},
    )  # fmt: skip
    assert (tmp_path / "asked").read_text() == "7_2\n"
    assert (tmp_path / "ended").read_text() == "9.3\n"
