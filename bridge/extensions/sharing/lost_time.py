# SPDX-License-Identifier: Apache-2.0
"""The time that guests have cost their hosts, by which the hosts' time limits are lengthened.

Terms
    hosted time     for which a host has had guests since its start, as its controller counts it.
    own limit       the host's time limit without extensions.

Rules
    1. The loss of a host is the sum over its hosted time of h / (1 + h), where h is the upper end
       of the interval of its slowdown at that time (`slowdown.py`), of several guests the largest.
       Hosted time in which the slowdown is unknown is lost as a whole, also that before a restart
       of the service without memory.
    2. The limit is lengthened as soon as the loss exceeds the extension so far, by whole minutes,
       so that planned starts count with the later end.
    3. A host that still runs `NEAR_S` before its limit gets all of its hosted time: no guest can
       have cost it more, and what is measured may be less than what was lost (CPU time does not
       show all interference).
    4. It is lengthened only if the controller says that it can do so (`RunningTable.extendable`).
       A host that could need an extension is safe only if no reservation of its nodes begins before
       twice its own limit, which is as far as extensions go. Of one that is made later, the
       controller grants what fits before it.
"""

from typing import Final

import numpy as np

from bridge.extensions.sharing.interference.monitor import PairMonitor
from bridge.extensions.sharing.longer_limits import Extensions, hosted_s, whole_minutes_s
from bridge.extensions.sharing.seen import is_measured
from bridge.extensions.sharing.slowdown import SURE
from bridge.units import NEVER

NEAR_S: Final = 120
"""A host's limit is near. The controller must hear of it before the limit, also when a cycle and
its answer take some seconds."""
_UNLIMITED_S: Final = 300 * 86_400
"""From this length on a limit is none: Slurm gives a job without limit a year."""
_AGAIN_S: Final = 15
"""A host near its limit is looked at again after this time, until it has its extension."""


class LostTime:
    """Time that the hosts of one snapshot have lost."""

    def __init__(self, monitor: PairMonitor) -> None:
        """Starts without counting.

        Args:
            monitor: the monitor of the pairs; what is kept of hosts is changed.
        """
        self._monitor, self._snapshot = monitor, monitor.snapshot
        self._running, self._now_s = self._snapshot.running, self._snapshot.now_s

    def may_extend(self, row: int) -> bool:
        """Whether the limit of a running job can be lengthened as far as needed (rule 4)."""
        running = self._running
        if not running.extendable[row] or running.host_id[row]:
            return False
        own_s, start_s = self.own_end_s(row), int(running.start_s[row])
        latest_s = own_s + whole_minutes_s(max(own_s - start_s, 0))
        held = self._monitor.pairs.nodes(row)
        return not any(
            each.start_s < latest_s and each.end_s > self._now_s and np.isin(held, each.nodes).any()
            for each in self._snapshot.reservations
        )

    def is_safe(self, row: int) -> bool:
        """Whether a running job cannot be killed at its limit because of its guests."""
        limit_s = int(self._running.end_s[row]) - int(self._running.start_s[row])
        return limit_s >= _UNLIMITED_S or self.may_extend(row)

    def own_end_s(self, row: int) -> int:
        """When a running job reaches its own limit."""
        return int(self._running.end_s[row]) - int(self._running.extended_s[row])

    def count(self) -> None:
        """Takes in the hosted time since the last snapshot (rule 1)."""
        records = self._monitor.records
        for row in self._hosts():
            run, hosted = self._run(row), self._hosted_s(row)
            counted_s, lost_ms = records.lost(*run)
            # It shrinks when the controller learns late that the last guest had left.
            more_s = max(hosted - counted_s, 0)
            lost_ms += round(1000 * more_s * self._lost_share(row))
            records.keep_lost(*run, counted_s + more_s, lost_ms)

    def extensions(self) -> Extensions:
        """The limits that are to be lengthened now (rules 2 and 3)."""
        found = {}
        for row in self._hosts():
            owed_s = self._owed_s(row)
            if whole_minutes_s(owed_s) > int(self._running.extended_s[row]):
                found[str(self._running.id[row])] = owed_s
        return Extensions.of(found)

    def again_s(self) -> int:
        """When a host comes near its limit (rule 3); NEVER: none does."""
        found = NEVER
        for row in self._hosts():
            rest = whole_minutes_s(self._hosted_s(row)) > int(self._running.extended_s[row])
            if rest:
                near_s = int(self._running.end_s[row]) - NEAR_S
                found = min(found, max(near_s, self._now_s + _AGAIN_S))
        return found

    def _hosts(self) -> list[int]:
        """Rows of the jobs that have had guests, or have some, and can get more time."""
        running = self._running
        had = running.extendable & ((running.hosted_s > 0) | (running.hosted_since_s > 0))
        rows: list[int] = np.flatnonzero(had).tolist()
        return [row for row in rows if not running.host_id[row]]

    def _hosted_s(self, row: int) -> int:
        return hosted_s(self._running, row, self._now_s)

    def _run(self, row: int) -> tuple[str, int]:
        """A host, and when it started: a requeued job has lost nothing yet."""
        return str(self._running.id[row]), int(self._running.start_s[row])

    def _owed_s(self, row: int) -> int:
        hosted = self._hosted_s(row)
        if int(self._running.end_s[row]) - self._now_s <= NEAR_S:
            return hosted
        _, lost_ms = self._monitor.records.lost(*self._run(row))
        return min(-(-lost_ms // 1000), hosted)

    def _lost_share(self, row: int) -> float:
        """The share of the present time that a host loses to its guests, 0 to 1 (rule 1)."""
        if not is_measured(self._snapshot, row):
            return 1.0
        highest = -1.0
        for guest in self._monitor.pairs.guests_of(row):
            pair = self._monitor.records.pair(guest)
            found = None if pair is None else self._monitor.estimates.slowdown(guest, pair)
            if found is None:
                return 1.0
            highest = max(highest, found.mean + SURE * found.error)
        return 1.0 if highest < 0 else highest / (1 + highest)
