# SPDX-License-Identifier: Apache-2.0
"""`schedbridge coschedule` with a real service on real sockets: long files pass them."""

import json

import pytest

from bridge.extensions.sharing import exchange_text
from bridge.extensions.sharing.histories import application
from bridge.extensions.sharing.pair_knowledge import Entry, pair_key
from bridge.model.layers import Layers
from bridge.model.learnt import Learnt
from tests.simulation.services import a_home, a_service, run


@pytest.fixture
def home():
    with a_home() as path:
        yield path


def coschedule(home, *words):
    return run("coschedule", *words, "--socket", f"{home}/o/s")


def what_was_learnt(pairs):
    """As many pairs, with names of full length."""
    numbers = Entry().after(10, 2e-05, 1.0, bad=True).numbers()
    apps = (application("ann", f"{'n' * 120}{number:05d}x", 4) for number in range(pairs))
    return exchange_text.written(Learnt(Layers({pair_key(a, a): numbers for a in apps})), Learnt())


def test_a_long_export_is_imported_and_exported_again(home):
    """Longer than other requests may be, and than a few thousand pairs.

    Slow: that is megabytes of text, three times.
    """
    text = what_was_learnt(pairs=10_000)
    assert len(text) > 5 << 20
    (home / "learnt.json").write_text(text)
    with a_service(home, policy="pairs"):
        told = coschedule(home, "import", home / "learnt.json")
        assert (told.returncode, told.stderr) == (0, "")
        assert told.stdout == "imported: at least 1000 pairs of applications\n"
        told = coschedule(home, "export", home / "again.json")
        assert (told.returncode, told.stderr) == (0, "")
    again = json.loads((home / "again.json").read_text())
    assert again == json.loads(text)
    assert len(again["pairs"]) == 10_000
