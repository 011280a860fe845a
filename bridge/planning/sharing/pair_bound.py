# SPDX-License-Identifier: Apache-2.0
"""What happens to a guest when its host is slower than allowed, or may be.

Rules
    1. When the bound is passed, the guest is held to the floor at once, and the host is measured
       again. If the bound is not passed at the floor, the guest is the cause: the pair's record is
       updated, and after `calm_s` the guest gets the highest admissible ceiling below the last one.
       If there is none, it is requeued.
    2. If the bound is passed at the floor as well, the guest is requeued, and the pair's record is
       updated. With `compares` there is one exception: the guest uses at most `MOST_RATIO` of the
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
    5. A guest to which no part of the loss is attributed stays as it is (`pair_watch`, rule 1).
"""

from dataclasses import dataclass, replace
from typing import Final

from bridge.planning.sharing.comparison import MOST_RATIO, MOST_TURNS, begun
from bridge.planning.sharing.leaving import ALWAYS_SLOW, UNKNOWN, too_slow
from bridge.planning.sharing.orders import FLOOR, cpus_of
from bridge.planning.sharing.pair_knowledge import Entry, highest_admissible, pair_key
from bridge.planning.sharing.pair_record import Pair, Suspicion
from bridge.planning.sharing.pair_watch import MOST_UNKNOWN, QUIET_S, Watch
from bridge.planning.sharing.slowdown import SHORT, SURE, Slowdown

FIRST_S: Final = 30
EARLY_S: Final = 120
KNOWN: Final = 3


@dataclass(frozen=True)
class PairBound:
    """Applies the rules to the pairs of one snapshot.

    Attributes:
        watch: measures them.
        calm_s: time at the floor before a lower ceiling.
        compares: whether hosts are compared in turns.
    """

    watch: Watch
    calm_s: int
    compares: bool

    def guide(self, guest: int, pair: Pair, bound: float) -> tuple[Pair, str]:
        """The new record of a pair, and why the guest must leave; empty: it need not.

        Args:
            guest: its row.
            pair: of the guest and its host; the host is measured.
            bound: of the host's slowdown.
        """
        if not self.compares:
            pair = replace(pair, comparison=None)  # begun before it was switched off
        if pair.comparison is not None:
            return self._compare(guest, pair, bound)
        if self.compares and any(each.comparison is not None for _, each in self._others(guest)):
            return pair, ""
        found = self.watch.slowdown(guest, pair)
        if found is not None and found.at_least > bound:
            return self._passed(guest, pair, found, bound)
        if pair.unknown >= 2 * MOST_UNKNOWN:
            return pair, UNKNOWN
        if pair.floor_s:
            return self._at_floor(guest, pair, bound)
        if not self.compares:
            return self._quiet(guest, pair, found, bound), ""
        if self._due(guest, pair, found, bound):
            return self._begun(guest, pair), ""
        return pair, ""

    # ------------------------------------------------------------ the bound is passed

    def _passed(self, guest: int, pair: Pair, found: Slowdown, bound: float) -> tuple[Pair, str]:
        """Rules 1, 2 and 5."""
        if not pair.blame:
            return self.watch.anew(guest, self.watch.teach(guest, pair, found, bound)), ""
        if not pair.floor_s and not self.compares:
            return self._floored(guest, self.watch.teach(guest, pair, found, bound)), ""
        if not pair.floor_s:
            used = self.watch.cpus_beside(guest)
            doubt = Suspicion(
                round(1000 * max(found.mean, 0)), round(1000 * used),
                max(self.watch.now_s - pair.untold_s, 0),
            )  # fmt: skip
            return replace(self._floored(guest, pair), suspicion=doubt), ""
        if self._may_be_stage(guest, pair, bound):
            return self._begun(guest, pair, suspect=1), ""
        pair = self.watch.convict(guest, pair)
        return self.watch.teach(guest, pair, found, bound), too_slow(found, bound)

    def _quiet(self, guest: int, pair: Pair, found: Slowdown | None, bound: float) -> Pair:
        """Rule 3, without comparisons."""
        quiet = self.watch.now_s - pair.told_s >= QUIET_S
        steady = max(rate.samples for rate in pair.rates) >= SHORT
        if found is not None and quiet and steady:
            return self.watch.teach(guest, pair, found, bound)
        return pair

    def _floored(self, guest: int, pair: Pair) -> Pair:
        return replace(self.watch.anew(guest, pair), floor_s=self.watch.now_s, comparison=None)

    def _at_floor(self, guest: int, pair: Pair, bound: float) -> tuple[Pair, str]:
        """Rule 1: the bound is not passed there."""
        if self.watch.now_s - pair.floor_s < self.calm_s:
            return pair, ""
        pair = self.watch.convict(guest, pair)
        lower = highest_admissible(
            self.watch.learning.known, self.watch.pair_apps(guest), self.watch.busy_of(guest),
            bound, below=pair.ceiling,
        )  # fmt: skip
        if lower is None:
            return pair, ALWAYS_SLOW
        return replace(self.watch.anew(guest, pair), ceiling=lower, floor_s=0), ""

    def _may_be_stage(self, guest: int, pair: Pair, bound: float) -> bool:
        """Rule 2: the exception."""
        doubt, overdue = pair.suspicion, self.watch.overdue(guest)
        if doubt is None or (overdue is not None and overdue.at_least > bound):
            return False
        now, before = self.watch.cpus_beside(guest), doubt.guest_milli_cpus / 1000
        return 0 <= now <= MOST_RATIO * before

    # ------------------------------------------------------------ comparisons

    def _due(self, guest: int, pair: Pair, found: Slowdown | None, bound: float) -> bool:
        """Rule 3."""
        now_s = self.watch.now_s
        if found is None:
            return False
        if self.watch.cpus_beside(guest) * MOST_RATIO < self._floor_cpus(guest):
            return False
        if not pair.compare_s:
            known = self.watch.learning.known.get(pair_key(*self.watch.pair_apps(guest)))
            seen = max(each.count for each in Entry.of_numbers(known).seen)
            return now_s - pair.since_s >= (QUIET_S if seen >= KNOWN else FIRST_S)
        faster = found.mean + SURE * found.error < -bound
        return now_s >= pair.compare_s - (QUIET_S - EARLY_S if faster else 0)

    def _others(self, guest: int) -> list[tuple[int, Pair]]:
        """The other guests of its host, with their records."""
        host_of = self.watch.host_of
        rows = (row for row, host in host_of.items() if host == host_of[guest] and row != guest)
        found = ((row, self.watch.pair(row)) for row in rows)
        return [(row, pair) for row, pair in found if pair is not None]

    def _floor_cpus(self, guest: int) -> float:
        running = self.watch.snapshot.running
        nodes = int(running.indptr[guest + 1] - running.indptr[guest])
        return FLOOR * cpus_of(self.watch.snapshot, guest) * nodes

    def _begun(self, guest: int, pair: Pair, *, suspect: int = 0) -> Pair:
        unit = self.watch.unit(self.watch.host_of[guest])
        if unit is None:
            return pair
        return replace(pair, comparison=begun(unit, self.watch.now_s, suspect=suspect))

    def _compare(self, guest: int, pair: Pair, bound: float) -> tuple[Pair, str]:
        """Rules 2 and 3: a comparison under way."""
        comparison = self.watch.compared(guest, pair)
        if comparison is None:  # the host's work is not measured any more
            if pair.unknown >= 2 * MOST_UNKNOWN:
                return pair, UNKNOWN
            return pair, ""
        verdict = comparison.verdict(bound)
        if not verdict.over:
            return replace(pair, comparison=comparison), ""
        doubt = pair.suspicion
        pair = replace(pair, comparison=None, compare_s=self.watch.now_s + QUIET_S)
        if verdict.found is None or verdict.alone is None:
            if comparison.suspect == 1 and len(comparison.rates) >= 2 * MOST_TURNS:
                return self._begun(guest, pair, suspect=2), ""
            if comparison.suspect and doubt is not None:
                harm = Slowdown(doubt.harm_permille / 1000, 0.0)
                return self.watch.convict(guest, pair), too_slow(harm, bound)
            return self.watch.anew(guest, pair), ""
        self.watch.rebase(guest, verdict.alone)
        for other, each in self._others(guest):
            fresh = replace(self.watch.anew(other, each), floor_s=0, suspicion=None)
            self.watch.keep(other, fresh)
        pair = replace(pair, floor_s=0, suspicion=None, blame=1000)
        pair = self.watch.teach(guest, pair, verdict.found, bound, cpus=comparison.guest_cpus)
        if verdict.harmful:
            return self._floored(guest, pair), ""
        return self.watch.anew(guest, pair), ""
