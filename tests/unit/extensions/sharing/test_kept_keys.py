# SPDX-License-Identifier: Apache-2.0
"""How much is kept of what users make up: names of jobs, and pairs of them."""

import numpy as np
import pytest

from bridge.extensions.sharing import kept_keys
from bridge.extensions.sharing.histories import application, application_of, history_key
from bridge.extensions.sharing.kept_keys import BESIDE, EVERY, keep
from bridge.extensions.sharing.pair_knowledge import host_key, pair_key
from bridge.model.learnt import Learning, Learnt


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(kept_keys, "MAX_OF_USER", 100)
    monkeypatch.setattr(kept_keys, "MAX", 1000)


def app(user, name):
    return application(user, f"{name}x", 1)


def flood(learning, user, names, key=history_key):
    for name in range(names):
        keep(learning, key(app(user, name)), [name])


def test_a_user_with_many_names_fills_nothing():
    learning = Learning(Learnt())
    flood(learning, "ann", 50)
    flood(learning, "eve", 5_000)
    assert len(learning.known) <= 50 + 100 + EVERY
    assert all(history_key(app("ann", name)) in learning.known for name in range(50))
    assert history_key(app("eve", 4_999)) in learning.known


def test_many_users_push_out_their_own_oldest_first():
    learning = Learning(Learnt())
    flood(learning, "ann", 20)
    for user in range(40):
        flood(learning, f"user{user}", 90)
    assert len(learning.known) <= 1000 + EVERY
    assert all(history_key(app("ann", name)) in learning.known for name in range(20))


def test_pairs_with_a_strangers_many_names_go_first():
    learning = Learning(Learnt())
    host = app("ann", "host")
    for name in range(30):
        keep(learning, pair_key(host, app("bob", name)), [name])
    for name in range(1000):
        keep(learning, pair_key(host, app("eve", name)), [name])
    flood(learning, "ann", 90, host_key)
    assert all(pair_key(host, app("bob", name)) in learning.known for name in range(30))
    assert sum("eve" in key for key in learning.known.in_order()) <= 100 + EVERY
    assert all(host_key(app("ann", name)) in learning.known for name in range(90))


def test_the_bounds_hold_whatever_comes():
    rng = np.random.default_rng(1)
    learning = Learning(Learnt())
    for _ in range(20_000):
        user, other = rng.integers(0, 20, 2)
        name = int(rng.integers(0, 500))
        make = [
            lambda u, o, n: history_key(app(f"u{u}", n)),
            lambda u, o, n: host_key(app(f"u{u}", n)),
            lambda u, o, n: pair_key(app(f"u{u}", n), app(f"u{o}", n)),
        ][int(rng.integers(0, 3))]
        keep(learning, make(user, other, name), [1])
        assert len(learning.known) <= 1000 + EVERY


@pytest.mark.parametrize("name", ["a\x1fb", "a\x1e", "\x00", "\n", "\x1b[2J", "x" * 10_000])
def test_a_name_is_no_other_key_and_not_long(name):
    found = application("eve", name, 3)
    assert len(found) < 200
    user, plain, nodes = application_of(found)
    assert (user, nodes) == ("eve", 3)
    assert plain.isprintable()
    assert pair_key(found, app("bob", 1)).count(BESIDE) == 1
