# SPDX-License-Identifier: Apache-2.0
"""A mapping that is never changed says what a dictionary would, whatever is done to its drafts."""

import random

import pytest

from bridge.model import layers as layers_module
from bridge.model.layers import Draft, Layers
from schedbridge_contracts.crosses import each


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(layers_module, "_SMALL", 3)
    monkeypatch.setattr(layers_module, "_MIDDLE", 7)


@each(seed=range(200))
def test_it_says_what_a_dictionary_says(seed):
    dice = random.Random(seed)
    plain = {str(key): [key] for key in range(dice.choice((0, 5, 100)))}
    known = Layers(plain)
    versions = [(known, dict(plain))]
    for step in range(60):
        draft, before = Draft(known), dict(plain)
        for _ in range(dice.choice((0, 1, 1, 2, 12))):
            key = str(dice.randrange(40))
            if dice.random() < 0.3:
                assert draft.pop(key) == plain.pop(key, None)
            else:
                plain.pop(key, None)
                plain[key] = draft[key] = [step]
            assert (draft.get(key), len(draft)) == (plain.get(key), len(plain))
        assert draft.in_order() == list(plain)
        assert dict(known) == before
        known = draft.done()
        assert list(known.items()) == list(plain.items())
        assert len(known) == len(plain)
        versions.append((known, dict(plain)))
        older, was = dice.choice(versions)
        assert dict(older) == was
        changed = known.since(older)
        assert changed.keys() >= {key for key in {**was, **plain} if was.get(key) != plain.get(key)}
        assert {**was, **changed} == plain | {key: None for key in changed if key not in plain}


def test_a_change_copies_little(monkeypatch):
    monkeypatch.undo()
    known = Layers({str(key): [key] for key in range(200_000)})
    copied = 0
    real = layers_module._over

    def counted(below, above):
        nonlocal copied
        copied += len(below) + len(above)
        return real(below, above)

    monkeypatch.setattr(layers_module, "_over", counted)
    for step in range(2000):
        draft = Draft(known)
        draft[str(step * 7)] = [step]
        known = draft.done()
    assert copied / 2000 < 1000
