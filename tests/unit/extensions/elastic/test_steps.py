# SPDX-License-Identifier: Apache-2.0
"""Whether a step has begun, and whether it has ended."""

import subprocess

import pytest

from bridge.extensions.elastic.launcher import steps as module
from bridge.extensions.elastic.launcher.options import Folder, Options
from bridge.extensions.elastic.launcher.record import StartStep, StepEnded, StopStep
from bridge.extensions.elastic.launcher.steps import SHELL, Steps


class ShellBeginsMeanwhile(Steps):
    """The shell of each step begins right after the launcher has looked for its process."""

    def _pid(self, name):
        found = super()._pid(name)
        step = self._path(name)
        step.mkdir(parents=True, exist_ok=True)
        (step / "pid").symlink_to("1")
        (step / "begun").mkdir(exist_ok=True)
        return found


@pytest.fixture(autouse=True)
def now_s(monkeypatch):
    """The time of steps: a list whose only entry is now."""
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def watched(tmp_path, kind=Steps):
    steps = kind(Folder(tmp_path), Options(("true",), "7", "7", ("n1",)))
    steps._awaited["main-1"] = 1000.0
    return steps


def test_a_step_that_begins_while_it_is_looked_for_has_not_ended(tmp_path):
    assert list(watched(tmp_path, ShellBeginsMeanwhile).ended()) == []


@pytest.mark.parametrize("began", ["no directory", "no process"])
def test_a_step_that_never_begins_has_failed_and_cannot_begin_later(tmp_path, now_s, began):
    steps = watched(tmp_path)
    now_s[0] += module.NO_PID_S - 0.1
    assert list(steps.ended()) == []
    now_s[0] += 0.1
    step = tmp_path / "steps" / "main-1"
    if began == "no process":
        step.mkdir(parents=True)
    assert list(steps.ended()) == [StepEnded("main-1", 137)]
    late = SHELL if began == "no directory" else SHELL.replace('mkdir "$step" 2', "true 2")
    command = ["sh", "-c", late, "sh", str(step), "0", "touch", str(tmp_path / "ran")]
    subprocess.run(command, check=False)
    assert not (tmp_path / "ran").exists()


def test_to_end_a_step_ends_none_of_another_run_of_the_job(tmp_path, monkeypatch):
    """Each run has a step main-1: Slurm is asked for one whose name is the run's own."""
    started = []
    monkeypatch.setattr(module.subprocess, "Popen", lambda command, **_: started.append(command))
    for run in ("aaaa", "bbbb"):
        folder = Folder(tmp_path / f"schedbridge-7-{run}")
        folder.path.mkdir()
        steps = Steps(folder, Options(("true",), "7", "7", ("n1",)))
        steps.start(StartStep("main-1", "main", ("n1",), "none"))
        steps.stop(StopStep("main-1"))
    names = [command[command.index("-J") + 1] for command in started[::2]]
    assert names == [command[5] for command in started[1::2]]
    assert len(set(names)) == 2


def test_files_of_steps_that_are_over_are_removed_unless_their_shell_may_still_begin(tmp_path):
    steps = Steps(Folder(tmp_path), Options(("true",), "7", "7", ("n1",)))
    steps.forget(set())  # no step has been started
    for name in ("main-1", "joiner-2", "joiner-3"):
        (tmp_path / "steps" / name / "begun").mkdir(parents=True)
        (tmp_path / f"{name}.hosts").write_text("n1\n")
    for name in ("main-1", "joiner-2"):
        (tmp_path / "steps" / name / "code").symlink_to("0")
    steps.forget({"main-1"})
    assert {path.name for path in (tmp_path / "steps").iterdir()} == {"main-1", "joiner-3"}
    assert {path.name for path in tmp_path.glob("*.hosts")} == {"main-1.hosts", "joiner-3.hosts"}
