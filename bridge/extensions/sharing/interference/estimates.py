# SPDX-License-Identifier: Apache-2.0
"""Estimates of running pairs: the host's slowdown, who causes it, and the time it still needs.

Rules
    1. The slowdown by rates is defined in `slowdown.py`. The unit is the first one in which the
       host is measured now and its rate alone is known.
    2. A host that still runs after it would have ended alone has lost at least the time since then,
       with an interval by the deviation of the run times alone. The larger of the two slowdowns, by
       the lower ends of their intervals, counts. Its application must have `MIN_RUNS` runs alone.
    3. With several guests, the host's loss is attributed to those on nodes on which it has
       processes, or to all if there are none, by the CPU time that each has used meanwhile.
"""

import math
from collections.abc import Sequence
from typing import Final

from bridge.extensions.sharing.comparison import Comparison
from bridge.extensions.sharing.histories import History, history_of
from bridge.extensions.sharing.interference.records import PairRecords
from bridge.extensions.sharing.interference.running_pairs import RunningPairs
from bridge.extensions.sharing.pair_record import Pair
from bridge.extensions.sharing.slowdown import (
    LARGEST,
    MIN_SAMPLES,
    NOISE,
    PARTS,
    PROGRESS,
    SURE,
    HostSlowdown,
    Rate,
    alone_rate,
    slowdown,
)
from bridge.model.learnt import Learning

MIN_RUNS: Final = 3
"""Runs alone from which on their deviation is known."""


class PairEstimates:
    def __init__(
        self, pairs: RunningPairs, records: PairRecords, learning: Learning, units: Sequence[int]
    ) -> None:
        """Starts without reading.

        Args:
            pairs: the hosts and guests.
            units: in which slowdowns are measured, the preferred one first.
        """
        self._pairs, self._records, self._learning = pairs, records, learning
        self._running, self._units = pairs.snapshot.running, units

    # ------------------------------------------------------------ the host

    def unit(self, row: int) -> int | None:
        """The unit in which a job's rate alone is known and it is measured now; None: in none."""
        works = self._pairs.works(row)
        known = (unit for unit in self._units if unit in works)
        return next((unit for unit in known if self.rate_alone(row, unit) is not None), None)

    def rate_alone(self, row: int, unit: int) -> Rate | None:
        """The rate at which a running job is assumed to work alone; None: not known."""
        alone = self._records.rate_alone(str(self._running.id[row]), unit)
        return alone_rate(alone, unit, self._history(row))

    def needs_s(self, row: int, rate: Rate, *, at_most: bool = False) -> float | None:
        """The time that a job still needs at a rate, s; None: not known.

        Args:
            at_most: with the upper end of the interval of runs alone; not known for a job that has
                used more CPU time than that, or whose application has less than `MIN_RUNS`.
        """
        if rate.samples < MIN_SAMPLES or rate.mean <= 0:
            return None
        progress = float(self._running.progress[row])
        if rate.unit == PROGRESS:
            return (1 - min(progress, 1.0)) * PARTS / rate.mean if progress >= 0 else None
        history, cpu_s = self._history(row), float(self._running.cpu_s[row])
        if history is None or history.runs < MIN_SAMPLES or cpu_s < 0:
            return None
        rest_s = history.cpu_s - cpu_s
        if at_most:
            relative = deviation_s(history) / max(history.run_s, 1e-3)
            rest_s += SURE * relative * math.sqrt(1 + 1 / history.runs) * history.cpu_s
            if history.runs < MIN_RUNS or rest_s < 0:
                return None
        return max(rest_s, 0.0) * 1000 / rate.mean

    # ------------------------------------------------------------ its slowdown

    def slowdown(self, guest: int, pair: Pair) -> HostSlowdown | None:
        """The present slowdown of a guest's host; None: too little is known."""
        both = self.by_rates(guest, pair), self.overdue(guest)
        found = [each for each in both if each is not None]
        return max(found, key=lambda each: each.at_least, default=None)

    def by_rates(self, guest: int, pair: Pair) -> HostSlowdown | None:
        """The slowdown by rule 1; None: too little is known."""
        host = self._pairs.host_of[guest]
        unit = self.unit(host)
        return None if unit is None else slowdown(self.rate_alone(host, unit), pair.rates[unit])

    def overdue(self, guest: int) -> HostSlowdown | None:
        """The slowdown by rule 2; None: the host is not late, or its end alone is unknown."""
        host = self._pairs.host_of[guest]
        history, beside_s = self._history(host), self._records.beside_s(guest)
        if history is None or history.runs < MIN_RUNS or beside_s <= 0:
            return None
        lost_s = self._pairs.now_s - int(self._running.start_s[host]) - history.run_s
        if lost_s <= 0:
            return None
        rest_s = max(beside_s - lost_s, beside_s / LARGEST)
        noise_s = deviation_s(history) * math.sqrt(1 + 1 / history.runs)
        return HostSlowdown(min(lost_s, beside_s) / rest_s, noise_s / rest_s)

    def compared(self, guest: int, pair: Pair) -> Comparison | None:
        """A pair's comparison with the present measurement; None: the host's work is unknown."""
        host = self._pairs.host_of[guest]
        work = None
        if pair.comparison is not None:
            work = self._pairs.works(host).get(pair.comparison.unit)
        if pair.comparison is None or work is None:
            return None
        at_s = int(self._running.measured_s[host])
        return pair.comparison.after(at_s, work, self._pairs.cpu_ms(guest), self._pairs.now_s)

    # ------------------------------------------------------------ its cause

    def blame(self, guest: int) -> float:
        """Share of its host's loss attributed to a guest, 0 to 1 (rule 3)."""
        host = self._pairs.host_of[guest]
        guests, unused = self._pairs.guests_of(host), set(self._running.unused_nodes[host])
        near = [each for each in guests if set(self._pairs.nodes(each)) - unused] or guests
        if guest not in near:
            return 0.0
        used = {each: max(self.cpus_beside(each), 0.0) for each in near}
        total = sum(used.values())
        return used[guest] / total if total > 0 else 1 / len(near)

    def cpus_beside(self, guest: int) -> float:
        """CPUs that a guest has used while its host was measured beside it; -1: not known."""
        pair, cpu_ms = self._records.pair(guest), self._pairs.cpu_ms(guest)
        now_s = self._pairs.now_s
        if pair is None or not 0 <= pair.guest_cpu_ms <= cpu_ms or now_s <= pair.since_s:
            return -1.0
        return (cpu_ms - pair.guest_cpu_ms) / 1000 / (now_s - pair.since_s)

    def _history(self, row: int) -> History | None:
        return history_of(self._learning, self._pairs.apps[row])


def deviation_s(history: History) -> float:
    """The standard deviation of a run time alone, from a sample; at least `NOISE`, s."""
    sample_s = history.deviation_s * math.sqrt(history.runs / max(history.runs - 1, 1))
    return max(sample_s, NOISE * history.run_s)
