# SPDX-License-Identifier: Apache-2.0
"""The work of simulated jobs over time, alone or two on the same nodes.

Rules
    1. Work is counted in seconds of running alone. A job is done when it reaches its run time.
    2. Speeds (`rates.py`) change when a pairing begins or ends, its quota or weights change, or one
       of the two jobs enters another stage or is done. Between these instants they are constant.
    3. A host has at most one guest, a guest one host, and no guest is a host. When one of them
       ends, the other continues alone.
    4. An end falls on a whole second, the first one at which no work is left.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import accumulate

from bridge.sim.sharing.interference import Application
from bridge.sim.sharing.rates import Rate, Side, alone, together

_NOTHING_S = 1e-6
"""Less work than this is none: a rounding error."""


@dataclass(frozen=True)
class Limits:
    """The CPU time that a job of a pair may use.

    Attributes:
        ceiling: as a share of the CPUs, above 0; 1: no quota.
        weight: as in cgroup v2, 1 to 10,000.
    """

    ceiling: float = 1.0
    weight: float = 100.0


UNLIMITED = Limits()


@dataclass(frozen=True)
class Used:
    """A job's use of resources since its start.

    Attributes:
        cpu_s: CPU time, all CPUs together, s.
        memory_s: share of the memory of its nodes, over time, s.
        shared_s: time with another job on its nodes.
        lost_s: the delay by this.
    """

    cpu_s: float = 0.0
    memory_s: float = 0.0
    shared_s: float = 0.0
    lost_s: float = 0.0


NOTHING = Used()


@dataclass
class _Job:
    """A running job.

    Attributes:
        bounds_s: where each stage ends, in work.
        at_s: when the rest was true.
        of: CPUs that it shares with its partner; its own as long as it is alone.
        done_s: its work.
        used: what it has used.
    """

    application: Application
    cpus: int
    runtime_s: float
    bounds_s: list[float]
    at_s: float
    of: int
    limits: Limits = UNLIMITED
    partner: int | None = None
    done_s: float = 0.0
    used: Used = NOTHING

    @property
    def over(self) -> bool:
        return self.done_s >= self.runtime_s - _NOTHING_S

    @property
    def stage(self) -> int:
        return min(bisect_right(self.bounds_s, self.done_s + _NOTHING_S), len(self.bounds_s) - 1)

    def side(self) -> Side:
        limits = self.limits
        stage = self.application.stages[self.stage]
        return Side(self.application, stage, self.cpus, self.of, limits.ceiling, limits.weight)

    def lasts_s(self, rate: Rate) -> float:
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

    used: Used
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
        self, job: int, application: Application, *, cpus: int, runtime_s: float, now_s: float
    ) -> None:
        """A job starts from the beginning, alone.

        Args:
            job: not running.
            application: what it runs.
            cpus: of all its nodes together.
            runtime_s: its run time alone, s.
            now_s: the present.
        """
        assert job not in self._jobs
        assert min(cpus, runtime_s) > 0
        shares = list(accumulate(stage.share for stage in application.stages))
        bounds_s = [runtime_s * share / shares[-1] for share in shares]
        bounds_s[-1] = runtime_s
        self._jobs[job] = _Job(application, cpus, runtime_s, bounds_s, float(now_s), cpus)

    def pair(self, host: int, guest: int, now_s: float) -> None:
        """From now on the guest runs on the host's nodes.

        Raises:
            ValueError: one of them shares already (rule 3).
        """
        if host == guest:
            raise ValueError(f"job {host} cannot be its own guest")
        for job in (host, guest):
            if self._jobs[job].partner is not None:
                raise ValueError(f"job {job} shares its nodes already")
            self._advance(job, now_s)
        self._jobs[host].partner, self._jobs[guest].partner = guest, host
        self._jobs[guest].of = self._jobs[host].cpus

    def limit(self, job: int, limits: Limits, now_s: float) -> None:
        """A job gets another quota or weight; without effect as long as it is alone."""
        if not (0 < limits.ceiling <= 1 and limits.weight > 0):
            raise ValueError(f"impossible: {limits}")
        self._advance(job, now_s)
        self._jobs[job].limits = limits

    def end(self, job: int, now_s: float) -> Used:
        """A job ends, whether its work is done or not; its partner continues alone."""
        self._advance(job, now_s)
        ended = self._jobs.pop(job)
        if ended.partner is not None:
            left = self._jobs[ended.partner]
            left.partner, left.limits, left.of = None, UNLIMITED, left.cpus
        return ended.used

    def partner(self, job: int) -> int | None:
        """The job on the same nodes; None: there is none."""
        return self._jobs[job].partner

    def end_s(self, job: int) -> int:
        """When its work is done, if nothing changes but stages and the end of its partner."""
        own = replace(self._jobs[job])
        other = None if own.partner is None else replace(self._jobs[own.partner])
        while not own.over:  # rates are above 0
            _step(own, other, math.inf)
        whole_s = math.floor(own.at_s)
        return whole_s + math.ceil(own.at_s - whole_s - _NOTHING_S)

    def done(self, job: int, now_s: float) -> bool:
        """Whether all its work is done."""
        self._advance(job, now_s)
        return self._jobs[job].over

    def read(self, job: int, now_s: float) -> Reading:
        """What can be measured of a job at present."""
        self._advance(job, now_s)
        own = self._jobs[job]
        other = None if own.partner is None else self._jobs[own.partner]
        rate, _ = _rates(own, other)
        peak = max(stage.memory for stage in own.application.stages[: own.stage + 1])
        return Reading(own.used, rate.busy, peak, min(own.done_s / own.runtime_s, 1.0))

    def _advance(self, job: int, now_s: float) -> None:
        """Brings a job, and its partner, to the present."""
        own = self._jobs[job]
        other = None if own.partner is None else self._jobs[own.partner]
        while own.at_s < now_s:
            _step(own, other, now_s)


def _rates(own: _Job, other: _Job | None) -> tuple[Rate, Rate]:
    """The rates of both at present; of a job that is done, or not there, nothing."""
    nothing = Rate(0.0, 0.0)
    if other is None or other.over:
        return (nothing if own.over else alone(own.side())), nothing
    if own.over:
        return nothing, alone(other.side())
    return together(own.side(), other.side())


def _step(own: _Job, other: _Job | None, until_s: float) -> None:
    """Advances to the next instant at which a rate changes, at most to `until_s`."""
    rates = _rates(own, other)
    both = [(own, rates[0])] if other is None else [(own, rates[0]), (other, rates[1])]
    lasts_s = [job.lasts_s(rate) for job, rate in both if not job.over]
    to_s = min(own.at_s + min(lasts_s, default=math.inf), until_s)
    by_s = to_s - own.at_s
    beside = other is not None and not own.over and not other.over
    for job, rate in both:
        memory = 0.0 if job.over else job.application.stages[job.stage].memory
        job.used = Used(
            job.used.cpu_s + by_s * rate.busy,
            job.used.memory_s + by_s * memory,
            job.used.shared_s + by_s * beside,
            job.used.lost_s + by_s * (1 - rate.speed) * beside,
        )
        job.at_s = to_s
        job.done_s += by_s * rate.speed
