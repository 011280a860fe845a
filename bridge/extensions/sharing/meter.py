# SPDX-License-Identifier: Apache-2.0
"""Counts guests, their CPU time and their cost in the metrics.

Rules
    1. A guest is counted as started when it is first reported as running beside its host.
    2. A requeue is counted when it is first planned; plans repeat it until the guest has gone.
    3. Slowdowns are those that the policy `pairs` measures, one for each measurement of a host.
    4. A host is above its bound if the lower end of its interval is, as for the policy.
    5. A guest is of unknown slowdown until its host has been measured beside it, while there is
       nothing to compare with, and under other policies.
"""

from collections.abc import Callable
from typing import Any, Final

from bridge.extensions.sharing import switch
from bridge.extensions.sharing.counting import pairs
from bridge.extensions.sharing.interference.monitor import PairMonitor
from bridge.extensions.sharing.leaving import kind_of
from bridge.extensions.sharing.pair_knowledge import PAIRS
from bridge.extensions.sharing.part import shared_of
from bridge.extensions.sharing.rules import rules_of, sharing_rules
from bridge.model.learnt import Learning, Learnt
from bridge.model.plan import Plan
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.ports import State

_Guest = tuple[str, int]
"""Job and start: a requeued job is another guest."""
_SLOWDOWNS: Final = (-0.1, 0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2, 5)
"""Upper bounds of the histogram's buckets."""
_NONE: Final[frozenset[_Guest]] = frozenset()


class SharingMeter:
    """Starts without guests; see `bridge.extensions.service_port.Meter`."""

    def __init__(self, metrics: Any, site: Callable[[], Site], state: Callable[[], State]) -> None:
        self._site, self._state = site, state
        counter, gauge = metrics.counter, metrics.gauge
        self._guests = gauge("coschedule_guests", "Guests that run beside their hosts")
        self._above = gauge(
            "coschedule_hosts_above_bound", "Hosts that are slowed down by more than their bound"
        )
        self._unknown = gauge(
            "coschedule_slowdown_unknown", "Guests whose hosts' slowdown is not known"
        )
        self._starts = counter("coschedule_starts", "Guests that have started beside a host")
        self._requeues = counter(
            "coschedule_requeues", "Guests that were put back into the queue", "reason"
        )
        self._cpu = counter(
            "coschedule_guest_cpu_seconds", "CPU time of guests while beside their hosts"
        )
        self._slowdown = metrics.histogram(
            "coschedule_host_slowdown_ratio", "Rate alone over rate beside a guest, minus 1",
            buckets=_SLOWDOWNS,
        )  # fmt: skip
        metrics.add(
            "coschedule_off", "1 while an operator or a policy has ended sharing",
            lambda: float(switch.off_since_s(state()) is not None),
        )  # fmt: skip
        self._cpu_s: dict[_Guest, float] = {}
        self._going: frozenset[_Guest] = _NONE
        self._measured: dict[_Guest, int] = {}

    def planned(self, snapshot: Snapshot, plan: Plan) -> None:
        """Counts the guests of a report, and requeues of its plan."""
        host_of = pairs(snapshot.running)
        self._guests.set(len(host_of))
        if not host_of and not self._cpu_s:
            return
        guests = {self._guest(snapshot, row): row for row in host_of}
        self._count_use(snapshot, guests)
        self._count_requeues(plan, guests)
        self._measure(snapshot, guests)

    @staticmethod
    def _guest(snapshot: Snapshot, row: int) -> _Guest:
        return str(snapshot.running.id[row]), int(snapshot.running.start_s[row])

    def _count_use(self, snapshot: Snapshot, guests: dict[_Guest, int]) -> None:
        used = {}
        for guest, row in guests.items():
            before = self._cpu_s.get(guest)
            if before is None:
                self._starts.inc()
            used[guest] = max(float(snapshot.running.cpu_s[row]), before or 0.0)
            self._cpu.inc(used[guest] - (before or 0.0))
        self._cpu_s = used

    def _count_requeues(self, plan: Plan, guests: dict[_Guest, int]) -> None:
        requeues = shared_of(plan).requeues
        reasons = dict(zip(requeues.id.tolist(), requeues.reasons, strict=True))
        going = frozenset(guest for guest in guests if guest[0] in reasons)
        for guest in going - self._going:
            self._requeues.labels(kind_of(reasons[guest[0]])).inc()
        self._going = going

    def _measure(self, snapshot: Snapshot, guests: dict[_Guest, int]) -> None:
        """Counts measured slowdowns, and guests of unknown slowdown (rules 3 to 5)."""
        above, unknown, measured = 0, 0, {}
        learning = Learning(self._state().learnt_by(PAIRS))
        monitor = PairMonitor(snapshot, learning, Learning(Learnt()))
        for guest, row in guests.items():
            pair = monitor.records.pair(row)
            found = None if pair is None else monitor.estimates.slowdown(row, pair)
            if pair is None or found is None:
                unknown += 1
                continue
            measured[guest] = pair.at_s
            if self._measured.get(guest) != pair.at_s:
                self._slowdown.observe(found.mean)
            above += found.at_least > self._bound(snapshot, monitor.pairs.host_of[row])
        self._measured = measured
        self._above.set(above)
        self._unknown.set(unknown)

    def _bound(self, snapshot: Snapshot, host: int) -> float:
        running = snapshot.running
        partition = snapshot.partitions[int(running.partition[host])].name
        rules = rules_of(sharing_rules(self._site()), partition)
        return 0.0 if rules is None else rules.bound(int(running.max_slowdown_permille[host]))


class SharingMeters:
    """See `bridge.extensions.service_port.Meters`."""

    def meter(
        self, metrics: Any, site: Callable[[], Site], state: Callable[[], State]
    ) -> SharingMeter:
        """A meter without guests."""
        return SharingMeter(metrics, site, state)
