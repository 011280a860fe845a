# SPDX-License-Identifier: Apache-2.0
"""The file of the interference model: what is read, and one clear line for what is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from bridge.errors import ConfigError
from bridge.lab.sim.sharing.interference import parse_interference, read_interference

GOOD = """
version: 1
applications:
  blast:
    pressure: 0.3
    stages:
      - {name: scan, share: 0.9, parallel: true, cpu: 0.98, memory: 0.4}
      - {name: rank, share: 0.1, parallel: false, cpu: 1}
"""


def test_a_file_is_read_and_written(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(GOOD)
    found = read_interference(path)
    (blast,) = found.applications
    assert (blast.pressure, blast.sensitivity, blast.memory) == (0.3, 0.0, 0.4)
    assert [stage.busy(4) for stage in blast.stages] == [3.92, 1.0]
    path.write_text(json.dumps(found.as_value()))
    assert read_interference(path) == found


@pytest.mark.parametrize(
    ("change", "key", "problem"),
    [
        ({"version": 2}, "version", "is 2; this release reads version 1"),
        ({"version": True}, "version", "is True"),
        ({"more": 1}, "more", "unknown key"),
        ({"source": 3}, "source", "must be a text"),
        ({"applications": {}}, "applications", "must map 1 to"),
        ({"applications": {"": {}}}, "applications.", "1 to 100 printable"),
        ({"applications": {"a": []}}, "applications.a", "must be a mapping"),
        ({"applications": {"a": {"stages": []}}}, "applications.a.stages", "list of 1 to"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(change: dict[str, Any], key: str, problem: str) -> None:
    stage = {"name": "s", "share": 1, "parallel": True, "cpu": 1}
    value = {"version": 1, "applications": {"a": {"stages": [stage]}}, **change}
    with pytest.raises(ConfigError, match=problem) as error:
        parse_interference(value)
    assert error.value.key == key
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "key", "problem"),
    [
        ({"share": 0.5}, "stages", "sum to 0.5 instead of 1"),
        ({"share": 0}, "stages.0.share", "above 0"),
        ({"cpu": 1.1}, "stages.0.cpu", "from 0 to 1"),
        ({"cpu": float("nan")}, "stages.0.cpu", "from 0 to 1"),
        ({"io": "much"}, "stages.0.io", "from 0 to 1, not 'much'"),
        ({"memory": True}, "stages.0.memory", "from 0 to 1, not True"),
        ({"parallel": 1}, "stages.0.parallel", "true or false"),
        ({"name": ""}, "stages.0.name", "must be a text"),
        ({"disk": 1}, "stages.0.disk", "unknown key"),
    ],
)
def test_stages_are_checked(change: dict[str, Any], key: str, problem: str) -> None:
    stage = {"name": "s", "share": 1, "parallel": True, "cpu": 1, **change}
    with pytest.raises(ConfigError, match=problem) as error:
        parse_interference({"version": 1, "applications": {"a": {"stages": [stage]}}})
    assert error.value.key == f"applications.a.{key}"


def test_missing_files_and_nonsense_are_reported_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_interference(tmp_path / "none.yaml")
    path = tmp_path / "bad.yaml"
    path.write_text("version: [")
    with pytest.raises(ConfigError, match=r"bad\.yaml.*neither YAML nor JSON"):
        read_interference(path)
    path.write_text("version: 1\napplications: {a: {stages: [{name: s}]}}")
    with pytest.raises(ConfigError, match=r"stages\.0\.share: is missing"):
        read_interference(path)
