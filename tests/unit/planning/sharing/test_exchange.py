# SPDX-License-Identifier: Apache-2.0
"""What was learnt survives export and import, and nothing else is taken."""

import json

import numpy as np
import pytest

from bridge.errors import ConfigError
from bridge.model.layers import Layers
from bridge.model.learnt import Learning, Learnt
from bridge.planning.sharing.exchange import exported, imported
from bridge.planning.sharing.experts import default_experts
from bridge.planning.sharing.histories import History, application, history_key
from bridge.planning.sharing.kept_learner import read_learner, write_learner
from bridge.planning.sharing.learner import Choice, Learner
from bridge.planning.sharing.pair_knowledge import CEILINGS, note


def learnt(seed):
    """Some of everything."""
    rng = np.random.default_rng(seed)
    pairs, asax = Learning(Learnt()), Learning(Learnt())
    apps = [application("ann", f"app{letter}", 2) for letter in "abc"]
    for app in apps:
        history = History(int(rng.integers(1, 10)), float(rng.integers(1, 9999)), 50.0, 700)
        pairs.known[history_key(app)] = history.numbers()
    for _ in range(20):
        host, guest = rng.choice(apps, 2)
        harm, bad = float(rng.normal(0.05, 0.1)), bool(rng.random() < 0.3)
        ceiling = int(rng.choice(CEILINGS))
        note(pairs, (str(host), str(guest)), ceiling, harm, 1.5, bad=bad)
    learner = Learner.new(len(default_experts()))
    for _ in range(9):
        learner = learner.told(Choice(25, rng.random(len(default_experts()))), float(rng.random()))
    write_learner(asax, learner)
    return pairs.done(), asax.done()


@pytest.mark.parametrize("seed", range(5))
def test_a_round_trip_through_json(seed):
    pairs, asax = learnt(seed)
    text = json.dumps(exported(pairs, asax))
    again = imported(json.loads(text))
    assert exported(*again) == json.loads(text)
    close = {key: pytest.approx(numbers, abs=2000) for key, numbers in pairs.known.items()}
    assert dict(again[0].known) == close
    before, after = (read_learner(each, len(default_experts())) for each in (asax, again[1]))
    assert after.risk == pytest.approx(before.risk)
    assert after.bound() == pytest.approx(before.bound())


def test_nothing_is_a_possible_import():
    known, asax = imported({"format": "schedbridge coscheduling", "version": 1})
    assert not known.known
    assert not asax.known


APP = {"user": "u", "name": "n", "nodes": 1}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "x"}, "format"),
        ({"version": 2}, "version"),
        ({"extra": 1}, "extra: unknown key"),
        ({"applications": {}}, "applications: must be a list"),
        ({"applications": [APP]}, "applications[0].runs"),
        ({"applications": [{**APP, "runs": 1, "cpu_s": -1}]}, "applications[0].cpu_s"),
        ({"applications": [{**APP, "runs": 1, "cpu_s": float("nan")}]}, "applications[0].cpu_s"),
        ({"applications": [{**APP, "runs": 1, "name": "a\x1fb"}]}, "applications[0].name"),
        ({"pairs": [{"host": APP}]}, "pairs[0].guest: must be a mapping"),
        ({"pairs": [{"host": APP, "guest": APP, "ceilings": {"30": {}}}]}, "'30' is none of"),
        (
            {"pairs": [{"host": APP, "guest": APP, "ceilings": {"50": {"count": 1e9}}}]},
            "pairs[0].ceilings.50.count",
        ),
        ({"with_any": [3]}, "with_any[0]: must be a mapping"),
        ({"asax": {"experts": {"mine": 1}}}, "asax.experts"),
    ],
)
def test_what_does_not_fit_is_named(change, words):
    value = {"format": "schedbridge coscheduling", "version": 1, **change}
    with pytest.raises(ConfigError) as problem:
        imported(value)
    assert words in str(problem.value)


def test_edited_knowledge_counts():
    ceilings = {str(ceiling): {"count": 20, "harm": 0.9} for ceiling in CEILINGS}
    pair = {"host": APP, "guest": APP, "ceilings": ceilings}
    known, _ = imported({"format": "schedbridge coscheduling", "version": 1, "pairs": [pair]})
    assert isinstance(known.known, Layers)
    (entry,) = exported(known, Learnt())["pairs"]
    assert entry["ceilings"]["100"] == {"count": 20.0, "harm": 0.9}
