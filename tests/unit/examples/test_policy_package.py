# SPDX-License-Identifier: Apache-2.0
"""The example of a policy in a package of its own."""

import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from bridge import policy_packages, registry
from bridge.errors import ConfigError
from schedbridge_contracts.builders import a_job, a_snapshot
from schedbridge_contracts.cycles import Memory, check, run

FOLDER = Path(__file__).parents[3] / "examples" / "policy"


@pytest.fixture
def installed(monkeypatch):
    """As if it were installed: its entry point, as its pyproject.toml names it."""
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
    [(name, value)] = project["entry-points"][policy_packages.GROUP].items()
    monkeypatch.syspath_prepend(str(FOLDER))
    found = policy_packages.gathered([EntryPoint(name, value, policy_packages.GROUP)])
    assert not found.problems
    monkeypatch.setattr(registry, "known", lambda: found)


def order_of(policy, *jobs):
    """The ids of jobs in the order in which a policy considers them."""
    snapshot = a_snapshot(nodes=8, now_s=100_000, jobs=list(jobs))()
    made = run(snapshot, Memory(), registry.build(registry.parse_policy(policy)))
    assert check(snapshot, made) == ()
    return [str(snapshot.jobs.id[row]) for row in made.job.tolist()]


@pytest.mark.usefixtures("installed")
def test_it_is_a_preset_and_its_algorithm_has_parameters():
    jobs = [a_job(6, id="wide", submit_s=90_000), a_job(2, id="small", submit_s=99_000),
            a_job(2, id="late", submit_s=99_500)]  # fmt: skip
    assert order_of("smallest-first", *jobs) == ["small", "late", "wide"]
    soon = {"order": {"name": "smallest-first", "patience_s": 3600}, "plan": "easy"}
    assert order_of(soon, *jobs) == ["wide", "small", "late"]
    with pytest.raises(ConfigError, match=r"policy\.order\.patience_s"):
        registry.parse_policy({"order": {"name": "smallest-first", "patience_s": -1}})


def test_without_the_package_its_names_are_unknown():
    with pytest.raises(ConfigError, match="no preset 'smallest-first'"):
        registry.parse_policy("smallest-first")
