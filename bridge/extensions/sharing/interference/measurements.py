# SPDX-License-Identifier: Apache-2.0
"""Measures hosts alone and beside their guests.

Rules
    1. A host is measured alone while it has no guest, and beside a guest from the instant at which
       the guest gets its ceiling, or from the last measurement if that is at most `JUST_S` old when
       the guest starts. With several guests, it is measured beside all of them.
    2. The CPU time of a job that was first measured within `YOUNG_S` of its start counts from its
       start, so that its second measurement gives a rate. Both units of work are measured; the rate
       of progress alone counts from its first change.
    3. `Pair.unknown` counts the measurements since the slowdown by rates was last known, as when no
       rate alone is.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from bridge.extensions.sharing.interference.estimates import PairEstimates
from bridge.extensions.sharing.interference.records import PairRecords
from bridge.extensions.sharing.interference.running_pairs import RunningPairs
from bridge.extensions.sharing.pair_record import NOT_MEASURED, Pair
from bridge.extensions.sharing.seen import is_measured
from bridge.extensions.sharing.slowdown import APART_S, CPU_MS, LONG, PROGRESS, SHORT, Rate

YOUNG_S: Final = 60
JUST_S: Final = 2
MAX_UNKNOWN: Final = 3
"""Measurements after which the slowdown is known, if it can be known at all (rule 3)."""


class Measurements:
    """Measurements of the hosts of one snapshot."""

    def __init__(self, pairs: RunningPairs, records: PairRecords, estimates: PairEstimates) -> None:
        """Starts without measuring.

        Args:
            pairs: the hosts and guests.
            records: records of them; are changed.
        """
        self._pairs, self._records, self._estimates = pairs, records, estimates
        self._running = pairs.snapshot.running

    def take(self) -> None:
        guests_of: dict[int, list[int]] = {}
        for guest, host in self._pairs.host_of.items():
            guests_of.setdefault(host, []).append(guest)
        for row in range(len(self._running.id)):
            if row in self._pairs.host_of or not is_measured(self._pairs.snapshot, row):
                continue
            works, guests = self._pairs.works(row), guests_of.get(row, ())
            for unit, work in works.items():
                self._alone(row, unit, work, has_guests=bool(guests))
            for guest in guests:
                self._beside(guest, works)

    def begin(self, guest_id: str, host: int, apps: tuple[str, str], ceiling: int) -> None:
        """Begins to measure a host beside a guest that is about to start (rule 1)."""
        now_s, works, at_s = self._pairs.now_s, self._pairs.works(host), self._at_s(host)
        pair = Pair(ceiling, now_s, told_s=now_s)
        if works and 0 <= now_s - at_s <= JUST_S:
            cpu, progress = (
                Rate(unit, at_s, works[unit]) if unit in works else Rate(unit, 0, 0)
                for unit in (CPU_MS, PROGRESS)
            )
            pair = replace(pair, since_s=at_s, rates=(cpu, progress))
        self._records.keep_started(guest_id, str(self._running.id[host]), apps, pair)

    def restarted(self, guest: int, pair: Pair) -> Pair:
        """The pair, with its host's measurement restarted."""
        cpu_ms = self._pairs.cpu_ms(guest)
        return replace(pair, since_s=self._pairs.now_s, guest_cpu_ms=cpu_ms, rates=NOT_MEASURED)

    def replace_rate_alone(self, guest: int, alone: Rate) -> None:
        """From now on this is the rate of a guest's host alone, in its present stage."""
        host = self._pairs.host_of[guest]
        works = self._pairs.works(host)
        if alone.unit in works:
            alone = replace(alone, at_s=self._at_s(host), work=works[alone.unit])
            self._records.keep_rate_alone(str(self._running.id[host]), alone)

    def _at_s(self, row: int) -> int:
        return int(self._running.measured_s[row])

    def _alone(self, row: int, unit: int, work: int, *, has_guests: bool) -> None:
        job_id, at_s = str(self._running.id[row]), self._at_s(row)
        alone = self._records.rate_alone(job_id, unit)
        before = self._from_its_start(row, unit) if alone is None else alone
        if before is None or (unit == PROGRESS and not before.samples and work == before.work):
            before = Rate(unit, at_s, work)
        if has_guests:  # its rate beside guests is not its rate alone
            after = replace(before, at_s=at_s, work=work)
        else:
            after = before.after(at_s, work, LONG)
        if after != alone:
            self._records.keep_rate_alone(job_id, after)

    def _from_its_start(self, row: int, unit: int) -> Rate | None:
        """The rate of a job that was not measured before; None: its earlier use is unknown."""
        start_s = int(self._running.start_s[row])
        young = unit == CPU_MS and self._at_s(row) - start_s <= YOUNG_S
        return Rate(unit, start_s, 0) if young else None

    def _beside(self, guest: int, works: Mapping[int, int]) -> None:
        pair = self._records.pair(guest)
        if pair is None:
            return
        at_s = self._at_s(self._pairs.host_of[guest])
        if pair.guest_cpu_ms < 0:
            pair = replace(pair, guest_cpu_ms=self._pairs.cpu_ms(guest))
        if at_s >= pair.since_s:  # earlier measurements say nothing about the two together
            rates = list(pair.rates)
            for unit, work in works.items():
                fresh = rates[unit].at_s < pair.since_s
                rates[unit] = (
                    Rate(unit, at_s, work) if fresh else rates[unit].after(at_s, work, SHORT)
                )
            blame = round(1000 * self._estimates.blame(guest))
            pair = replace(pair, rates=(rates[0], rates[1]), blame=blame)
        if self._estimates.by_rates(guest, pair) is not None:
            pair = replace(pair, unknown=0, counted_s=at_s)
        elif at_s - max(pair.counted_s, pair.since_s) >= APART_S:
            pair = replace(pair, unknown=pair.unknown + 1, counted_s=at_s)
        self._records.keep(guest, pair)
        self._records.count_time(guest, pair.ceiling, self._estimates.blame(guest))
