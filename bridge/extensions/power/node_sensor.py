# SPDX-License-Identifier: Apache-2.0
"""The power of one node, by the sensor that its agent reads, and the loss of a measurement.

Terms
    source      name of the sensor of a value; `MODEL` is no meter, all others are.
    lost        the source gives no value any more: another one has taken its place, or none has.
    highest     of a job's values within the last minute; the newest if all are older.

Rules
    1. A loss is not replaced by another value: the job's highest value before it counts as well,
       and what the model says now.
    2. The loss ends when a meter has had values for `MIN_S` (`bridge.rpc.agents.recent`); of a
       node without a meter, the model. Until then its values count beside the others.
    3. Values of different sources are never mixed in one quantile.
    4. If the service has not seen the loss, it believes the agent's last value of the meter, for
       every job on the node.
    5. Of the jobs that an agent names, at most `MAX_JOBS` are kept for a loss, until they are no
       longer placed on the node (`keep`). All others count like those of rule 4.
"""

import math
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Final

from bridge.extensions.power.calibration import MODEL
from bridge.rpc.agents.recent import MIN_S, Recent
from bridge.rpc.reported.safe_text import printable

NONE: Final = "none"
"""In place of a source: there is no value."""
MAX_JOBS: Final = 1024
"""Jobs of a node."""


@dataclass(frozen=True)
class Switch:
    """A change of the source, to be logged and counted.

    Attributes:
        before, after: sources; `NONE`: no value. Equal: the loss has ended.
        watts: the last value before.
    """

    before: str
    after: str
    watts: float


@dataclass(slots=True)
class Loss:
    """A measurement that is lost.

    Attributes:
        source: the source of the last value.
        max_w: the highest value of the node.
        jobs: the highest values of the jobs on the node.
        any_w: the power of every other job there (rules 4 and 5); 0: unknown.
        back_s: since when a meter has had values again; None: none has.
    """

    since_s: float
    source: str
    watts: float
    max_w: float = 0.0
    jobs: dict[str, float] = field(default_factory=dict)
    any_w: float = 0.0
    back_s: float | None = None


@dataclass(slots=True)
class NodeSensor:
    """What is known of one node.

    Attributes:
        watts, source, at_s: the last value; no source: there is none.
        lost: a lost measurement; None: none is.
        recent: values of the present source.
        jobs: values of the present source, by job.
        awaited: jobs that hold the node and were never measured there, and since when they are
            asked for.
    """

    watts: float = 0.0
    source: str = ""
    at_s: float = -math.inf
    swept_s: float = -math.inf
    lost: Loss | None = None
    recent: Recent = field(default_factory=Recent)
    jobs: dict[str, Recent] = field(default_factory=dict)
    awaited: dict[str, float] = field(default_factory=dict)

    def take(self, source: str, watts: float, at_s: float) -> Iterator[Switch]:
        """Records a value of the node, before those of its jobs."""
        source = printable(source[:40]) or NONE
        if source != self.source:
            yield from self._change(source, at_s)
        self.watts, self.at_s = watts, at_s
        self.recent.add(at_s, watts)
        lost = self.lost
        if lost is not None and lost.back_s is not None and at_s - lost.back_s >= MIN_S:
            self.lost = None
            yield Switch(source, source, watts)

    def end(self, now_s: float) -> Iterator[Switch]:
        """Records that there is no value any more."""
        if self.source:
            yield from self._change("", now_s)

    def believe(self, source: str, watts: float, now_s: float) -> None:
        """Records a loss that only the agent has seen (rule 4)."""
        if self.lost is None and self.source in ("", MODEL):
            self.lost = Loss(now_s, printable(source[:40]), watts, watts, any_w=watts)

    def _change(self, source: str, at_s: float) -> Iterator[Switch]:
        before, first = self.source, self.at_s == -math.inf
        appears = before == MODEL and source not in ("", MODEL)
        if before and not (appears and self.lost is None):
            self._lose(at_s)
        if before:
            self.recent, self.jobs = Recent(), {}
        self.source = source
        if self.lost is not None:
            measured = source != MODEL or self.lost.source == MODEL
            self.lost.back_s = at_s if source and measured else None
        if not first:
            yield Switch(before or NONE, source or NONE, self.watts)

    def _lose(self, now_s: float) -> None:
        """Keeps the highest values of the present source (rule 1)."""
        if self.lost is None:
            self.lost = Loss(now_s, self.source, self.watts)
        if self.source == MODEL != self.lost.source:
            return
        lost, kept = self.lost, self.lost.jobs
        lost.source, lost.watts = self.source, self.watts
        lost.max_w = max(lost.max_w, self.recent.highest(self.recent.last_s))
        for job, recent in self.jobs.items():
            highest_w = recent.highest(recent.last_s)
            if job in kept or len(kept) < MAX_JOBS:
                kept[job] = max(kept.get(job, 0.0), highest_w)
            else:
                lost.any_w = max(lost.any_w, highest_w)

    def keep(self, placed: Container[str]) -> None:
        """Forgets what a loss kept of jobs that are not placed on the node."""
        if self.lost is not None:
            self.lost.jobs = {job: w for job, w in self.lost.jobs.items() if job in placed}

    def upper_w(self, job: str, *, now_s: float, stale: bool) -> float:
        """What a job draws at most while a measurement is lost, without what is stated; 0: unknown.

        Args:
            job: its id on the node.
            stale: there is no current value.
        """
        lost = self.lost
        assert lost is not None
        recent = None if stale else self.jobs.get(job)
        present = 0.0 if recent is None else recent.highest(now_s)
        return max(lost.jobs.get(job, lost.any_w), present)

    def max_w(self, *, now_s: float, stale: bool) -> float:
        """The highest value of the node before a loss, or of the present source."""
        assert self.lost is not None
        return max(self.lost.max_w, 0.0 if stale else self.recent.highest(now_s))
