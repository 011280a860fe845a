# SPDX-License-Identifier: Apache-2.0
"""What a predictor has learnt about run times, and how it is updated within one cycle."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bridge.model.layers import Draft, Layers

MAX_KNOWN = 200_000
"""Largest number of keys of a predictor; the least recently changed are dropped first."""
MAX_TEXT_BYTES = 48 << 20
"""Maximum length of what was learnt as a text, which another service can take in."""
_FORGOTTEN = 16
"""When the limit is reached, this fraction of the keys is dropped at a time: 1 / 16."""


def _nothing() -> Layers[Any]:
    return Layers()


@dataclass(frozen=True)
class Learnt:
    """What one predictor has learnt, with caches; immutable except for the caches.

    Attributes:
        known: key to integers, in the order of the last change.
        running: job id to start and predicted run time, of running jobs.
        traits: job id to the key data of the job (its trait), of running jobs.
        waiting: the same of the jobs that waited in the last snapshot.
        table: the job table that `waiting` was made from.
        guesses: user to predictions derived from `known`; a cache.
        judged, under: number of ended jobs with a prediction, and of those that exceeded it.
        off_s, accuracy: sums of abs(predicted - actual), s, and of min / max of the two.
    """

    known: Layers[list[int]] = field(default_factory=_nothing)
    running: Layers[list[int]] = field(default_factory=_nothing)
    traits: Layers[Any] = field(default_factory=_nothing)
    waiting: Mapping[str, Any] = field(default_factory=dict)
    table: object = None
    guesses: dict[str, dict[Any, int]] = field(default_factory=dict)
    judged: int = 0
    under: int = 0
    off_s: int = 0
    accuracy: float = 0.0


class Learning:
    """Collects what a predictor learns within one cycle; `done` returns the result.

    Attributes: as of `Learnt`; `known`, `running` and `traits` as drafts.
    """

    def __init__(self, before: Learnt) -> None:
        """Begins with what was known."""
        self.known, self.running = Draft(before.known), Draft(before.running)
        self.traits = Draft(before.traits)
        self.waiting, self.table = before.waiting, before.table
        self.guesses = before.guesses
        self.judged, self.under = before.judged, before.under
        self.off_s, self.accuracy = before.off_s, before.accuracy

    def learn(self, user: str, key: str, value: list[int]) -> None:
        """Sets the value of a key, and drops the cached predictions of the user."""
        if user in self.guesses:
            self.guesses = {name: made for name, made in self.guesses.items() if name != user}
        self.known[key] = value
        if len(self.known) > MAX_KNOWN:
            many = len(self.known) - MAX_KNOWN + MAX_KNOWN // _FORGOTTEN
            oldest = self.known.in_order()[:many]
            for each in oldest:
                self.known.pop(each)

    def done(self) -> Learnt:
        """Returns what is known now."""
        return Learnt(
            self.known.done(),
            self.running.done(),
            self.traits.done(),
            self.waiting,
            self.table,
            self.guesses,
            self.judged,
            self.under,
            self.off_s,
            self.accuracy,
        )
