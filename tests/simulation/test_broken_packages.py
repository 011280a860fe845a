# SPDX-License-Identifier: Apache-2.0
"""Two installed packages that are broken: what needs them is refused, the rest is served."""

import json
import os

import pytest

from tests.simulation import services
from tests.simulation.services import a_config, a_home, a_process, run

PACKAGES = {
    "colours": ("schedbridge.policies", "colourful = colours:PACKAGE", "def broken(:\n"),
    "painting": ("schedbridge.extensions", "paint = painting:EXTENSION", "EXTENSION = 'none'\n"),
}


@pytest.fixture
def home():
    with a_home() as path:
        yield path


@pytest.fixture
def environment(tmp_path):
    """As if both packages were installed."""
    for name, (group, point, text) in PACKAGES.items():
        (tmp_path / f"{name}.py").write_text(text)
        about = tmp_path / f"{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[{group}]\n{point}\n")
    path = f"{services.ENVIRONMENT['PYTHONPATH']}{os.pathsep}{tmp_path}"
    return services.ENVIRONMENT | {"PYTHONPATH": path}


@pytest.mark.parametrize(
    ("settings", "key", "package", "why"),
    [
        ({"policy": "colourful"}, "policy", "colours", "cannot be loaded: SyntaxError"),
        ({"policy": {"order": "by-colour"}}, "policy.order", "colours", "SyntaxError"),
        ({"planning": {"paint": {}}}, "planning.paint", "painting", "must be a bridge.extensions"),
    ],
)
def test_a_configuration_that_needs_one_is_refused(home, environment, settings, key, package, why):
    """Slow: a process finds packages that were installed before it started."""
    file = home / "bridge.yaml"
    file.write_text(a_config(home, **settings))
    found = run("check-config", file, env=environment)
    assert found.returncode == 1
    (line,) = found.stderr.splitlines()
    assert f"{file}: {key}: " in line
    for words in (f"package {package}: entry point", why, "uninstall it"):
        assert words in line


def test_any_other_configuration_is_served_and_both_are_named(home, environment, monkeypatch):
    """Slow: starts a service, and a process for each question."""
    monkeypatch.setattr(services, "ENVIRONMENT", environment)
    with a_process(home):
        for command in (["status"], ["policy", "show"]):
            requested = [*command, "--socket", home / "o" / "s"]
            left_out = json.loads(run(*requested, "--json").stdout)["left_out"]
            assert [text.split(":")[0] for text in left_out] == [
                "package colours", "package painting",
            ]  # fmt: skip
            assert run(*requested).stdout.count("left out") == 2
    log = (home / "log").read_text()
    assert log.count("left out: package colours") == log.count("left out: package painting") == 1
