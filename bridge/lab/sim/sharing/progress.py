# SPDX-License-Identifier: Apache-2.0
"""The work of simulated jobs over time, alone or beside others on the same nodes.

Rules
    1. Work is counted in seconds of running alone. A job is done when it reaches its run time.
    2. Speeds (`rates.py`) change when a pairing begins or ends, its quota or weights change, or one
       of the jobs enters another stage or is done. Between these instants they are constant.
    3. A guest has one host, and runs on some or all of its nodes; no guest is a host, and no node
       has two guests. When one of them ends, the others continue.
    4. A parallel stage is busy on all nodes of its job, a sequential one on the first node only.
       Two jobs disturb each other on nodes where both are busy.
    5. Stages are bulk-synchronous: a job is as fast as on its slowest node.
    6. An end falls on a whole second, the first one at which no work is left.

Deviates from real nodes: capacity that a job does not use while it waits for its slowest node is
not given to other jobs.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from bridge.lab.sim.sharing.interference import Application
from bridge.lab.sim.sharing.rates import JobRate, Side, together, undisturbed

BOUND = 0.10
"""Slowdown from which on the time counts as `ResourceUse.above_s`."""
_NOTHING_S = 1e-6
"""Less work than this is none: a rounding error."""


@dataclass(frozen=True)
class CpuLimits:
    """The CPU time that a job of a pair may use.

    Attributes:
        ceiling: as a share of the CPUs, above 0; 1: no quota.
        weight: as in cgroup v2, 1 to 10,000.
    """

    ceiling: float = 1.0
    weight: float = 100.0


UNLIMITED = CpuLimits()


@dataclass(frozen=True)
class Meets:
    """How the first nodes of a host and its guest coincide; sequential stages run there.

    Attributes:
        host_head: the host's first node is one of the guest's.
        both_heads: it is the guest's first node.
    """

    host_head: bool = True
    both_heads: bool = True


ON_ALL = Meets()
"""A guest on all nodes of its host."""


@dataclass(frozen=True)
class ResourceUse:
    """A job's use of resources since its start.

    Attributes:
        cpu_s: CPU time, all CPUs together, s.
        memory_s: share of the memory of its nodes, over time, s.
        shared_s: time with another job on some of its nodes.
        above_s: time for which it was slowed down by more than `BOUND` by this.
    """

    cpu_s: float = 0.0
    memory_s: float = 0.0
    shared_s: float = 0.0
    lost_s: float = 0.0
    above_s: float = 0.0


NOTHING = ResourceUse()


@dataclass
class _Job:
    """A running job.

    Attributes:
        bounds_s: the end of each stage, in work.
        at_s: the instant that the other attributes are of.
        host: the job on whose nodes it is; None: on its own.
        meets: whether it uses its host's first node, and whether that is also its own first node.
    """

    application: Application
    cpus: int
    runtime_s: float
    bounds_s: list[float]
    at_s: float
    nodes: int
    limits: CpuLimits = UNLIMITED
    host: int | None = None
    meets: Meets = ON_ALL
    guests: tuple[int, ...] = ()
    done_s: float = 0.0
    used: ResourceUse = NOTHING

    @property
    def over(self) -> bool:
        return self.done_s >= self.runtime_s - _NOTHING_S

    @property
    def stage(self) -> int:
        return min(bisect_right(self.bounds_s, self.done_s + _NOTHING_S), len(self.bounds_s) - 1)

    @property
    def parallel(self) -> bool:
        return self.application.stages[self.stage].parallel

    def side(self, of: int) -> Side:
        """The CPU use of the job on a node with this many CPUs, where it is busy."""
        limits = self.limits
        stage = self.application.stages[self.stage]
        cpus = max(self.cpus // self.nodes, 1)
        return Side(self.application, stage, cpus, of, limits.ceiling, limits.weight)

    def rate(self, speed: float) -> JobRate:
        return JobRate(speed, speed * self.application.stages[self.stage].busy(self.cpus))

    def lasts_s(self, rate: JobRate) -> float:
        """The rest of its stage at this rate."""
        left_s = self.bounds_s[self.stage] - self.done_s
        return left_s / rate.speed if rate.speed > 0 else math.inf


@dataclass(frozen=True)
class Reading:
    """What can be measured of a running job.

    Attributes:
        used: since its start.
        busy: CPUs that it keeps busy at present.
        peak_memory: maximum so far, as a share of the memory of its nodes.
        progress: work done, as a share of all.
    """

    used: ResourceUse
    busy: float
    peak_memory: float
    progress: float


class SharedWork:
    """The progress of running jobs, each named by a number."""

    def __init__(self) -> None:
        """Starts with no job."""
        self._jobs: dict[int, _Job] = {}

    def __contains__(self, job: int) -> bool:
        return job in self._jobs

    def start(
        self,
        job: int,
        application: Application,
        *,
        cpus: int,
        runtime_s: float,
        now_s: float,
        nodes: int = 1,
    ) -> None:
        """A job starts from the beginning, alone.

        Args:
            job: not running.
            runtime_s: its run time alone, s.
        """
        assert job not in self._jobs
        assert min(cpus, runtime_s, nodes) > 0
        shares = list(accumulate(stage.share for stage in application.stages))
        bounds_s = [runtime_s * share / shares[-1] for share in shares]
        bounds_s[-1] = runtime_s
        self._jobs[job] = _Job(application, cpus, runtime_s, bounds_s, float(now_s), nodes)

    def pair(self, host: int, guest: int, now_s: float, meets: Meets = ON_ALL) -> None:
        """From now on the guest runs on nodes of the host.

        Raises:
            ValueError: one of them cannot (rule 3).
        """
        if host == guest:
            raise ValueError(f"job {host} cannot be its own guest")
        held, held_beside = self._jobs[host], self._jobs[guest]
        if held.host is not None or held_beside.host is not None or held_beside.guests:
            raise ValueError(f"job {guest} or {host} shares its nodes already")
        if sum(self._jobs[each].nodes for each in (*held.guests, guest)) > held.nodes:
            raise ValueError(f"job {host} shares its nodes already")
        for job in (host, guest):
            self._advance(job, now_s)
        held.guests = (*held.guests, guest)
        held_beside.host, held_beside.meets = host, meets

    def limit(self, job: int, limits: CpuLimits, now_s: float) -> None:
        """A job gets another quota or weight; without effect as long as it is alone."""
        if not (0 < limits.ceiling <= 1 and limits.weight > 0):
            raise ValueError(f"impossible: {limits}")
        self._advance(job, now_s)
        self._jobs[job].limits = limits

    def end(self, job: int, now_s: float) -> ResourceUse:
        """A job ends, whether its work is done or not; those beside it continue."""
        self._advance(job, now_s)
        ended = self._jobs.pop(job)
        if ended.host is not None:
            host = self._jobs[ended.host]
            host.guests = tuple(each for each in host.guests if each != job)
            if not host.guests:
                host.limits = UNLIMITED
        for guest in ended.guests:
            left = self._jobs[guest]
            left.host, left.limits = None, UNLIMITED
        return ended.used

    def beside(self, job: int) -> tuple[int, ...]:
        """The other jobs whose speeds depend on it: guests, or its host and that host's guests."""
        return tuple(each for each in self._group(job) if each != job)

    def _group(self, job: int) -> tuple[int, ...]:
        """A host, first, and its guests."""
        host = self._jobs[job].host
        first = job if host is None else host
        return first, *self._jobs[first].guests

    def end_s(self, job: int) -> int:
        """When its work is done, if nothing changes but stages and the ends of those beside it."""
        group = {each: replace(self._jobs[each]) for each in self._group(job)}
        own = group[job]
        while not own.over:  # rates are above 0
            _step(list(group.values()), math.inf)
        whole_s = math.floor(own.at_s)
        return whole_s + math.ceil(own.at_s - whole_s - _NOTHING_S)

    def done(self, job: int, now_s: float) -> bool:
        self._advance(job, now_s)
        return self._jobs[job].over

    def read(self, job: int, now_s: float) -> Reading:
        """What can be measured of a job at present."""
        self._advance(job, now_s)
        own, group = self._jobs[job], self._group(job)
        rate = _rates([self._jobs[each] for each in group])[group.index(job)]
        peak = max(stage.memory for stage in own.application.stages[: own.stage + 1])
        return Reading(own.used, rate.busy, peak, min(own.done_s / own.runtime_s, 1.0))

    def _advance(self, job: int, now_s: float) -> None:
        """Brings a job, and those beside it, to the present."""
        group = [self._jobs[each] for each in self._group(job)]
        while group[0].at_s < now_s:
            _step(group, now_s)


_NOTHING = JobRate(0.0, 0.0)


def _rates(group: Sequence[_Job]) -> list[JobRate]:
    """The rates of a host and its guests at present; of a job that is done, nothing."""
    host, *guests = group
    live = [guest for guest in guests if not guest.over]
    if not live or host.over:
        return [_NOTHING if job.over else job.rate(1.0) for job in group]
    speed, found = 1.0, [_NOTHING]
    for guest in guests:
        if guest.over:
            found.append(_NOTHING)
            continue
        slowed, rate = _beside(host, guest)
        speed = min(speed, slowed)
        found.append(guest.rate(rate))
    return [host.rate(speed), *found[1:]]


def _beside(host: _Job, guest: _Job) -> tuple[float, float]:
    """The speed of a host on a guest's nodes, and that of the guest (rules 4 and 5)."""
    of = max(host.cpus // host.nodes, 1)
    one, other = host.side(of), guest.side(of)
    both_busy = (
        (host.parallel or guest.meets.host_head)
        if guest.parallel
        else (host.parallel or guest.meets.both_heads)
    )
    if not both_busy:
        return 1.0, undisturbed(other).speed
    first, second = together(one, other)
    return first.speed, second.speed


def _step(group: Sequence[_Job], until_s: float) -> None:
    """Advances to the next instant at which a rate changes, at most to `until_s`."""
    rates = _rates(group)
    host, *guests = group
    lasts_s = [job.lasts_s(rate) for job, rate in zip(group, rates, strict=True) if not job.over]
    to_s = min(host.at_s + min(lasts_s, default=math.inf), until_s)
    by_s = to_s - host.at_s
    with_guest = not host.over and any(not guest.over for guest in guests)
    beside = [with_guest, *(not host.over and not guest.over for guest in guests)]
    for job, rate, shares in zip(group, rates, beside, strict=True):
        memory = 0.0 if job.over else job.application.stages[job.stage].memory
        job.used = ResourceUse(
            job.used.cpu_s + by_s * rate.busy,
            job.used.memory_s + by_s * memory,
            job.used.shared_s + by_s * shares,
            job.used.lost_s + by_s * (1 - rate.speed) * shares,
            job.used.above_s + by_s * (shares and rate.speed * (1 + BOUND) < 1),
        )
        job.at_s = to_s
        job.done_s += by_s * rate.speed
