# SPDX-License-Identifier: Apache-2.0
"""What happens to a guest when its host is slower than allowed, or may be.

Rules
    1. When the bound is passed, the guest is held to the floor at once, and the host is measured
       again. If the bound is not passed at the floor, the guest is the cause: the pair's record is
       updated, and after `calm_s` the guest gets the highest admissible ceiling below the last one.
       If there is none, it is requeued.
    2. If the bound is passed at the floor as well, the guest is requeued, and the pair's record is
       updated. With `compares` there is one exception: the guest uses at most `MAX_RATIO` of the
       CPU time that it used. Then the host may be slow because it is in another stage, and is
       compared in turns (`comparison.py`), and once more if all turns leave it unknown. If there is
       no harm, the guest keeps its ceiling, and the rate of the present stage becomes the rate
       alone. If there is harm, rule 1 applies; otherwise the guest is requeued.
    3. With `compares`, hidden harm is looked for: the host's stage has changed when the guest
       started, and would be faster without it. Therefore a host is compared in turns before its
       pair is learnt from: `FIRST_S` after the guest's start, or after `QUIET_S` if the pair is
       known by `KNOWN` observations, then every `QUIET_S`, and earlier when the host is faster
       beside the guest than alone by more than its bound (at most every `EARLY_S`). Harm is treated
       by rule 1. A guest that uses hardly more than the floor anyway is not compared. Without
       `compares` a pair is learnt from every `QUIET_S` while the bound is not passed.
    4. Of several guests of a host one is compared at a time. Meanwhile the others stay as they are;
       afterwards the host is measured anew beside them, without suspicion. A guest is not compared
       when the host's run time alone shows that it is slow.
    5. A guest to which no part of the loss is attributed stays as it is (`PairEstimates.blame`).
"""

from dataclasses import replace
from typing import Final

from bridge.extensions.sharing.comparison import MAX_RATIO, MAX_TURNS, begun
from bridge.extensions.sharing.interference.measurements import MAX_UNKNOWN
from bridge.extensions.sharing.interference.monitor import PairMonitor
from bridge.extensions.sharing.interference.pair_learner import QUIET_S
from bridge.extensions.sharing.leaving import ALWAYS_SLOW, UNKNOWN, too_slow
from bridge.extensions.sharing.orders import FLOOR, cpus_of
from bridge.extensions.sharing.pair_knowledge import Entry, highest_admissible, pair_key
from bridge.extensions.sharing.pair_record import Pair, Suspicion
from bridge.extensions.sharing.slowdown import SHORT, SURE, HostSlowdown

FIRST_S: Final = 30
EARLY_S: Final = 120
KNOWN: Final = 3


class PairBound:
    """Applies the rules to the pairs of one snapshot."""

    def __init__(self, monitor: PairMonitor, calm_s: int, compares: bool) -> None:
        """Starts without changing anything.

        Args:
            calm_s: time at the floor before a lower ceiling, s.
            compares: whether hosts are compared in turns.
        """
        self._snapshot, self._learning = monitor.snapshot, monitor.learning
        self._pairs, self._records = monitor.pairs, monitor.records
        self._estimates, self._learner = monitor.estimates, monitor.learner
        self._measurements = monitor.measurements
        self._calm_s, self._compares = calm_s, compares

    def guide(self, guest: int, pair: Pair, bound: float) -> tuple[Pair, str]:
        """The new record of a pair, and why the guest must leave; empty: it need not.

        Args:
            pair: the pair of the guest and its host; the host is measured.
            bound: the bound of the host's slowdown.
        """
        if not self._compares:
            pair = replace(pair, comparison=None)  # begun before it was switched off
        if pair.comparison is not None:
            return self._compare(guest, pair, bound)
        if self._compares and any(each.comparison is not None for _, each in self._others(guest)):
            return pair, ""
        found = self._estimates.slowdown(guest, pair)
        if found is not None and found.at_least > bound:
            return self._passed(guest, pair, found, bound)
        if pair.unknown >= 2 * MAX_UNKNOWN:
            return pair, UNKNOWN
        if pair.floor_s:
            return self._at_floor(guest, pair, bound)
        if not self._compares:
            return self._quiet(guest, pair, found, bound), ""
        if self._due(guest, pair, found, bound):
            return self._begun(guest, pair), ""
        return pair, ""

    # ------------------------------------------------------------ the bound is passed

    def _passed(
        self, guest: int, pair: Pair, found: HostSlowdown, bound: float
    ) -> tuple[Pair, str]:
        """Holds a guest to the floor or requeues it when the bound is passed (rules 1, 2, 5)."""
        if not pair.blame:
            return self._measurements.restarted(
                guest, self._learner.learn(guest, pair, found, bound)
            ), ""
        if not pair.floor_s and not self._compares:
            return self._floored(guest, self._learner.learn(guest, pair, found, bound)), ""
        if not pair.floor_s:
            used = self._estimates.cpus_beside(guest)
            doubt = Suspicion(
                round(1000 * max(found.mean, 0)), round(1000 * used),
                max(self._pairs.now_s - pair.untold_s, 0),
            )  # fmt: skip
            return replace(self._floored(guest, pair), suspicion=doubt), ""
        if self._may_be_stage(guest, pair, bound):
            return self._begun(guest, pair, suspect=1), ""
        pair = self._learner.confirm_suspicion(guest, pair)
        return self._learner.learn(guest, pair, found, bound), too_slow(found, bound)

    def _quiet(self, guest: int, pair: Pair, found: HostSlowdown | None, bound: float) -> Pair:
        """Rule 3, without comparisons."""
        quiet = self._pairs.now_s - pair.told_s >= QUIET_S
        steady = max(rate.samples for rate in pair.rates) >= SHORT
        if found is not None and quiet and steady:
            return self._learner.learn(guest, pair, found, bound)
        return pair

    def _floored(self, guest: int, pair: Pair) -> Pair:
        return replace(
            self._measurements.restarted(guest, pair),
            floor_s=self._pairs.now_s,
            comparison=None,
        )

    def _at_floor(self, guest: int, pair: Pair, bound: float) -> tuple[Pair, str]:
        """Rule 1: the bound is not passed there."""
        if self._pairs.now_s - pair.floor_s < self._calm_s:
            return pair, ""
        pair = self._learner.confirm_suspicion(guest, pair)
        lower = highest_admissible(
            self._learning.known, self._pairs.pair_apps(guest), self._pairs.busy_beside(guest),
            bound, below=pair.ceiling,
        )  # fmt: skip
        if lower is None:
            return pair, ALWAYS_SLOW
        return replace(self._measurements.restarted(guest, pair), ceiling=lower, floor_s=0), ""

    def _may_be_stage(self, guest: int, pair: Pair, bound: float) -> bool:
        """Rule 2: the exception."""
        doubt, overdue = pair.suspicion, self._estimates.overdue(guest)
        if doubt is None or (overdue is not None and overdue.at_least > bound):
            return False
        now, before = self._estimates.cpus_beside(guest), doubt.guest_milli_cpus / 1000
        return 0 <= now <= MAX_RATIO * before

    # ------------------------------------------------------------ comparisons

    def _due(self, guest: int, pair: Pair, found: HostSlowdown | None, bound: float) -> bool:
        """Whether the host is to be compared in turns before its pair is learnt from (rule 3)."""
        now_s = self._pairs.now_s
        if found is None:
            return False
        if self._estimates.cpus_beside(guest) * MAX_RATIO < self._floor_cpus(guest):
            return False
        if not pair.compare_s:
            known = self._learning.known.get(pair_key(*self._pairs.pair_apps(guest)))
            seen = max(each.count for each in Entry.of_numbers(known).seen)
            return now_s - pair.since_s >= (QUIET_S if seen >= KNOWN else FIRST_S)
        faster = found.mean + SURE * found.error < -bound
        return now_s >= pair.compare_s - (QUIET_S - EARLY_S if faster else 0)

    def _others(self, guest: int) -> list[tuple[int, Pair]]:
        """The other guests of its host, with their records."""
        guests = self._pairs.guests_of(self._pairs.host_of[guest])
        found = ((row, self._records.pair(row)) for row in guests if row != guest)
        return [(row, pair) for row, pair in found if pair is not None]

    def _floor_cpus(self, guest: int) -> float:
        running = self._snapshot.running
        nodes = int(running.indptr[guest + 1] - running.indptr[guest])
        return FLOOR * cpus_of(self._snapshot, guest) * nodes

    def _begun(self, guest: int, pair: Pair, *, suspect: int = 0) -> Pair:
        unit = self._estimates.unit(self._pairs.host_of[guest])
        if unit is None:
            return pair
        return replace(pair, comparison=begun(unit, self._pairs.now_s, suspect=suspect))

    def _compare(self, guest: int, pair: Pair, bound: float) -> tuple[Pair, str]:
        """Rules 2 and 3: a comparison under way."""
        comparison = self._estimates.compared(guest, pair)
        if comparison is None:  # the host's work is not measured any more
            if pair.unknown >= 2 * MAX_UNKNOWN:
                return pair, UNKNOWN
            return pair, ""
        result = comparison.result(bound)
        if not result.over:
            return replace(pair, comparison=comparison), ""
        doubt = pair.suspicion
        pair = replace(pair, comparison=None, compare_s=self._pairs.now_s + QUIET_S)
        if result.found is None or result.alone is None:
            if comparison.suspect == 1 and len(comparison.rates) >= 2 * MAX_TURNS:
                return self._begun(guest, pair, suspect=2), ""
            if comparison.suspect and doubt is not None:
                harm = HostSlowdown(doubt.harm_permille / 1000, 0.0)
                return self._learner.confirm_suspicion(guest, pair), too_slow(harm, bound)
            return self._measurements.restarted(guest, pair), ""
        self._measurements.replace_rate_alone(guest, result.alone)
        for other, each in self._others(guest):
            fresh = replace(self._measurements.restarted(other, each), floor_s=0, suspicion=None)
            self._records.keep(other, fresh)
        pair = replace(pair, floor_s=0, suspicion=None, blame=1000)
        pair = self._learner.learn(guest, pair, result.found, bound, cpus=comparison.guest_cpus)
        if result.harmful:
            return self._floored(guest, pair), ""
        return self._measurements.restarted(guest, pair), ""
