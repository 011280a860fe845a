# SPDX-License-Identifier: Apache-2.0
"""Memories of extensions: each has its part of the file, and one that fails stops no other."""

from dataclasses import replace

import pytest

from bridge.extension_packages import Installed
from bridge.extensions.port import Extension, Face
from bridge.model.learnt import Learnt
from bridge.model.rules.site import NO_RULES
from bridge.ports import State
from bridge.service import extension_memories
from bridge.service.extension_memories import ExtensionMemories
from schedbridge_contracts.builders import a_snapshot


class Counter:
    """Keeps how many reports there were, under its name; shown as the generation."""

    name = "one"

    def __init__(self):
        self.n = 0

    def take(self, state):
        self.n += len(state.learnt[self.name].known)
        return replace(state, learnt={k: its for k, its in state.learnt.items() if k != self.name})

    def put(self, state):
        return replace(state, learnt={**state.learnt, self.name: Learnt({"n": self.n})})

    def overlay(self, snapshot):
        self.n += 1
        return replace(snapshot, generation=snapshot.generation + 10)


class Other(Counter):
    name = "two"


class Failing:
    def __getattr__(self, name):
        raise RuntimeError(name)


class Ones:
    def memory(self, hub, site):
        assert hub is None
        assert site() is NO_RULES
        return Counter()


class Twos(Ones):
    def memory(self, hub, site):
        return Other()


class Faults(Ones):
    def memory(self, hub, site):
        return Failing()


@pytest.fixture
def memories(monkeypatch):
    faces = {"a": "Ones", "b": "Faults", "c": "Twos", "d": "Missing"}
    there = Installed(
        {name: Extension(name, memory=Face(f"{__name__}:{what}")) for name, what in faces.items()}
        | {"e": Extension("e")}
    )
    monkeypatch.setattr(extension_memories, "installed", lambda: there)
    return ExtensionMemories(None, lambda: NO_RULES)


def test_each_takes_and_puts_its_own_part(memories):
    stored = State(learnt={name: Learnt({name: 0}) for name in ("one", "two", "predictor")})
    assert list(memories.take(stored).learnt) == ["predictor"]
    found = memories.put(State())
    assert {name: its.known for name, its in found.learnt.items()} == {
        "one": {"n": 1}, "two": {"n": 1},
    }  # fmt: skip


def test_all_but_the_one_that_fails_add_to_each_report(memories, caplog):
    assert memories.overlay(a_snapshot()()).generation == a_snapshot()().generation + 20
    assert "what the extension b has learnt is not used" in caplog.text
    assert memories.put(State()).learnt["two"].known == {"n": 1}


def test_one_that_cannot_be_made_is_named(memories, caplog):
    assert "the extension d learns nothing" in [r.getMessage() for r in caplog.get_records("setup")]
