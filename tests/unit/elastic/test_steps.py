# SPDX-License-Identifier: Apache-2.0
"""Whether a step has begun, and whether it has ended."""

import subprocess

import pytest

from bridge.elastic.launcher import steps as module
from bridge.elastic.launcher.options import Folder, Options
from bridge.elastic.launcher.record import Ended
from bridge.elastic.launcher.steps import SHELL, Steps


class ShellBeginsMeanwhile(Steps):
    """The shell of each step begins right after the launcher has looked for its process."""

    def _pid(self, name):
        found = super()._pid(name)
        step = self._path(name)
        step.mkdir(parents=True, exist_ok=True)
        (step / "pid").write_text("1")
        (step / "begun").mkdir(exist_ok=True)
        return found


def watched(tmp_path, kind=Steps):
    steps = kind(Folder(tmp_path), Options(("true",), "7", "7", ("n1",)))
    steps._awaited["main-1"] = module.time.monotonic()
    return steps


def test_a_step_that_begins_while_it_is_looked_for_has_not_ended(tmp_path):
    assert list(watched(tmp_path, ShellBeginsMeanwhile).ended()) == []


@pytest.mark.parametrize("began", ["no directory", "no process"])
def test_a_step_that_never_begins_has_failed_and_cannot_begin_later(tmp_path, monkeypatch, began):
    monkeypatch.setattr(module, "NO_PID_S", 0.0)
    steps = watched(tmp_path)
    step = tmp_path / "steps" / "main-1"
    if began == "no process":
        step.mkdir(parents=True)
    assert list(steps.ended()) == [Ended("main-1", 137)]
    late = SHELL if began == "no directory" else SHELL.replace('mkdir "$step" 2', "true 2")
    command = ["sh", "-c", late, "sh", str(step), "0", "touch", str(tmp_path / "ran")]
    subprocess.run(command, check=False)
    assert not (tmp_path / "ran").exists()
