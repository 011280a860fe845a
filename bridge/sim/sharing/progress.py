# SPDX-License-Identifier: Apache-2.0
"""The work of simulated jobs over time, alone or two on the same nodes.

Rules
    1. Work is counted in seconds of running alone. A job is done when it reaches its run time.
    2. Speeds (`rates.py`) change when a pairing begins or ends, its quota or weights change, or one
       of the two jobs comes to another stage or is done. Between these instants they are constant.
    3. A host has at most one guest, a guest one host, and no guest is a host. When one of them
       ends, the other goes on alone.
    4. An end falls on a whole second, the first one at which no work is left.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import accumulate

from bridge.sim.sharing.interference import Application
from bridge.sim.sharing.rates import Rate, Side, alone, together

_NOTHING_S = 1e-6
"""So little work is none: what rounding leaves."""


@dataclass(frozen=True)
class Limits:
    """How much CPU time a job of a pair may use.

    Attributes:
        ceiling: as a share of the CPUs, above 0; 1: no quota.
        weight: as in cgroup v2, 1 to 10,000.
    """

    ceiling: float = 1.0
    weight: float = 100.0


UNLIMITED = Limits()


@dataclass
class _Job:
    """A running job.

    Attributes:
        bounds_s: where each stage ends, in work.
        done_s: its work at `at_s`.
        cpu_s: CPU time used by then, all CPUs together.
        shared_s: time by then that it ran beside another job.
    """

    application: Application
    cpus: int
    runtime_s: float
    bounds_s: list[float]
    at_s: float
    limits: Limits = UNLIMITED
    partner: int | None = None
    is_guest: bool = False
    done_s: float = 0.0
    cpu_s: float = 0.0
    shared_s: float = 0.0

    @property
    def over(self) -> bool:
        return self.done_s >= self.runtime_s - _NOTHING_S

    @property
    def stage(self) -> int:
        return min(bisect_right(self.bounds_s, self.done_s + _NOTHING_S), len(self.bounds_s) - 1)

    def side(self) -> Side:
        limits = self.limits
        stage = self.application.stages[self.stage]
        return Side(self.application, stage, self.cpus, limits.ceiling, limits.weight)

    def lasts_s(self, rate: Rate) -> float:
        """How long its stage goes on at this rate."""
        left_s = self.bounds_s[self.stage] - self.done_s
        return left_s / rate.speed if rate.speed > 0 else math.inf


@dataclass(frozen=True)
class Reading:
    """What has been measured of a running job.

    Attributes:
        cpu_s: CPU time used since its start, all CPUs together, s.
        cpus_now: CPUs in use at present.
        memory: as a share of the memory of its nodes, at present.
        progress: work done, as a share of all.
        parallel: its present stage uses all its CPUs.
        shared_s: time that it has run beside another job.
        speed: at present, relative to running alone; nobody could measure that directly.
    """

    cpu_s: float
    cpus_now: float
    memory: float
    progress: float
    parallel: bool
    shared_s: float
    speed: float


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
            cpus: that it has, all nodes together; as a guest those of its host.
            runtime_s: what it takes alone, s.
            now_s: the present.
        """
        assert job not in self._jobs
        assert min(cpus, runtime_s) > 0
        shares = list(accumulate(stage.share for stage in application.stages))
        bounds_s = [runtime_s * share / shares[-1] for share in shares]
        bounds_s[-1] = runtime_s
        self._jobs[job] = _Job(application, cpus, runtime_s, bounds_s, float(now_s))

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
        self._jobs[guest].is_guest = True

    def limit(self, job: int, limits: Limits, now_s: float) -> None:
        """A job gets another quota or weight; without effect as long as it is alone."""
        if not (0 < limits.ceiling <= 1 and limits.weight > 0):
            raise ValueError(f"impossible: {limits}")
        self._advance(job, now_s)
        self._jobs[job].limits = limits

    def end(self, job: int, now_s: float) -> int | None:
        """A job ends, whether its work is done or not; returns who shared its nodes."""
        self._advance(job, now_s)
        partner = self._jobs.pop(job).partner
        if partner is not None:
            left = self._jobs[partner]
            left.partner, left.limits, left.is_guest = None, UNLIMITED, False
        return partner

    def partner(self, job: int) -> int | None:
        """The job on the same nodes; None: there is none."""
        return self._jobs[job].partner

    def end_s(self, job: int) -> int:
        """When its work is done, if nothing changes but stages and the end of its partner."""
        own = replace(self._jobs[job])
        other = None if own.partner is None else replace(self._jobs[own.partner])
        while not own.over:
            _step(own, other, math.inf)
        whole_s = math.floor(own.at_s)
        return whole_s + math.ceil(own.at_s - whole_s - _NOTHING_S)

    def cpu_s(self, job: int, now_s: float) -> float:
        """CPU time used since its start, all CPUs together, s."""
        self._advance(job, now_s)
        return self._jobs[job].cpu_s

    def read(self, job: int, now_s: float) -> Reading:
        """What is measured of a job at present."""
        self._advance(job, now_s)
        own = self._jobs[job]
        other = None if own.partner is None else self._jobs[own.partner]
        rate, _ = _rates(own, other)
        stage = own.application.stages[own.stage]
        return Reading(
            own.cpu_s,
            rate.cpu * own.cpus,
            stage.memory,
            min(own.done_s / own.runtime_s, 1.0),
            stage.parallel,
            own.shared_s,
            rate.speed,
        )

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
    """Goes on to the next instant at which a rate changes, at most to `until_s`."""
    rates = _rates(own, other)
    both = [(own, rates[0])] if other is None else [(own, rates[0]), (other, rates[1])]
    lasts_s = [job.lasts_s(rate) for job, rate in both if not job.over]
    to_s = min(own.at_s + min(lasts_s, default=math.inf), until_s)
    by_s = to_s - own.at_s
    beside = other is not None and not own.over and not other.over
    for job, rate in both:
        job.at_s = to_s
        job.done_s += by_s * rate.speed
        job.cpu_s += by_s * rate.cpu * job.cpus
        job.shared_s += by_s * beside
