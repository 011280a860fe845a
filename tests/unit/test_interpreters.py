# SPDX-License-Identifier: Apache-2.0
"""No interpreter that the project starts imports anything from the directory it is started in.

Takes up to 15 s, because the solver, workers and the service are real processes.
"""

import ast
import itertools
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bridge.errors import ConfigError
from bridge.interpreter import python
from bridge.lab.experiments import workers
from bridge.pbs.link.settings import LinkSettings
from bridge.pbs.link.supervisor import LinkChild
from bridge.solver_process import ChildSolver
from tests.in_the_way import imported, shadows
from tests.simulation.services import ENVIRONMENT, a_config, a_home, operator_of, run

ROOT = Path(__file__).parents[2]
LONGEST_S = 60


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with modules that record that they were imported."""
    shadows(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_shadows_would_be_imported(folder):
    subprocess.run([sys.executable, "-c", "import json"], capture_output=True, check=False)
    assert imported(folder)


def test_the_command_of_this_interpreter_passes_them_by(folder):
    words = "import bridge, json; print(bridge.__file__)"
    done = subprocess.run(python("-c", words), capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()).is_relative_to(ROOT)
    assert not imported(folder)


def test_the_solver_becomes_ready(folder):
    solver = ChildSolver()
    solver.warm_up()
    assert solver._child.wait_ready(time.monotonic() + LONGEST_S)
    solver.close()
    assert not imported(folder)


def test_the_link_to_pbs_looks_for_pbs(folder, capfd):
    child = LinkChild(LinkSettings(pbs_exec=str(folder / "nowhere")))
    child._process.wait(LONGEST_S)
    assert str(folder / "nowhere") in capfd.readouterr().err
    assert not imported(folder)


def test_workers_of_an_experiment_compute(folder):
    with workers.local(1, 0) as client:
        assert client.submit(abs, -3).result(LONGEST_S) == 3
    assert not imported(folder)


def test_workers_that_are_jobs_of_slurm_are_told(folder, monkeypatch):
    (folder / "sbatch").write_text("#!/bin/sh\ncat >script\necho refused >&2\nexit 1\n")
    (folder / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    with pytest.raises(ConfigError, match="refused"), workers.slurm(workers.SlurmJobs(), 0, folder):
        pass
    before, worker, _ = (folder / "script").read_text().partition("distributed.cli.dask_worker")
    assert worker
    assert "export PYTHONSAFEPATH=1" in before


def test_operators_are_answered_by_a_service_started_there(folder):
    """Slow: starts a service, and a command until it is answered."""
    with a_home() as home:
        (home / "bridge.yaml").write_text(a_config(home))
        service = subprocess.Popen(
            [sys.executable, "-P", "-m", "bridge.cli.main", "serve", "--config",
             str(home / "bridge.yaml")],
            env=ENVIRONMENT, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            until = time.monotonic() + LONGEST_S
            while (done := run("status", "--socket", operator_of(home)[5:], cwd=ROOT)).returncode:
                assert time.monotonic() < until, done.stderr
                assert service.poll() is None
        finally:
            service.terminate()
            service.wait()
    assert not imported(folder)


# ------------------------------------------------------------------------ every start

TREES = ("bridge", "docker", "examples", "scripts")
SAFE = {"-P", "-I"}


def sources():
    listed = subprocess.run(
        ["git", "ls-files", *TREES], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def is_python(node):
    """Is it `sys.executable`, or a word that names an interpreter?"""
    if isinstance(node, ast.Attribute):
        return node.attr == "executable"
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return Path(node.value).name in {"python", "python3"} and " " not in node.value
    return isinstance(node, ast.Name) and node.id == "python"


def unsafe_starts(tree):
    """Lines with the words of a command that runs `python -c` or `python -m` without `-P`."""
    for node in ast.walk(tree):
        match node:
            case ast.List(elts=words) | ast.Tuple(elts=words) | ast.Call(args=words):
                pass
            case _:
                continue
        for first, second in itertools.pairwise(words):
            given = second.value if isinstance(second, ast.Constant) else ""
            if is_python(first) and given in {"-c", "-m"}:
                yield node.lineno


def names_an_interpreter(tree):
    """Lines that use `sys.executable`, or a library that starts interpreters itself."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="sys"), attr="executable" | "_base_executable"):
                yield node.lineno
            case ast.Import(names=names) if any(_starts_them(each.name) for each in names):
                yield node.lineno
            case ast.ImportFrom(module="sys"):
                yield node.lineno
            case ast.ImportFrom(module=str(name)) if _starts_them(name):
                yield node.lineno
            case ast.Name(id="ProcessPoolExecutor") | ast.Attribute(attr="ProcessPoolExecutor"):
                yield node.lineno


def _starts_them(module):
    return module.split(".")[0] in {"multiprocessing", "runpy"}


@pytest.mark.parametrize(
    ("text", "unsafe"),
    [
        ("run([sys.executable, '-m', 'x'])", True),
        ("run(['sh', 'python3', '-c', text])", True),
        ("story.shell('python', '-c', text)", True),
        ("run([sys.executable, '-P', '-m', 'x'])", False),
        ("run([sys.executable, path])", False),
    ],
)
def test_unsafe_starts_are_found(text, unsafe):
    assert bool(list(unsafe_starts(ast.parse(text)))) is unsafe


def test_every_interpreter_is_started_safely():
    """Slow: parses every program of the tree."""
    found = []
    for path in sources():
        if path.suffix == ".py":
            tree = ast.parse(path.read_text())
            lines = set(unsafe_starts(tree))
            if path.is_relative_to(ROOT / "bridge") and path.name != "interpreter.py":
                lines |= set(names_an_interpreter(tree))
            found += [f"{path.relative_to(ROOT)}:{line}" for line in sorted(lines)]
    assert found == [], "start interpreters through bridge.interpreter"
    assert len([path for path in sources() if path.suffix == ".py"]) > 500
