# SPDX-License-Identifier: Apache-2.0
"""What a predictor has learnt of run times, and how it learns more within one cycle."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bridge.model.layers import Draft, Layers

MOST_KNOWN = 200_000
"""Keys that a predictor knows at most; what has not changed for longest is forgotten first."""
_FORGOTTEN = 16
"""When that is reached, one key of so many is forgotten at a time."""


def _nothing() -> Layers[Any]:
    return Layers()


@dataclass(frozen=True)
class Learnt:
    """What one predictor has learnt, and what it has at hand; never changed.

    Attributes:
        known: key to whole numbers, what changed last at the end.
        running: job id to start and predicted run time of the jobs that run.
        traits: job id to what the predictor knows it by, of the jobs that run.
        waiting: likewise of those that waited in the last snapshot.
        table: the job table that `waiting` is of.
        guesses: user to what was made of `known` for that user's jobs; may be filled at any time,
            for it follows from `known`.
        judged, under: ended jobs that were predicted, and those of them that ran for longer.
        off_s, accuracy: sums of abs(predicted - actual), s, and of smaller / larger of the two.
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
    """What a predictor learns within one cycle; `done` is what it has learnt then.

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
        """Puts a value in place of what was known, and forgets what was made of it for a user."""
        if user in self.guesses:
            self.guesses = {name: made for name, made in self.guesses.items() if name != user}
        self.known[key] = value
        if len(self.known) > MOST_KNOWN:
            many = len(self.known) - MOST_KNOWN + MOST_KNOWN // _FORGOTTEN
            oldest = self.known.in_order()[:many]
            for each in oldest:
                self.known.pop(each)

    def done(self) -> Learnt:
        """What is known now."""
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
