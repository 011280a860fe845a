# SPDX-License-Identifier: Apache-2.0
"""The learner of `asax` in the environments of benchmarks/coscheduling_regret.py."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT / "benchmarks"))

import coscheduling_regret as regret  # noqa: E402

from bridge.extensions.sharing.experts import default_experts  # noqa: E402
from bridge.extensions.sharing.learner import Learner  # noqa: E402

MOST_REGRET = {"steady": 0.065, "drifting": 0.078, "switching": 0.0062, "adversarial": 0.1}
"""Mean of 10 environments, a decision: between what was seen (0.057, 0.066, 0.0049, 0.047) and what
equal weights have (0.081, 0.094, 0.0078, 0.184)."""


def runs(kind, learner="asax", decisions=500):
    return [regret.run(default_experts(), kind, learner, decisions, seed) for seed in range(10)]


@pytest.mark.parametrize("kind", regret.KINDS)
def test_regret_is_low_and_the_excess_risk_bounded(kind):
    found = runs(kind)
    assert np.mean([run["regret"] for run in found]) <= MOST_REGRET[kind]
    assert max(run["excess_risk"] - run["bound"] for run in found) <= 0


@pytest.mark.parametrize("kind", regret.KINDS)
def test_who_never_learns_has_more(kind, monkeypatch):
    """Else the limits above would say nothing."""
    monkeypatch.setattr(
        Learner, "weights", lambda self: np.full(len(self.risk), 1 / len(self.risk))
    )
    assert np.mean([run["regret"] for run in runs(kind)]) > MOST_REGRET[kind]


def test_the_command_writes_and_shows_its_figures(monkeypatch, tmp_path, capsys):
    file = tmp_path / "regret.json"
    words = ["regret", "--environments", "4", "--decisions", "20", "--json", str(file)]
    monkeypatch.setattr(sys, "argv", words)
    regret.main()
    shown = capsys.readouterr().out
    written = json.loads(file.read_text())
    assert {(row["kind"], row["learner"]) for row in written["runs"]} == {
        (kind, learner) for kind in regret.KINDS for learner in regret.LEARNERS
    }
    monkeypatch.setattr(sys, "argv", ["regret", "--show", str(file)])
    regret.main()
    assert capsys.readouterr().out == shown
