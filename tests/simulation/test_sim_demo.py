# SPDX-License-Identifier: Apache-2.0
"""The demo with the real service as a process of its own: the whole path but Slurm."""

import json
import os
import signal
import tempfile
from pathlib import Path

import pytest

from bridge.cli.main import main
from bridge.cli.simulation import demo
from bridge.errors import Unreachable


def leftovers():
    return list(Path(tempfile.gettempdir()).glob("schedbridge-demo-*"))


@pytest.fixture(autouse=True)
def own_temporary_directory(tmp_path_factory, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("t")))


def test_the_service_plans_as_the_policy_alone_does(tmp_path, capsys):
    """Slow: simulates through a real service, and draws the report."""
    with pytest.raises(SystemExit) as end:
        main(["lab", "demo", "--jobs", "80", "--out", str(tmp_path / "report")])
    said = capsys.readouterr().out
    assert not end.value.code, said
    assert "check: 80 of 80 jobs started in the same second" in said
    assert "refused by the controller: 0" in said
    results = json.loads((tmp_path / "report" / "results.json").read_text())["results"]
    assert [run["policy"] for run in results] == ["responsive (service)", "easy"]
    assert "What this site would gain" in (tmp_path / "report" / "report.html").read_text()
    assert leftovers() == []


def test_a_service_that_cannot_start_is_one_error_with_its_log():
    why = r"(?s)exit code 1; .*no preset 'nonsense'"
    with pytest.raises(Unreachable, match=why), demo._service("nonsense"):
        pytest.fail("it started")
    assert leftovers() == []


def kill(service):
    os.kill(service.process.pid, signal.SIGKILL)
    service.process.wait()
    raise Unreachable("nobody answers")


def test_a_service_that_dies_in_the_middle_is_one_error():
    why = "its process ended with exit code -9"
    with pytest.raises(Unreachable, match=why), demo._service("easy") as service:
        kill(service)
    assert leftovers() == []


def test_the_service_is_ended_whatever_happens():
    """Slow: starts a service in a process of its own."""
    with pytest.raises(KeyboardInterrupt), demo._service("easy") as service:
        raise KeyboardInterrupt
    assert service.process.poll() is not None
    assert leftovers() == []
