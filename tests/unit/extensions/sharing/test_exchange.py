# SPDX-License-Identifier: Apache-2.0
"""What was learnt survives export and import, and nothing else is taken."""

import json

import numpy as np
import pytest

from bridge.errors import ConfigError
from bridge.extensions.sharing import exchange_text, kept_keys
from bridge.extensions.sharing.exchange import exported, imported
from bridge.extensions.sharing.experts import default_experts
from bridge.extensions.sharing.histories import History, application, history_key
from bridge.extensions.sharing.kept_learner import read_learner, write_learner
from bridge.extensions.sharing.learner import Choice, Learner
from bridge.extensions.sharing.pair_knowledge import CEILINGS, Entry, host_key, note, pair_key
from bridge.model.layers import Layers
from bridge.model.learnt import Learning, Learnt
from schedbridge_contracts.crosses import each


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


@each(seed=range(5))
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
RUN = {**APP, "runs": 1, "cpu_s": 3, "run_s": 4}
PAIR = {"host": APP, "guest": APP}
ASAX = {
    "experts": {expert.name: 0 for expert in default_experts()}, "decisions": 1,
    "mixture_risk": 0.5, "allowed": 0.1,
}  # fmt: skip


def seen(**one):
    return {"pairs": [{**PAIR, "ceilings": {"50": one}}]}


def without(mapping, key):
    return {name: value for name, value in mapping.items() if name != key}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "x"}, "format"),
        ({"version": 2}, "version"),
        ({"version": True}, "version"),
        ({"extra": 1}, "extra: unknown key"),
        ({"e\x1b": 1}, "'e\\x1b': unknown key"),
        ({None: 1}, "None: unknown key"),
        ({"applications": {}}, "applications: must be a list"),
        ({"applications": None}, "applications: must be a list"),
        ({"applications": [RUN] * 51_000}, "more than 50064"),
        ({"applications": [RUN, RUN]}, "applications[1]: is listed twice"),
        ({"applications": [APP]}, "applications[0].runs: is missing"),
        ({"applications": [without(RUN, "cpu_s")]}, "applications[0].cpu_s: is missing"),
        ({"applications": [{**RUN, "cpu": 1}]}, "applications[0].cpu: unknown key"),
        ({"applications": [{**RUN, "runs": 0}]}, "applications[0].runs: must be a whole"),
        ({"applications": [{**RUN, "runs": 1.7}]}, "applications[0].runs: must be a whole"),
        ({"applications": [{**RUN, "cpu_s": -1}]}, "applications[0].cpu_s"),
        ({"applications": [{**RUN, "cpu_s": float("nan")}]}, "applications[0].cpu_s"),
        ({"applications": [{**RUN, "cpu_s": float("inf")}]}, "applications[0].cpu_s"),
        ({"applications": [{**RUN, "nodes": 1.9}]}, "applications[0].nodes: must be a whole"),
        ({"applications": [{**RUN, "nodes": True}]}, "applications[0].nodes: must be a whole"),
        ({"applications": [{**RUN, "name": "a\x1fb"}]}, "applications[0].name"),
        ({"applications": [{**RUN, "name": "a\x1b[31m"}]}, "applications[0].name"),
        ({"applications": [{**RUN, "name": "a\ud800"}]}, "applications[0].name"),
        ({"applications": [{**RUN, "name": "blast7"}]}, "without digits at its end"),
        ({"applications": [{**RUN, "name": "n" * 129}]}, "at most 128 characters"),
        ({"applications": [{**RUN, "user": "a\n"}]}, "applications[0].user"),
        ({"applications": [{**RUN, "user": 3}]}, "applications[0].user"),
        ({"pairs": [{"host": APP}]}, "pairs[0].guest: is missing"),
        ({"pairs": [{**PAIR, "guest": 3}]}, "pairs[0].guest: must be a mapping"),
        ({"pairs": [{**PAIR, "guest": {**APP, "node": 1}}]}, "pairs[0].guest.node: unknown"),
        ({"pairs": [PAIR, PAIR]}, "pairs[1]: is listed twice"),
        ({"pairs": [{**PAIR, "ceiling": {}}]}, "pairs[0].ceiling: unknown key"),
        ({"pairs": [{**PAIR, "ceilings": None}]}, "pairs[0].ceilings: must be a mapping"),
        ({"pairs": [{**PAIR, "ceilings": {"30": {}}}]}, "'30' is none of"),
        (
            {"pairs": [{**PAIR, "ceilings": {10: {"count": 1, "harm": 5}, "10": {}}}]},
            "pairs[0].ceilings: '10' is listed twice",
        ),
        (seen(count=30, hram=5), "pairs[0].ceilings.50.hram: unknown key; there are count, harm"),
        (seen(count=30), "pairs[0].ceilings.50.harm: is missing"),
        (seen(harm=0.1), "pairs[0].ceilings.50.count: is missing"),
        (seen(count=1e9, harm=0), "pairs[0].ceilings.50.count: must be"),
        (seen(count=1, harm=6), "pairs[0].ceilings.50.harm: must be"),
        ({"with_any": [3]}, "with_any[0]: must be a mapping"),
        ({"with_any": [PAIR]}, "with_any[0].guest: unknown key"),
        ({"asax": []}, "asax: must be a mapping"),
        ({"asax": {**ASAX, "experts": {"mine": 1}}}, "asax.experts"),
        ({"asax": {**ASAX, "foo": 1}}, "asax.foo: unknown key"),
        ({"asax": without(ASAX, "decisions")}, "asax.decisions: is missing"),
    ],
)
def test_what_does_not_fit_is_named(change, words):
    value = {"format": "schedbridge coscheduling", "version": 1, **change}
    with pytest.raises(ConfigError) as problem:
        imported(value)
    assert words in str(problem.value)
    assert "\x1b" not in str(problem.value)


def test_what_the_cases_above_begin_with_fits():
    value = {"format": "schedbridge coscheduling", "version": 1, "applications": [RUN],
             "pairs": [PAIR], "with_any": [{"host": APP}], "asax": ASAX}  # fmt: skip
    known, asax = imported({**value, **seen(count=30, harm=5)})
    assert len(known.known) == 3
    assert len(asax.known) == 2


def test_names_that_are_cut_before_a_digit_can_be_imported():
    app = application("ann", "x" * 127 + "7y", 1)
    known = Learnt(Layers({history_key(app): History(1, 3.0, 4.0, 5).numbers()}))
    assert dict(exchange_text.read(exchange_text.written(known, Learnt()))[0].known) == dict(
        known.known
    )


@each(
    name=["plain", "\U0001f600", "\x85\u2028é", 'a/b"\\', "", "?"], harm=[2e-05, -1e-06, 0.0, 5.0]
)
def test_every_export_can_be_imported(harm, name):
    """JSON has numbers and escapes that a reader of YAML 1.1 takes for others, or for none."""
    host = application("ann", name, 2)
    entry = Entry().after(100, harm, 1.0, bad=False).numbers()
    known = Learnt(Layers({pair_key(host, host): entry, host_key(host): entry}))
    text = exchange_text.written(known, Learnt())
    assert text.isascii()
    assert dict(exchange_text.read(text)[0].known) == dict(known.known)


def test_yaml_is_read_like_json():
    text = """
        format: schedbridge coscheduling
        version: 1
        pairs:
          - host: {user: u, name: n, nodes: 1}
            guest: {user: u, name: n, nodes: 1}
            ceilings: {10: {count: 3, harm: 2e-05}}
    """
    (entry,) = exported(*exchange_text.read(text))["pairs"]
    assert entry["ceilings"] == {"10": {"count": 3.0, "harm": 2e-05}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a": 1, "a": 2}', "listed twice"),
        ('{"a": 1, "a": 2}' + " " * (1 << 20), "is not JSON: a key is listed twice"),
        ('{"version": ' + "9" * 5000 + "}", "neither JSON nor YAML"),
        (" " * (exchange_text.MAX_BYTES + 1), "is longer than 48 MiB"),
    ],
)
def test_a_text_that_cannot_be_read_is_refused_in_a_line(text, words):
    with pytest.raises(ConfigError, match=words) as problem:
        exchange_text.read(text)
    assert len(str(problem.value)) < 300
    assert "\n" not in str(problem.value)


def test_all_that_a_service_keeps_can_be_exported_and_imported():
    """As many records as are kept, of the longest usual names, all ceilings observed.

    Slow: that is 20 MB of text, checked as text of strangers is.
    """
    known, count = {}, kept_keys.MAX + kept_keys.EVERY
    numbers = Entry().after(10, 0.012345, 1.23, bad=True).numbers()
    for number in range(count):
        letters = "".join("abcdefghij"[int(digit)] for digit in f"{number:05d}")
        user = f"user-{number % 100:027d}"
        host, guest = (application(user, kind * 123 + letters, 1_000_000) for kind in ("h", "g"))
        known[pair_key(host, guest)] = numbers
    text = exchange_text.written(Learnt(Layers(known)), Learnt())
    assert len(text) > 20 << 20
    assert dict(exchange_text.read(text)[0].known) == known


def test_edited_knowledge_counts():
    ceilings = {str(ceiling): {"count": 20, "harm": 0.9} for ceiling in CEILINGS}
    pair = {"host": APP, "guest": APP, "ceilings": ceilings}
    known, _ = imported({"format": "schedbridge coscheduling", "version": 1, "pairs": [pair]})
    assert isinstance(known.known, Layers)
    (entry,) = exported(known, Learnt())["pairs"]
    assert entry["ceilings"]["100"] == {"count": 20.0, "harm": 0.9}
