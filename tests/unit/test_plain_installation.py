# SPDX-License-Identifier: Apache-2.0
"""What works without the extras, and what names the extra that it needs."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from bridge.registry import PRESETS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {
    name: {re.match(r"[\w-]+", each)[0].lower().replace("-", "_") for each in requirements}
    for name, requirements in PROJECT["optional-dependencies"].items()
    if name != "dev"
}
ABSENT = sorted(set().union(*EXTRAS.values()) - {"schedbridge"} | {"mpi4py", "psutil"})
SOLVER = ["ortools"]
DRAWING = {
    f"bridge.lab.report.{name}" for name in ("elastic_plot", "plots", "power_plot", "promises")
} | {f"bridge.papers.placement.training.{name}" for name in ("curve", "placement", "ppo")}
"""The modules that cannot be imported without an extra: they draw, or train."""
IN_PROGRAMS = {"bridge.extensions.elastic.mpi"}
"""Imported by MPI programs, which bring mpi4py."""

CYCLE = """
import numpy as np
from bridge.registry import build, parse_policy
from schedbridge_contracts import subject
from schedbridge_contracts.cycles import Memory, check, run
from schedbridge_contracts.worlds import random_world
def cycle(policy):
    world = random_world(3)
    assert check(world, run(world, Memory(), build(parse_policy(policy)))) == ()
"""


def python(code, *arguments, absent=ABSENT, cwd=None):
    """Runs code where these packages are not installed."""
    hidden = f"import sys\nsys.modules.update(dict.fromkeys({absent!r}))\n"
    return subprocess.run(
        [sys.executable, "-c", hidden + code, *arguments],
        cwd=cwd or ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def command(*words, absent=ABSENT, cwd=None):
    return python("from bridge.cli.main import main; main()", *words, absent=absent, cwd=cwd)


def test_a_plain_installation_lacks_them():
    assert {"matplotlib", "dask", "pyarrow", "torch", "psutil"} <= set(ABSENT)
    plain = {re.match(r"[\w-]+", each)[0].lower() for each in PROJECT["dependencies"]}
    assert not plain & set(ABSENT)
    assert set(SOLVER) <= plain


def test_every_preset_plans_without_them():
    """Slow: it plans a cycle under each preset."""
    done = python(CYCLE + "for policy in subject.presets().values():\n    cycle(policy)\n")
    assert done.returncode == 0, done.stderr
    assert len(PRESETS) > 20


def test_the_service_and_its_default_policy_need_no_solver_either():
    absent = [*ABSENT, *SOLVER]
    done = python(CYCLE + "import bridge.service.serve\ncycle('slurm-like')\n", absent=absent)
    assert done.returncode == 0, done.stderr
    done = python(CYCLE + "cycle('pcp19')\n", absent=absent)
    assert "ortools" in done.stderr.splitlines()[-1]


def test_all_modules_but_those_that_draw_or_train_can_be_imported():
    """Slow: it imports every module."""
    code = """
import importlib, json, pkgutil, bridge
failed = []
for module in pkgutil.walk_packages(bridge.__path__, "bridge."):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError:
        failed.append(module.name)
print(json.dumps(failed))
"""
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)) == DRAWING | IN_PROGRAMS


@pytest.fixture
def trace(tmp_path):
    """Two jobs."""
    row = "{} {} 0 10 1 -1 -1 1 20 -1 1 1 1 1 1 -1 -1 -1\n"
    path = tmp_path / "two.swf"
    path.write_text("; MaxProcs: 2\n" + row.format(1, 1) + row.format(2, 5))
    return path


def test_results_are_written_without_plots_and_one_line_says_so(trace):
    out = trace.parent / "out"
    done = command("lab", "simulate", str(trace), "--policy", "easy", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert "report.html" not in done.stdout
    assert {path.suffix for path in out.iterdir()} == {".csv", ".json", ".swf"}
    assert done.stderr.splitlines() == [
        "schedbridge: no plots and no page are made without matplotlib and jinja2:"
        " pip install 'schedbridge[plots]'"
    ]


EXPERIMENT = """
results: results
traces: [{file: two.swf}]
policies: [easy, conservative]
"""


@pytest.mark.parametrize(
    ("words", "package", "extra"),
    [
        (("lab", "train", "placement", "--out", "x"), "torch", "train"),
        (("lab", "experiment", "two.yaml"), "distributed", "experiments"),
    ],
)
def test_what_needs_a_package_names_the_extra_that_brings_it(words, package, extra, trace):
    (trace.parent / "two.yaml").write_text(EXPERIMENT)
    done = command(*words, cwd=trace.parent)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    wanted = f"needs {package}, which is not installed: pip install 'schedbridge[{extra}]'"
    assert line.endswith(wanted)
    assert package in EXTRAS[extra]
