# SPDX-License-Identifier: Apache-2.0
"""Watches pairs: measures hosts alone and beside their guests, and learns from pairs that end.

Rules
    1. A host is measured alone while it has no guest, and beside a guest from the instant at which
       the guest gets its ceiling, or from the last measurement if that is at most `JUST_S` old when
       the guest starts. The CPU time of a job that was first measured within `YOUNG_S` of
       its start counts from its start, so that its second measurement gives a rate. With several
       guests, the host is measured beside all of them, and its loss is attributed to the guests on
       nodes on which it has processes, or to all if there are none, by the CPU time that each has
       used meanwhile. Both units of work are measured; the rate of progress alone counts from its
       first change.
    2. A pair is learnt from when its guest is found to slow the host down, or found not to, every
       `QUIET_S` (`pair_bound.py`), and when it ends.
    3. If the application of an ended host is known from runs alone, and it had a guest for a good
       part of the run, the whole run is learnt from as well: the time lost is attributed to the
       time with the guest. This shows interference that CPU time does not, as on memory. It is done
       only if the application's run times alone differ little, by `ALIKE` at most: otherwise a
       longer run is no sign of harm.
    4. The same holds for a host that still runs after it would have ended alone: at least the time
       since then is lost, with an interval by the deviation of the run times alone. The larger of
       the two slowdowns, by the lower ends of their intervals, counts.
    5. The records of running jobs are dropped when the jobs have left.
    6. `Pair.unknown` counts the measurements since the slowdown by rates was last known, as when no
       rate alone is.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from bridge.model.coscheduling import pairs
from bridge.model.job import Ending
from bridge.model.learnt import Learning
from bridge.model.snapshot import Snapshot
from bridge.planning.sharing.comparison import Comparison
from bridge.planning.sharing.histories import (
    History,
    application_of,
    applications,
    follow,
    history_of,
)
from bridge.planning.sharing.kept_keys import APART, BESIDE
from bridge.planning.sharing.left_hosts import LeftHosts
from bridge.planning.sharing.orders import cpus_of
from bridge.planning.sharing.pair_knowledge import CEILINGS, note, note_short_of_memory
from bridge.planning.sharing.pair_record import NOT_MEASURED, Pair, Suspicion
from bridge.planning.sharing.seen import is_measured
from bridge.planning.sharing.site_harm import SiteHarm
from bridge.planning.sharing.slowdown import (
    APART_S,
    CPU_MS,
    LARGEST,
    LEAST_SAMPLES,
    LONG,
    NOISE,
    PARTS,
    PROGRESS,
    SHORT,
    UNITS,
    Rate,
    Slowdown,
    alone_rate,
    slowdown,
    works_of,
)

QUIET_S: Final = 600
YOUNG_S: Final = 60
JUST_S: Final = 2
_ALONE, _BESIDE, _RAN = "alone", "beside", "ran"
_LEAST_SHARED: Final = 0.2
"""A good part of a run (rule 3)."""
LEAST_RUNS: Final = 3
"""Runs alone from which on their deviation is known."""
ALIKE: Final = 2 * NOISE
"""Largest relative deviation of run times alone that make a single run comparable (rule 3)."""
_MUCH: Final = 0.10
"""From this harm on, an ended pair counts against higher ceilings, not for lower ones."""
_MOST_BESIDE: Final = 32
"""Applications of guests of one host whose time beside it is counted."""
_LONGEST_GAP_S: Final = 120
"""Maximum time between two observations of a pair; more does not count as time together."""


MOST_UNKNOWN: Final = 3
"""Measurements after which the slowdown is known, if it can be known at all (rule 6)."""


class Watch:
    """The pairs of one snapshot, and what is learnt from them.

    Attributes:
        snapshot: the cluster.
        apps: application of each running job.
        host_of: row of each guest to the row of its host.
        harm: of the hosts of each user, and of the whole site.
        left: the guests that were requeued.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        learning: Learning,
        left: Learning,
        units: Sequence[int] = UNITS,
    ) -> None:
        """Starts without reading the snapshot.

        Args:
            snapshot: the cluster.
            learning: of pairs; is changed.
            left: of requeued guests (`left_hosts.NAME`); is changed.
            units: in which slowdowns are measured, the preferred one first.
        """
        self._units = units
        self.snapshot, self.learning, self.now_s = snapshot, learning, snapshot.now_s
        self.apps = applications(snapshot, learning)
        self.host_of = pairs(snapshot.running)
        self.harm = SiteHarm(learning)
        self.left = LeftHosts(left, self.now_s)

    def learn(self) -> None:
        """Takes in the ends and measurements of this snapshot."""
        self._whole_runs()
        follow(self.snapshot, self.apps, self.learning)
        self._forget()
        self._measure()

    # ------------------------------------------------------------ measurements

    def _measure(self) -> None:
        """Rule 1."""
        running, guests_of = self.snapshot.running, dict[int, list[int]]()
        for guest, host in self.host_of.items():
            guests_of.setdefault(host, []).append(guest)
        for row, job_id in enumerate(running.id.tolist()):
            if row in self.host_of or not is_measured(self.snapshot, row):
                continue
            works, guests = self.works(row), guests_of.get(row, ())
            for unit, work in works.items():
                self._measure_alone(row, job_id, (unit, work), has_guests=bool(guests))
            for guest in guests:
                self._measure_beside(guest, works)

    def _measure_alone(
        self, row: int, job_id: str, work_now: tuple[int, int], *, has_guests: bool
    ) -> None:
        (unit, work), at_s = work_now, int(self.snapshot.running.measured_s[row])
        alone = self.alone(job_id, unit)
        before = self._from_its_start(row, unit) if alone is None else alone
        if before is None or (unit == PROGRESS and not before.samples and work == before.work):
            before = Rate(unit, at_s, work)
        if has_guests:  # its rate beside guests is not its rate alone
            after = replace(before, at_s=at_s, work=work)
        else:
            after = before.after(at_s, work, LONG)
        if after != alone:
            self.learning.running[_key(_ALONE, job_id, str(unit))] = after.numbers()

    def _from_its_start(self, row: int, unit: int) -> Rate | None:
        """The rate of a job that was not measured before; None: its earlier use is unknown."""
        start_s, at_s = (
            int(column[row])
            for column in (self.snapshot.running.start_s, self.snapshot.running.measured_s)
        )
        young = unit == CPU_MS and at_s - start_s <= YOUNG_S
        return Rate(unit, start_s, 0) if young else None

    def _measure_beside(self, guest: int, works: Mapping[int, int]) -> None:
        pair = self.pair(guest)
        if pair is None:
            return
        at_s = int(self.snapshot.running.measured_s[self.host_of[guest]])
        if pair.guest_cpu_ms < 0:
            pair = replace(pair, guest_cpu_ms=self.guest_cpu_ms(guest))
        if at_s >= pair.since_s:  # earlier measurements say nothing about the two together
            rates = list(pair.rates)
            for unit, work in works.items():
                fresh = rates[unit].at_s < pair.since_s
                rates[unit] = (
                    Rate(unit, at_s, work) if fresh else rates[unit].after(at_s, work, SHORT)
                )
            blame = round(1000 * self.blame(guest))
            pair = replace(pair, rates=(rates[0], rates[1]), blame=blame)
        if self._by_rates(guest, pair) is not None:
            pair = replace(pair, unknown=0, counted_s=at_s)
        elif at_s - max(pair.counted_s, pair.since_s) >= APART_S:
            pair = replace(pair, unknown=pair.unknown + 1, counted_s=at_s)
        self.keep(guest, pair)
        self._count_time(guest, pair.ceiling)

    def _count_time(self, guest: int, ceiling: int) -> None:
        """Counts the time for which a host had a guest (rule 3)."""
        host_id = str(self.snapshot.running.id[self.host_of[guest]])
        key = _key(_RAN, host_id, BESIDE.join(self.pair_apps(guest)))
        if key not in self.learning.running:
            self._drop_shortest(_key(_RAN, host_id, ""))
        seconds, last_s, _, to_blame_ms = self.learning.running.get(key) or [0, self.now_s, 0, 0]
        gap_s = min(max(self.now_s - last_s, 0), _LONGEST_GAP_S)
        to_blame_ms += round(1000 * gap_s * self.blame(guest))
        self.learning.running[key] = [seconds + gap_s, self.now_s, ceiling, to_blame_ms]

    def _drop_shortest(self, start: str) -> None:
        """Of many guests' applications beside one host, few were there for a good part of it."""
        keys = [key for key in self.learning.running.in_order() if key.startswith(start)]
        if len(keys) >= _MOST_BESIDE:
            self.learning.running.pop(min(keys, key=lambda key: self.learning.running[key][0]))

    # ------------------------------------------------------------ questions

    def works(self, row: int) -> dict[int, int]:
        """Unit to work of a running job, those that are measured."""
        running = self.snapshot.running
        return works_of(float(running.cpu_s[row]), float(running.progress[row]))

    def unit(self, row: int) -> int | None:
        """The unit in which a job's rate alone is known and it is measured now; None: in none."""
        works = self.works(row)
        known = (unit for unit in self._units if unit in works)
        return next((unit for unit in known if self.rate_alone(row, unit) is not None), None)

    def alone(self, job_id: str, unit: int) -> Rate | None:
        """The rate of a job without guest, in this run; None: nothing was measured."""
        numbers = self.learning.running.get(_key(_ALONE, job_id, str(unit)))
        return None if numbers is None else Rate.of_numbers(numbers)

    def rate_alone(self, row: int, unit: int) -> Rate | None:
        """The rate at which a running job is assumed to work alone; None: not known."""
        job_id = str(self.snapshot.running.id[row])
        return alone_rate(self.alone(job_id, unit), unit, history_of(self.learning, self.apps[row]))

    def slowdown(self, guest: int, pair: Pair) -> Slowdown | None:
        """The present slowdown of a guest's host; None: too little is known."""
        both = self._by_rates(guest, pair), self.overdue(guest)
        found = [each for each in both if each is not None]
        return max(found, key=lambda each: each.at_least, default=None)

    def compared(self, guest: int, pair: Pair) -> Comparison | None:
        """A pair's comparison with the present measurement; None: the host's work is unknown."""
        host = self.host_of[guest]
        work = None if pair.comparison is None else self.works(host).get(pair.comparison.unit)
        if pair.comparison is None or work is None:
            return None
        at_s = int(self.snapshot.running.measured_s[host])
        return pair.comparison.after(at_s, work, self.guest_cpu_ms(guest), self.now_s)

    def _by_rates(self, guest: int, pair: Pair) -> Slowdown | None:
        host = self.host_of[guest]
        unit = self.unit(host)
        return None if unit is None else slowdown(self.rate_alone(host, unit), pair.rates[unit])

    def overdue(self, guest: int) -> Slowdown | None:
        """The slowdown by rule 4; None: the host is not late, or its end alone is unknown."""
        running, host = self.snapshot.running, self.host_of[guest]
        history = history_of(self.learning, self.apps[host])
        key = _key(_RAN, str(running.id[host]), BESIDE.join(self.pair_apps(guest)))
        seconds, *_ = self.learning.running.get(key) or [0]
        if history is None or history.runs < LEAST_RUNS or seconds <= 0:
            return None
        lost_s = self.now_s - int(running.start_s[host]) - history.run_s
        if lost_s <= 0:
            return None
        rest_s = max(seconds - lost_s, seconds / LARGEST)
        noise_s = _deviation_s(history) * math.sqrt(1 + 1 / history.runs)
        return Slowdown(min(lost_s, seconds) / rest_s, noise_s / rest_s)

    def needs_s(self, row: int, rate: Rate) -> float | None:
        """The time that a job still needs at a rate, s; None: not known."""
        running = self.snapshot.running
        if rate.samples < LEAST_SAMPLES or rate.mean <= 0:
            return None
        progress = float(running.progress[row])
        if rate.unit == PROGRESS:
            return (1 - min(progress, 1.0)) * PARTS / rate.mean if progress >= 0 else None
        history = history_of(self.learning, self.apps[row])
        if history is None or history.runs < LEAST_SAMPLES or running.cpu_s[row] < 0:
            return None
        return max(history.cpu_s - float(running.cpu_s[row]), 0.0) * 1000 / rate.mean

    def busy(self, row: int, nodes: Collection[int] = ()) -> float:
        """Share of the CPUs of some of its nodes, or of all, that a running job uses, 0 to 1.

        It is assumed to be equally busy on all nodes on which it has processes.
        """
        running = self.snapshot.running
        held = self._nodes(row)
        used = set(held) - set(running.unused_nodes[row])
        asked = set(nodes) or set(held)
        total = cpus_of(self.snapshot, row) * max(len(used), 1)
        busy = min(max(float(running.busy_cpus[row]), 0.0) / max(total, 1), 1.0)
        return busy * len(asked & used) / max(len(asked), 1)

    def busy_of(self, guest: int) -> float:
        """Share of the CPUs of a running guest's nodes that its host uses."""
        return self.busy(self.host_of[guest], self._nodes(guest))

    def blame(self, guest: int) -> float:
        """Share of its host's loss attributed to a guest, 0 to 1 (rule 1)."""
        running, host = self.snapshot.running, self.host_of[guest]
        guests = [each for each, its in self.host_of.items() if its == host]
        unused = set(running.unused_nodes[host])
        near = [each for each in guests if set(self._nodes(each)) - unused] or guests
        if guest not in near:
            return 0.0
        used = {each: max(self.cpus_beside(each), 0.0) for each in near}
        total = sum(used.values())
        return used[guest] / total if total > 0 else 1 / len(near)

    def _nodes(self, row: int) -> list[int]:
        running = self.snapshot.running
        found: list[int] = running.nodes[running.indptr[row] : running.indptr[row + 1]].tolist()
        return found

    def cpus_beside(self, guest: int) -> float:
        """CPUs that a guest has used while its host was measured beside it; -1: not known."""
        pair, now_ms = self.pair(guest), self.guest_cpu_ms(guest)
        if pair is None or not 0 <= pair.guest_cpu_ms <= now_ms or self.now_s <= pair.since_s:
            return -1.0
        return (now_ms - pair.guest_cpu_ms) / 1000 / (self.now_s - pair.since_s)

    def guest_cpu_ms(self, guest: int) -> int:
        """CPU time of a guest so far, ms; -1: not measured."""
        cpu_s = float(self.snapshot.running.cpu_s[guest])
        return -1 if cpu_s < 0 else round(cpu_s * 1000)

    # ------------------------------------------------------------ pairs

    def pair_apps(self, guest: int) -> tuple[str, str]:
        """Applications of a guest's host, and of itself."""
        return self.apps[self.host_of[guest]], self.apps[guest]

    def pair(self, guest: int) -> Pair | None:
        """The record of a running guest and its host; None: there is none."""
        numbers = self.learning.running.get(self._key_of(guest))
        return None if numbers is None else Pair.of_numbers(numbers)

    def keep(self, guest: int, pair: Pair) -> None:
        """Keeps it."""
        self.learning.running[self._key_of(guest)] = pair.numbers()

    def begin(self, guest_id: str, host: int, apps: tuple[str, str], ceiling: int) -> None:
        """Records that a guest is to start beside the running job `host`, a row."""
        running, works = self.snapshot.running, self.works(host)
        pair, at_s = Pair(ceiling, self.now_s, told_s=self.now_s), int(running.measured_s[host])
        if works and 0 <= self.now_s - at_s <= JUST_S:
            cpu, progress = (
                Rate(unit, at_s, works[unit]) if unit in works else Rate(unit, 0, 0)
                for unit in (CPU_MS, PROGRESS)
            )
            pair = replace(pair, since_s=at_s, rates=(cpu, progress))
        key = _key(_BESIDE, guest_id, str(running.id[host]), BESIDE.join(apps))
        self.learning.running[key] = pair.numbers()

    def anew(self, guest: int, pair: Pair) -> Pair:
        """The pair, with its host's measurement restarted."""
        cpu_ms = self.guest_cpu_ms(guest)
        return replace(pair, since_s=self.now_s, guest_cpu_ms=cpu_ms, rates=NOT_MEASURED)

    def _key_of(self, guest: int) -> str:
        running = self.snapshot.running
        ids = str(running.id[guest]), str(running.id[self.host_of[guest]])
        return _key(_BESIDE, *ids, BESIDE.join(self.pair_apps(guest)))

    # ------------------------------------------------------------ lessons

    def teach(
        self, guest: int, pair: Pair, found: Slowdown, bound: float, cpus: float | None = None
    ) -> Pair:
        """Learns from a running pair; returns its new record.

        Args:
            guest: its row.
            pair: its record.
            found: the slowdown of the host.
            bound: of it.
            cpus: that the guest used meanwhile, -1: not known; None: those since the host was
                measured beside it.
        """
        blame = pair.blame / 1000
        cpus = self.cpus_beside(guest) if cpus is None else cpus
        ceiling = CEILINGS[0] if pair.floor_s else pair.ceiling
        bad = found.at_least * blame > bound
        note(self.learning, self.pair_apps(guest), ceiling, found.mean * blame, cpus, bad=bad)
        self._note_harm(self.apps[self.host_of[guest]], found.mean, pair, self.now_s)
        return replace(pair, told_s=self.now_s)

    def convict(self, guest: int, pair: Pair) -> Pair:
        """Learns that a suspected guest has done the harm; returns the pair's new record."""
        if pair.suspicion is not None:
            self._note_suspicion(self.pair_apps(guest), pair, pair.suspicion)
        return replace(pair, suspicion=None)

    def _note_suspicion(self, apps: tuple[str, str], pair: Pair, suspicion: Suspicion) -> None:
        harm, blame = suspicion.harm_permille / 1000, pair.blame / 1000
        cpus = suspicion.guest_milli_cpus / 1000 if suspicion.guest_milli_cpus >= 0 else -1.0
        note(self.learning, apps, pair.ceiling, harm * blame, cpus, bad=True)
        if blame > 0:
            self.harm.add(application_of(apps[0])[0], harm, suspicion.lasted_s * blame)

    def rebase(self, guest: int, alone: Rate) -> None:
        """From now on this is the rate of a guest's host alone, in its present stage."""
        host = self.host_of[guest]
        running, works = self.snapshot.running, self.works(host)
        if alone.unit in works:
            alone = replace(alone, at_s=int(running.measured_s[host]), work=works[alone.unit])
            key = _key(_ALONE, str(running.id[host]), str(alone.unit))
            self.learning.running[key] = alone.numbers()

    def _note_harm(self, app: str, harm: float, pair: Pair, until_s: int) -> None:
        """For the site, each of several guests counts for its part of the time."""
        if pair.blame > 0:
            lasted_s = (until_s - pair.untold_s) * pair.blame / 1000
            self.harm.add(application_of(app)[0], harm, lasted_s)

    def sent_away(self, guest: int, *, short_of_memory: bool) -> None:
        """Records that a guest is to be requeued; counts once per run.

        Args:
            guest: its row.
            short_of_memory: whether that is why, which is learnt about the pair.
        """
        running = self.snapshot.running
        new = self.left.leaves(
            str(running.user[guest]), str(running.id[guest]), int(running.start_s[guest])
        )
        if new and short_of_memory:
            note_short_of_memory(self.learning, self.pair_apps(guest))

    def _whole_runs(self) -> None:
        """Rule 3."""
        ended = self.snapshot.ended
        for row, job_id in enumerate(ended.id.tolist()):
            start = _key(_RAN, job_id, "")
            keys = [key for key in self.learning.running.in_order() if key.startswith(start)]
            if keys and ended.ending[row] == Ending.COMPLETED:
                pairs_of_it = {key.removeprefix(start): self.learning.running[key] for key in keys}
                self._whole_run(int(ended.end_s[row] - ended.start_s[row]), pairs_of_it)

    def _whole_run(self, run_s: int, pairs_of_it: Mapping[str, Sequence[int]]) -> None:
        """Rule 3, of one host.

        Args:
            run_s: its run time.
            pairs_of_it: applications of host and guest, to what `_count_time` keeps.
        """
        together_s = sum(to_blame_ms for *_, to_blame_ms in pairs_of_it.values()) / 1000
        for apps, (seconds, _, ceiling, to_blame_ms) in pairs_of_it.items():
            host, _, guest = apps.partition(BESIDE)
            history, to_blame_s = history_of(self.learning, host), to_blame_ms / 1000
            if history is None or to_blame_s <= 0 or seconds < _LEAST_SHARED * run_s:
                continue
            if history.runs < LEAST_RUNS or _deviation_s(history) > ALIKE * history.run_s:
                continue
            lost_s = min((run_s - history.run_s) * to_blame_s / together_s, 0.9 * to_blame_s)
            harm, blame = lost_s / (to_blame_s - lost_s), to_blame_s / seconds
            much = harm * blame > _MUCH
            note(self.learning, (host, guest), ceiling, harm * blame, -1.0, bad=much)
            self.harm.add(application_of(host)[0], harm, to_blame_s)

    def _forget(self) -> None:
        """Rule 5, and the end of pairs (rule 2)."""
        running = self.snapshot.running
        here = set(running.id.tolist())
        kept = {self._key_of(guest) for guest in self.host_of}
        for key in self.learning.running.in_order():
            if key.startswith(_BESIDE + APART) and key not in kept:
                self._pair_ended(key)
                self.learning.running.pop(key)
        for key in self.learning.running.in_order():
            kind, _, rest = key.partition(APART)
            if kind in (_ALONE, _RAN) and rest.partition(APART)[0] not in here:
                self.learning.running.pop(key)
        self.left.forget(here | set(self.snapshot.jobs.id.tolist()))

    def _pair_ended(self, key: str) -> None:
        _, _, host_id, rest = key.split(APART, 3)
        numbers = self.learning.running.get(key)
        host, _, guest = rest.partition(BESIDE)
        pair = Pair.of_numbers(numbers or Pair(CEILINGS[0], 0).numbers())
        if pair.suspicion is not None:
            self._note_suspicion((host, guest), pair, pair.suspicion)
        apart = bool(pair.floor_s) or pair.comparison is not None
        history = history_of(self.learning, host)
        for rate in (pair.rates[unit] for unit in self._units if not apart):
            alone = alone_rate(self.alone(host_id, rate.unit), rate.unit, history)
            found = slowdown(alone, rate) if rate.at_s == pair.at_s else None
            if found is not None:
                harm = found.mean * pair.blame / 1000
                note(self.learning, (host, guest), pair.ceiling, harm, -1.0, bad=harm > _MUCH)
                self._note_harm(host, found.mean, pair, rate.at_s)
                break


def _deviation_s(history: History) -> float:
    """The standard deviation of a run time alone, from a sample; at least `NOISE`."""
    sample_s = history.deviation_s * math.sqrt(history.runs / max(history.runs - 1, 1))
    return max(sample_s, NOISE * history.run_s)


def _key(*parts: str) -> str:
    return APART.join(parts)
