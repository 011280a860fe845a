# SPDX-License-Identifier: Apache-2.0
"""Guests beside suitable hosts, by learnt slowdowns of pairs of applications, within a bound.

Terms, besides those of `bridge.extensions.sharing.pair_knowledge` and `slowdown`
    bound   by how much a host may be slowed down at most: its own (`--max-slowdown`), or the
            site's for its partition.
    passed  the lower end of the measured slowdown's interval is above the bound.

Rules
    1. A guest runs at the least weight, under a ceiling: the highest one that is admissible for its
       pair within its host's bound, less the expected harm of the host's other guests. If there is
       none, the two do not share.
    2. Of the waiting jobs admissible as a host's guest (at most `most_candidates`), the one
       expected to get the largest share of the CPUs it wants from those the host leaves is taken;
       jobs whose limits end before the host's come first. A job that would get less than
       `least_share` of what it wants is not taken.
    3. When the bound is passed, the guest is held to the floor at once; it is requeued, or gets a
       lower ceiling, by the rules of `pair_bound.py`. With `compare`, the host
       is from time to time compared beside the guest at the floor and at its ceiling, in turns.
    4. A guest is also requeued when memory is short, and held to the floor while its host is not
       measured (`safety.py`). It is requeued when the host's progress, or its
       application's record, shows that it will not end within its limit at its present rate. A host
       for which that is expected, or whose rate alone is unknown, gets no guest. The limit of a
       host is lengthened by what its guests have cost it (`bridge.extensions.sharing.lost_time`);
       they leave when it reaches its own limit. Where its limit cannot be lengthened, it has guests
       only while the time that it needs is known (`keep_limits`). A host gets its
       first guest only after it has run for so long that the harm done before it can be detected
       would be within the bound if the host ended just then (`_young`). A guest whose host's
       slowdown is still unknown after `MAX_UNKNOWN` measurements is held to the floor, and after
       twice as many it is requeued.
    5. What is learnt from pairs is defined in `bridge.extensions.sharing.interference`.
    6. When the mean harm of the last observations exceeds the least `max_mean_harm` of the site's
       rules, by its confidence interval, sharing ends until an operator switches it on
       (`schedbridge coschedule on`): for the hosts of one user or, if that holds for the mean over
       several users, on the whole site (`bridge.extensions.sharing.site_harm`).
    7. While guests run, or a host with an admissible guest is about to be ready for it, the policy
       runs every `watch_s`. It detects that a bound is passed with the second measurement after the
       guest's start at the earliest, or with the third one if none was recent at the start.
    8. A requeued guest does not become one again for a time that grows with each requeue, and after
       several requeues never (`bridge.extensions.sharing.left_hosts`). A pair that ran short of
       memory is not tried again.

Source: ours. The bandit has a bound in place of a loss: it maximises the CPU time of guests subject
to the bound.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from bridge.errors import ConfigError
from bridge.extensions.sharing import left_hosts, switch
from bridge.extensions.sharing.counting import has_guests
from bridge.extensions.sharing.histories import application, history_of
from bridge.extensions.sharing.interference.measurements import MAX_UNKNOWN
from bridge.extensions.sharing.interference.monitor import PairMonitor
from bridge.extensions.sharing.leaving import STOPPED, TOO_LATE
from bridge.extensions.sharing.longer_limits import NO_EXTENSIONS
from bridge.extensions.sharing.lost_time import LostTime
from bridge.extensions.sharing.orders import Orders, cpus_of
from bridge.extensions.sharing.pair_bound import PairBound
from bridge.extensions.sharing.pair_knowledge import (
    CEILINGS,
    PAIRS,
    Entry,
    belief,
    highest_admissible,
    pair_key,
)
from bridge.extensions.sharing.pair_record import Pair
from bridge.extensions.sharing.part import GuestStart
from bridge.extensions.sharing.quotas import MIN_WEIGHT
from bridge.extensions.sharing.rules import sharing_rules
from bridge.extensions.sharing.safety import short_of_memory
from bridge.extensions.sharing.seen import is_measured
from bridge.extensions.sharing.slots import Guest, Host, Slots
from bridge.extensions.sharing.slowdown import CPU_MS, PROGRESS, SHORT, UNITS, Rate
from bridge.extensions.sharing.stage_share import NOTHING_SHARED, Shared
from bridge.model.learnt import Learning, Learnt
from bridge.model.plan import Plan
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.ports import Context
from bridge.units import NEVER

NAME: Final = PAIRS
DETECTED: Final = 2
"""Measurements until harm is detected."""
MEASURED_S: Final = 5
"""Time between the measurements of a node's agent."""
LOST: Final = 0.2
"""Share of its speed that a host loses at most to a guest of the least weight, as measured: the
largest slowdown was 24 % (docs/results/coscheduling.md)."""
_PATIENT: Final = 6
"""Without guests it runs once in this many `watch_s`, as long as admissible guests wait."""


@dataclass(frozen=True)
class Pairs:
    """Starts waiting jobs on the nodes of running ones that they slow down little.

    Attributes:
        most_candidates: waiting jobs that are compared for each host.
        least_share: least share of the CPUs it wants that a guest must be expected to get.
        calm_s: how long a guest stays at the floor after its host's bound was passed.
        watch_s: interval at which guests are examined; above 5, a bound may be passed for more than
            10 s.
        lengthen_limits: the time limit of a host is lengthened by what its guests have cost it, so
            that none is killed at its limit because of them. Otherwise the site's `OverTimeLimit`
            must suffice.
        keep_limits: a host gets guests only while the time that it needs is known, from its
            progress or with the interval of its application's runs alone. With `lengthen_limits`
            this holds in any case for hosts whose limits cannot be lengthened.
        progress_only: only jobs that report their progress become hosts, so that the bound holds
            for whatever slows them down, also for what CPU time does not show.
        compare: hosts are compared in turns, beside the guest at the floor and at its ceiling, so
            that a change of the host's stage neither hides harm nor counts as harm. Off by default:
            in the experiment of ASA_X, whose stages are jobs of their own, waits were longer with
            it and more hosts passed their bounds (docs/results/coscheduling.md).
    """

    most_candidates: int = 20
    least_share: float = 0.1
    calm_s: int = 30
    watch_s: int = 5
    lengthen_limits: bool = True
    keep_limits: bool = False
    progress_only: bool = False
    compare: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.most_candidates <= 1000:
            raise ConfigError("most_candidates", "must lie between 1 and 1000")
        if not 0 <= self.least_share <= 1:
            raise ConfigError("least_share", "must lie between 0 and 1")
        if self.calm_s < 10:
            raise ConfigError("calm_s", "must be at least 10")
        if not 1 <= self.watch_s <= 600:
            raise ConfigError("watch_s", "must lie between 1 and 600")

    def share(self, world: Callable[[], Snapshot], plan: Plan, context: Context) -> Shared:
        """Learns, guides guests and starts some; see `SharePolicy`."""
        snapshot = world()
        slots = Slots(snapshot, context.site, plan, spares_head=True)
        running = snapshot.running
        had_guests = running.hosted_s.any() or running.hosted_since_s.any()
        if not slots.open and not had_guests and not has_guests(snapshot.running):
            return NOTHING_SHARED
        known, left = (Learning(context.state.learnt_by(each)) for each in (NAME, left_hosts.NAME))
        cycle = _Cycle(self, slots, known, left)
        off = switch.off_since_s(context.state) is not None
        cycle.monitor.learn()
        cycle.lost_time.count()
        cycle.stopped = switch.stopped_users(context.state)
        reverted = not off and cycle.revert(context.site)
        stopped = cycle.stop_users(context.site)
        cycle.guide(switch.send_away(slots, cycle.orders, off=off or reverted))
        if not off and not reverted:
            cycle.start()
        learnt: dict[str, Learnt] = {NAME: known.done(), left_hosts.NAME: left.done()}
        kept = context.state.learnt_by(switch.NAME)
        if stopped:
            learnt[switch.NAME] = kept = switch.stopped(kept, stopped, snapshot.now_s)
        if reverted:
            learnt[switch.NAME] = switch.turned_off(kept, snapshot.now_s, by_policy=True)
        return Shared(
            quotas=cycle.orders.quotas(),
            requeues=cycle.orders.requeues(),
            extensions=cycle.lost_time.extensions() if self.lengthen_limits else NO_EXTENSIONS,
            learnt=learnt,
            again_s=cycle.again_s(off=off or reverted),
            guests=cycle.starts,
        )


@dataclass
class _Cycle:
    policy: Pairs
    slots: Slots
    learning: Learning
    left: Learning
    starts: list[GuestStart] = field(default_factory=list)
    stopped: frozenset[str] = frozenset()
    _promised: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.snapshot, self.now_s = self.slots.snapshot, self.slots.snapshot.now_s
        self.orders = Orders(self.snapshot)
        units = (PROGRESS,) if self.policy.progress_only else UNITS
        self.monitor = PairMonitor(self.snapshot, self.learning, self.left, units)
        self.pairs, self.records = self.monitor.pairs, self.monitor.records
        self.estimates, self.measurements = self.monitor.estimates, self.monitor.measurements
        self.lost_time = LostTime(self.monitor)
        self.pair_bound = PairBound(self.monitor, self.policy.calm_s, self.policy.compare)

    def revert(self, site: Site) -> bool:
        """Whether the whole site must stop sharing (rule 6)."""
        return self.monitor.learner.harm.passes(_max_harm(site))

    def stop_users(self, site: Site) -> list[str]:
        """Users who must stop sharing; their guests leave (rule 6)."""
        found = self.monitor.learner.harm.users_above(_max_harm(site))
        self.stopped |= frozenset(found)
        return found

    def again_s(self, *, off: bool) -> int:
        """Rule 7; otherwise hosts are measured alone as long as admissible guests wait."""
        limit_s = self.lost_time.again_s() if self.policy.lengthen_limits else NEVER
        return min(limit_s, self._watch_again_s(off=off))

    def _watch_again_s(self, *, off: bool) -> int:
        if self.starts or self.pairs.host_of:
            return self.now_s + self.policy.watch_s
        if off or not self.slots.anybody_waits:
            return NEVER
        if any(self._soon(host) for host in self.slots.hosts):
            return self.now_s + self.policy.watch_s
        look_s, patient_s = self.slots.look_again_s, self.now_s + _PATIENT * self.policy.watch_s
        return min(look_s, patient_s) if self.slots.hosts or look_s < NEVER else NEVER

    def _rate_alone(self, host: Host) -> Rate | None:
        unit = self.estimates.unit(host.row)
        return None if unit is None else self.estimates.rate_alone(host.row, unit)

    def _soon(self, host: Host) -> bool:
        """Whether a host may get a guest as soon as it has run longer (rule 7)."""
        if self._rate_alone(host) is None:
            alone = self.records.rate_alone(str(self.snapshot.running.id[host.row]), CPU_MS)
            waits = alone is not None and alone.samples < SHORT
        else:
            waits = self._young(host)
        if not waits or str(self.snapshot.running.user[host.row]) in self.stopped:
            return False
        return any(True for _ in self._admissible(host))

    # ------------------------------------------------------------ guests that run

    def guide(self, guests: set[int]) -> None:
        """Sets ceilings, compares hosts in turns, and requeues guests (rules 3 and 4)."""
        for guest in sorted(guests):
            job_id, cpus = str(self.snapshot.running.id[guest]), cpus_of(self.snapshot, guest)
            pair, host = self._pair(guest), self.pairs.host_of[guest]
            short = short_of_memory(self.slots, guest, host)
            reason = short or self._must_go(guest, pair)
            if not reason and is_measured(self.snapshot, host):
                pair, reason = self.pair_bound.guide(guest, pair, self._bound(host))
            self.records.keep(guest, pair)
            if reason:
                self.monitor.sent_away(guest, short_of_memory=bool(short))
            if reason and self.snapshot.running.requeue[guest]:
                self.orders.requeue(job_id, cpus, reason)
            elif (
                reason
                or (pair.comparison.low if pair.comparison is not None else pair.floor_s)
                or pair.unknown >= MAX_UNKNOWN
                or not is_measured(self.snapshot, host)
            ):
                self.orders.floor(job_id, cpus)
            else:
                self.orders.limit(job_id, cpus, pair.ceiling / 100, MIN_WEIGHT)

    def _pair(self, guest: int) -> Pair:
        """The kept record; a new one after a change of policy or a restart of the service."""
        found = self.records.pair(guest)
        if found is not None:
            return found
        host = self.pairs.host_of[guest]
        ceiling = highest_admissible(
            self.learning.known, self.pairs.pair_apps(guest), self.pairs.busy_beside(guest),
            self._bound(host),
        )  # fmt: skip
        pair = Pair(ceiling or 0, self.now_s, told_s=self.now_s)
        return pair if ceiling is not None else replace(pair, floor_s=self.now_s, ceiling=10)

    def _must_go(self, guest: int, pair: Pair) -> str:
        """Rules 4 and 6: why a guest must leave, whatever the slowdown; empty: it need not."""
        running, host = self.snapshot.running, self.pairs.host_of[guest]
        if str(running.user[host]) in self.stopped:
            return STOPPED
        keeps = self._keeps(host)
        if not keeps and self._reached_own_limit(host):
            return TOO_LATE
        needs_s = self._needs_s(host, [pair.rates[unit] for unit in UNITS])
        if needs_s is None and keeps:  # too few samples, or not known any more
            alone = (self.estimates.rate_alone(host, unit) for unit in UNITS)
            needs_s = self._needs_s(host, [rate for rate in alone if rate is not None])
            if needs_s is None:
                return TOO_LATE
        if needs_s is not None and needs_s > int(running.end_s[host]) - self.now_s:
            return TOO_LATE
        return ""

    def _keeps(self, host: int) -> bool:
        """Whether a host has guests only while the time that it needs is known (rule 4)."""
        if self.policy.keep_limits:
            return True
        return self.policy.lengthen_limits and not self.lost_time.is_safe(host)

    def _reached_own_limit(self, host: int) -> bool:
        return self.policy.lengthen_limits and self.lost_time.own_end_s(host) <= self.now_s

    def _needs_s(self, host: int, rates: Sequence[Rate]) -> float | None:
        """The time that a host still needs, by the first rate of which it is known, s."""
        at_most = self._keeps(host)
        each_s = (self.estimates.needs_s(host, rate, at_most=at_most) for rate in rates)
        return next((each for each in each_s if each is not None), None)

    # ------------------------------------------------------------ guests that start

    def start(self) -> None:
        """Starts guests at the highest admissible ceiling (rules 1 and 2)."""
        taken = set[int]()
        for each in self.slots.hosts:
            host, may = each, self._may_have_one(each)
            while may and (best := self._best(host, taken)) is not None:
                guest, ceiling = best
                taken.add(guest.row)
                host = host.without(guest.nodes)
                self._begin(guest, ceiling)

    def _begin(self, guest: Guest, ceiling: int) -> None:
        start, apps = self.slots.start(guest), self._apps(guest.host, guest)
        self.starts.append(start)
        self.orders.limit(start.job_id, guest.cpus, ceiling / 100, MIN_WEIGHT)
        self.measurements.begin(start.job_id, guest.host.row, apps, ceiling)
        busy = self.pairs.busy(guest.host.row, guest.nodes.tolist())
        harm = belief(self.learning.known, apps, ceiling, busy).mean
        self._promised[guest.host.row] = self._promised.get(guest.host.row, 0.0) + max(harm, 0.0)

    def _expected_harm(self, host: int) -> float:
        """The expected harm of a host's present guests, and of those that start now (rule 1)."""
        found = self._promised.get(host, 0.0)
        for guest, its in self.pairs.host_of.items():
            pair = self.records.pair(guest) if its == host else None
            if pair is not None:
                apps, ceiling = self.pairs.pair_apps(guest), pair.ceiling or CEILINGS[0]
                busy = self.pairs.busy_beside(guest)
                mean = belief(self.learning.known, apps, ceiling, busy).mean
                found += max(mean, 0.0)
        return found

    def _may_have_one(self, host: Host) -> bool:
        """Whether a host's slowdown will be known, and it will end within its limit (rule 4)."""
        if str(self.snapshot.running.user[host.row]) in self.stopped:
            return False
        rate = self._rate_alone(host)
        if rate is None or self._young(host) or self._reached_own_limit(host.row):
            return False
        needs_s = self._needs_s(host.row, [rate])
        left_s = int(self.snapshot.running.end_s[host.row]) - self.now_s
        if needs_s is None:
            return not self._keeps(host.row)
        return needs_s * (1 + self._bound(host.row)) <= left_s

    def _young(self, host: Host) -> bool:
        """Whether a host could end before harm to it is detected, and be harmed too much (rule 4).

        Harm is detected after a time d, in which the host loses at most `LOST` * d. If it ends
        then, having run for t before, its slowdown is at most LOST * d / (t + (1 - LOST) * d).
        """
        ran_s = self.now_s - int(self.snapshot.running.start_s[host.row])
        detected_s = DETECTED * max(self.policy.watch_s, MEASURED_S)
        lost_s = LOST * detected_s
        return lost_s > self._bound(host.row) * (ran_s + detected_s - lost_s)

    def _admissible(self, host: Host) -> Iterator[tuple[Guest, int]]:
        """The first admissible guests of a host, and their ceilings (rule 1)."""
        jobs, bound = self.snapshot.jobs, self._bound(host.row) - self._expected_harm(host.row)
        for guest in islice(self.slots.guests(host), self.policy.most_candidates):
            user, job_id = (str(each[guest.job]) for each in (jobs.user, jobs.id))
            if not self.monitor.left.may_be_guest(user, job_id):
                continue
            apps, busy = self._apps(host, guest), self.pairs.busy(host.row, guest.nodes.tolist())
            ceiling = highest_admissible(self.learning.known, apps, busy, bound)
            if ceiling is not None:
                yield guest, ceiling

    def _best(self, host: Host, taken: set[int]) -> tuple[Guest, int] | None:
        """The guest for a host, and its ceiling (rule 2)."""
        end_s, best = int(self.snapshot.running.end_s[host.row]), None
        maximum: tuple[bool, float, int] | None = None
        for guest, ceiling in self._admissible(host):
            if guest.row in taken:
                continue
            gets = self._expected_share(guest, self._apps(host, guest), ceiling)
            score = self.now_s + guest.limit_s <= end_s, round(gets, 1), -guest.row
            if gets >= self.policy.least_share and (maximum is None or score > maximum):
                maximum, best = score, (guest, ceiling)
        return best

    def _expected_share(self, guest: Guest, apps: tuple[str, str], ceiling: int) -> float:
        """The CPUs that a guest is expected to get, as a share of those it wants, 0 to 1."""
        total = guest.cpus * len(guest.nodes)
        history = history_of(self.learning, apps[1])
        wants = float(total) if history is None else min(history.busy_cpus, total)
        known = Entry.of_numbers(self.learning.known.get(pair_key(*apps))).guest_cpus
        free = total * (1 - self.pairs.busy(guest.host.row, guest.nodes.tolist()))
        gets = known if known >= 0 else min(free, total * ceiling / 100)
        return min(gets / max(wants, 0.01), 1.0)

    def _apps(self, host: Host, guest: Guest) -> tuple[str, str]:
        """Applications of a host and of a waiting job."""
        jobs, job = self.snapshot.jobs, guest.job
        own = application(str(jobs.user[job]), str(jobs.name[job]), len(guest.nodes))
        return self.pairs.apps[host.row], own

    def _bound(self, host: int) -> float:
        """Learns of a host, as a share of its run time alone."""
        running = self.snapshot.running
        rules = self.slots.rules(int(running.partition[host]))
        return 0.0 if rules is None else rules.bound(int(running.max_slowdown_permille[host]))


def _max_harm(site: Site) -> float:
    return min((rules.max_mean_harm for rules in sharing_rules(site)), default=1.0)
