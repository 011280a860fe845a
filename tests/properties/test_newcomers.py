# SPDX-License-Identifier: Apache-2.0
"""Newcomers of several sources that come, show who they are, and leave, by seed.

Held against a list that is searched anew each time: who gives way is the oldest of those whose
source has most of all, and nobody before he has had time to show who he is. And how many places
there are.
"""

import resource
from collections import Counter

import numpy as np

from bridge.rpc.transport.newcomers import FAIR_S, Newcomers, source_of
from bridge.service.gates import _limits

ADDRESSES = (
    "10.0.0.1",
    "10.0.0.11",
    "127.0.0.1",
    "127.9.9.9",
    "::1",
    "fd00::1",
    "fd00::9",
    "fd01::1",
)
"""Of five sources; the three of this machine are one, and so are two of a network."""


def naive_source(address):
    if address.startswith("127.") or address == "::1":
        return "here"
    return address.removesuffix("::1").removesuffix("::9") if ":" in address else address


class Crowd:
    """Newcomers as a list of name, source and instant, beside the real ones."""

    def __init__(self, seed):
        self.dice, self.now = np.random.default_rng(seed), 50.0
        self.maximum = int(self.dice.integers(3, 9))
        self.places, self.here = Newcomers(self.maximum), []
        self.sent_away = Counter()

    def first_to_go(self):
        held = Counter(source for _, source, _ in self.here)
        of_most = [each for each in self.here if held[each[1]] == max(held.values())]
        return min(of_most, key=lambda each: each[2])

    def judge(self):
        assert list(self.places) == [name for name, _, _ in self.here]
        assert len(self.places) <= self.maximum
        if len(self.here) < self.maximum:
            assert self.places.in_the_way(self.now) is None
            assert self.places.room_at(self.now) == self.now
            return
        name, _, came = self.first_to_go()
        late = self.now - came >= FAIR_S
        assert self.places.in_the_way(self.now) == (name if late else None)
        assert self.places.room_at(self.now) == (self.now if late else came + FAIR_S)

    def come(self, name):
        """One more, as the gate does it; he may have to wait."""
        address = ADDRESSES[min(self.dice.integers(16), len(ADDRESSES) - 1)]
        other = self.places.in_the_way(self.now)
        if other is not None:
            (gone,) = [each for each in self.here if each[0] == other]
            self.sent_away[gone[1]] += 1
            self.leave(gone)
        if self.places.room_at(self.now) <= self.now and len(self.here) < self.maximum:
            self.places.add(name, source_of(address), self.now)
            self.here.append((name, naive_source(address), self.now))

    def leave(self, each):
        self.places.remove(each[0])
        self.here.remove(each)


def test_who_gives_way_is_the_oldest_of_the_source_that_has_most():
    sent_away = Counter()
    for seed in range(60):
        crowd = Crowd(seed)
        for name in range(120):
            # Exact in binary, so that nobody's time is over by rounding.
            crowd.now += float(crowd.dice.choice((0, 1 / 64, 1 / 8, 1 / 4)))
            crowd.come(name)
            crowd.judge()
            if crowd.here and crowd.dice.random() < 0.2:
                crowd.leave(crowd.here[crowd.dice.integers(len(crowd.here))])
                crowd.judge()
        sent_away += crowd.sent_away
    assert len(sent_away) == 5
    assert sent_away.total() > 600


def test_gates_divide_descriptors_between_newcomers_and_the_admitted(monkeypatch):
    """Newcomers have 256 places, or a quarter of what the descriptors suffice for."""
    dice = np.random.default_rng(1)
    for _ in range(500):
        limit, kept = int(2 ** dice.uniform(5, 20)), int(dice.integers(20, 1300))
        doors, admitted = int(dice.integers(1, 5)), int(dice.choice((128, 8192)))
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: (limit, limit))
        found = _limits(admitted, kept, doors)
        both = found.total + found.newcomers
        assert 1 <= found.total <= admitted
        assert 1 <= found.newcomers <= 256
        assert both == 2 or 3 * doors * both + kept <= limit
        assert both == admitted + 256 or 3 * doors * (both + 1) + kept > limit
        assert found.newcomers >= min(both // 4, 256)
        if both == admitted + 256:
            assert found.newcomers == 256
