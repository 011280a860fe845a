# SPDX-License-Identifier: Apache-2.0
"""The events of a simulation, second by second, and the decision after each of them.

Rules
    1. Events of one second are handled together: first jobs end, then faults occur, then jobs are
       submitted. If any job waits then, one decision is requested and applied.
    2. Time advances to the next event; only the measurement of decision time reads a clock.
    3. A decision is also requested at the earliest start that the last plan announced, when the
       plan asks for one (`Plan.again_s`), and
       `RETRY_S` after one that failed or was partly refused. Those that change nothing are made
       less and less often (`bridge.sim.patience`).
    4. If the decider raises, the fallback decides, as Slurm's own backfill would if the service
       did not answer. Without a fallback the error is passed to the caller.
    5. The same workload, system, decider, seed and faults give the same schedule, unless decisions
       take their measured time (`decision_s` None).
    6. If decisions take time, their starts are delayed: by whole seconds as an event, during which
       jobs end and arrive but nothing else is decided; the rest, less than a second, is added to
       the jobs' waits (`ExecutedSchedule.lag_s`), not to any event.
    7. A significantly different time in MPI of a running job is an event
       (`bridge.sim.mpi_reports`), and so are changes of a corridor of power and reports of what
       a job draws (`bridge.sim.power`).
"""

import heapq
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.measures import ExecutedSchedule
from bridge.model.job import Ending
from bridge.model.node import CPUS
from bridge.model.plan import Plan
from bridge.planning.eligibility.leaf_switches import next_change_s
from bridge.ports import Decide
from bridge.sim.allocation import Allocation
from bridge.sim.controller import Controller, Refusal
from bridge.sim.faults import Fault, FaultKind
from bridge.sim.mpi_reports import MpiReports
from bridge.sim.patience import Patience
from bridge.sim.power import PowerLog, PowerMeter, PowerSetting
from bridge.sim.system import System
from bridge.sim.work import Work
from bridge.sim.workload import Workload
from bridge.state.accuracy import PROMISE, Promises, Starts
from bridge.units import NEVER

RETRY_S = 30


@dataclass(frozen=True)
class Progress:
    """The progress of a simulation, reported after every decision."""

    now_s: int
    waiting: int
    running: int
    finished: int
    jobs: int
    used_processors: int
    decision_ms: float


Observe = Callable[[Progress], None]


@dataclass(frozen=True)
class Outcome:
    """The result of a simulation; columns are of length n_jobs, in the workload's order.

    Attributes:
        schedule: starts and ends; of a job that was requeued, those of its last run.
        indptr, nodes: job i held nodes[indptr[i]:indptr[i + 1]]; empty if it never started.
        cancelled: bool: cancelled by a fault, waiting or running.
        restarts: int64: how often it lost a node and was restarted.
        decision_ms: (n_decisions,) float64.
        refusals: starts and plans that the controller did not apply.
        failures: decisions that the decider failed to make and the fallback made.
        starts: every start, in order of time, with the announced one.
        predicted_s: int64: predicted run time of each job at its last start; 0: it never started.
        promise: `PROMISE`: the promise to each job at its last start; zeros: none.
        power: what system power was; None: it was not followed.
    """

    workload: Workload
    system: System
    schedule: ExecutedSchedule
    indptr: NDArray[np.int64]
    nodes: NDArray[np.int32]
    cancelled: NDArray[np.bool_]
    restarts: NDArray[np.int64]
    decision_ms: NDArray[np.float64]
    refusals: tuple[Refusal, ...]
    failures: int
    starts: Starts
    promise: NDArray[np.void]
    predicted_s: NDArray[np.int64]
    power: PowerLog | None = None


def simulate(
    workload: Workload,
    system: System,
    decide: Decide,
    *,
    faults: Sequence[Fault] = (),
    fallback: Decide | None = None,
    observe: Observe | None = None,
    decision_s: float | None = 0.0,
    power: PowerSetting | None = None,
) -> Outcome:
    """Runs a workload on a system, deciding by `decide`.

    Args:
        workload: the jobs.
        system: the machine.
        decide: the cycle in this process, or the service behind its socket.
        faults: to be injected.
        fallback: decides when `decide` raises.
        observe: called with the progress after every decision.
        decision_s: simulated duration of a decision, s; None: the measured one.
        power: what nodes and jobs draw; None: power is not followed.

    Raises:
        Exception: whatever `decide` raises, if there is no fallback.
    """
    run = _Run(
        workload,
        system,
        decide,
        faults=faults,
        fallback=fallback,
        observe=observe,
        decision_s=decision_s,
        power=power,
    )
    return run.to_the_end()


class _Run:
    def __init__(
        self,
        workload: Workload,
        system: System,
        decide: Decide,
        *,
        faults: Sequence[Fault],
        fallback: Decide | None,
        observe: Observe | None,
        decision_s: float | None,
        power: PowerSetting | None,
    ) -> None:
        self.workload, self.system = workload, system
        self.decide, self.fallback, self.observe = decide, fallback, observe
        self.decision_s = decision_s
        self.controller = Controller(workload, system)
        self.meter = (
            PowerMeter(power, self.controller, int(workload.submit_s[0])) if power else None
        )
        self.submit_s: list[int] = workload.submit_s.tolist()
        self.faults = sorted(faults, key=lambda fault: fault.at_s)
        n_jobs = len(workload)
        self.start_s = np.full(n_jobs, NEVER, dtype=np.int64)
        self.end_s = np.full(n_jobs, NEVER, dtype=np.int64)
        self.cancelled = np.zeros(n_jobs, dtype=bool)
        self.restarts = np.zeros(n_jobs, dtype=np.int64)
        self.allocations: list[NDArray[np.int32]] = [np.zeros(0, dtype=np.int32)] * n_jobs
        self.decision_ms: list[float] = []
        self.failures = self.submitted = self.finished = self.struck = 0
        self.patience = Patience()
        self.ends: list[tuple[int, int, int, Allocation]] = []
        self.pushed = 0
        self.wake_s = NEVER
        self.due: _Due | None = None
        self.owed = False
        self.lag_s = np.zeros(n_jobs) if decision_s != 0 else None
        self.predicted_s = np.zeros(n_jobs, dtype=np.int64)
        self.work = Work(workload)
        self.reports = MpiReports(workload.malleable, self.work)
        self.held_s = None if workload.malleable is None else np.zeros(n_jobs, dtype=np.int64)
        self.holds: dict[int, tuple[int, int]] = {}
        self.promises = Promises(n_jobs)
        self.promised = np.zeros(n_jobs, dtype=PROMISE)
        self.began: list[tuple[int, NDArray[np.void]]] = []
        self.gone = 0

    def to_the_end(self) -> Outcome:
        while (now_s := self._next_s()) != NEVER:
            woken = now_s == self.wake_s
            wanted_s, self.wake_s = self.wake_s, NEVER
            changed = self._end_jobs(now_s) + self._strike(now_s) + self._submit(now_s)
            changed += len(self._finish_adaptations(now_s)) + self._measure(now_s)
            if self.meter is not None:
                changed += self.meter.happen(now_s)
            if not changed and not woken and self.due is None and not self.owed:
                self.wake_s = wanted_s  # only an end that was obsolete
                continue
            self.owed |= bool(changed) or woken
            if self.due is not None and self.due.at_s <= now_s:
                changed += self._carry_out(self.due, now_s)
            if self.due is None and self.owed and self._undecided():
                self.owed = False
                changed += self._decide_at(now_s)
            if self.meter is not None:
                self.meter.read(now_s)
            self.wake_s = self.patience.wake_s(now_s, self.wake_s, changed)
        workload = self.workload
        widths = np.fromiter(map(len, self.allocations), dtype=np.int64, count=len(workload))
        return Outcome(
            workload,
            self.system,
            ExecutedSchedule(
                self.system.processors,
                workload.submit_s,
                self.start_s,
                self.end_s,
                workload.processors,
                self.lag_s,
                self.held_s,
            ),
            np.concatenate(([0], np.cumsum(widths))).astype(np.int64),
            np.concatenate(self.allocations),
            self.cancelled,
            self.restarts,
            np.array(self.decision_ms, dtype=np.float64),
            tuple(self.controller.refusals),
            self.failures,
            self._starts(),
            self.promised,
            self.predicted_s,
            None if self.meter is None else self.meter.log(),
        )

    def _undecided(self) -> bool:
        """Whether there are jobs that wait, or running ones that can grow."""
        controller = self.controller
        can_grow = self.workload.malleable is not None and bool(controller.running)
        return bool(controller.waiting) or can_grow

    def _starts(self) -> Starts:
        kept = [np.zeros(0, dtype=PROMISE), *(promise for _, promise in self.began)]
        at_s = np.array([at_s for at_s, _ in self.began], dtype=np.int64)
        starts = at_s.repeat([len(promise) for _, promise in self.began])
        return Starts(starts, np.concatenate(kept, dtype=PROMISE), self.gone)

    def _next_s(self) -> int:
        submit_s = self.submit_s
        return min(
            self.ends[0][0] if self.ends else NEVER,
            submit_s[self.submitted] if self.submitted < len(submit_s) else NEVER,
            self.faults[self.struck].at_s if self.struck < len(self.faults) else NEVER,
            self.wake_s,
            self.due.at_s if self.due is not None else NEVER,
            self.controller.next_adapted_s() if self.workload.malleable is not None else NEVER,
            self.reports.next_s(),
            self.meter.next_s() if self.meter is not None else NEVER,
        )

    # ------------------------------------------------------------ events

    def _end_jobs(self, now_s: int) -> int:
        ended = 0
        while self.ends and self.ends[0][0] <= now_s:
            _, job, _, held = heapq.heappop(self.ends)
            # An end is obsolete if that run is over already: cancelled, ended early, requeued.
            if self.controller.running.get(job) is held:
                on_time = self.workload.runtime_s[job] < self.workload.time_limit_s[job]
                self._finish(job, now_s, Ending.COMPLETED if on_time else Ending.TIMEOUT)
                ended += 1
        return ended

    def _finish(self, job: int, now_s: int, ending: Ending) -> None:
        self.controller.end(job, now_s, ending)
        self.reports.forget(job)
        self._account(job, now_s)
        self.end_s[job] = now_s
        self.finished += 1

    def _submit(self, now_s: int) -> int:
        last, count = self.submitted, 0
        while last < len(self.submit_s) and self.submit_s[last] <= now_s:
            last += 1
        for job in range(self.submitted, last):
            if not self.cancelled[job]:
                self.controller.submit(job)
                count += 1
        self.submitted = last
        return count

    def _strike(self, now_s: int) -> int:
        struck = self.struck
        while self.struck < len(self.faults) and self.faults[self.struck].at_s <= now_s:
            self._apply_fault(self.faults[self.struck], now_s)
            self.struck += 1
        return self.struck - struck

    def _apply_fault(self, fault: Fault, now_s: int) -> None:
        controller, target = self.controller, fault.target
        match fault.kind:
            case FaultKind.NODE_LOST:
                for job in controller.jobs_on(target):
                    controller.release(job)
                    self.reports.forget(job)
                    self._account(job, now_s)
                    controller.requeue(job)
                    self.start_s[job] = NEVER
                    self.restarts[job] += 1
                controller.set_usable(target, usable=False)
            case FaultKind.NODE_RETURNED:
                controller.set_usable(target, usable=True)
            case FaultKind.JOB_ENDED_EARLY:
                if target in controller.running and self.start_s[target] < now_s:
                    self._finish(target, now_s, Ending.FAILED)
            case FaultKind.JOB_CANCELLED:
                self._cancel(target, now_s)

    def _cancel(self, job: int, now_s: int) -> None:
        if job in self.controller.running:
            self._finish(job, now_s, Ending.CANCELLED)
        elif job in self.controller.waiting:
            self.controller.waiting.remove(job)
            promise = self.promises.take(np.array([job]))
            self.gone += int((promise["first_start_s"] != 0).sum())
        elif job < self.submitted:
            return  # it ended before
        self.cancelled[job] = True

    # ------------------------------------------------------------ decisions

    def _decide_at(self, now_s: int) -> int:
        """Requests a plan and applies it if due at once; returns how many jobs started."""
        controller = self.controller
        snapshot = controller.snapshot(now_s)
        failed = self.failures
        began = time.perf_counter()
        try:
            plan = self.decide(snapshot)
        except Exception:
            if self.fallback is None:
                raise
            self.failures += 1
            plan = self.fallback(snapshot)
        decision_ms = (time.perf_counter() - began) * 1e3
        self.decision_ms.append(decision_ms)
        takes_s = decision_ms / 1e3 if self.decision_s is None else self.decision_s
        due = _Due(
            plan, now_s, now_s + int(takes_s), takes_s % 1.0, self.failures > failed,
            next_change_s(snapshot),
        )  # fmt: skip
        if due.at_s > now_s:
            self.due = due
            return 0
        return self._carry_out(due, now_s)

    def _carry_out(self, due: "_Due", now_s: int) -> int:
        """Applies a plan; returns how many jobs it started."""
        self.due = None
        controller, plan = self.controller, due.plan
        refused = len(controller.refusals)
        started = controller.apply(plan, now_s, due.made_s)
        for job in started:
            self._started(job, now_s)
        self._resized(controller.take_resized(), now_s)
        if self.lag_s is not None:
            self.lag_s[started] = due.lag_s
        self._listen(plan, started, now_s)
        self.wake_s = min(_earliest_planned(plan, now_s), max(plan.again_s, now_s + 1))
        if due.again_s is not None:
            self.wake_s = max(min(self.wake_s, due.again_s), now_s)
        if len(controller.refusals) > refused or due.failed:
            self.wake_s = min(self.wake_s, now_s + RETRY_S)
        if self.observe is not None:
            self.observe(
                Progress(
                    now_s,
                    len(controller.waiting),
                    len(controller.running),
                    self.finished,
                    len(self.workload),
                    controller.used_processors,
                    self.decision_ms[-1],
                )
            )
        return len(started)

    def _listen(self, plan: Plan, started: list[int], now_s: int) -> None:
        """Records the starts announced to waiting jobs, and their accuracy for started ones."""
        if started:
            taken = self.promises.take(np.array(started))
            self.promised[started] = taken
            self.began.append((now_s, taken))
        jobs, start_s = self.controller.announced(plan)
        waits = self.start_s[jobs] == NEVER
        if np.count_nonzero(waits):
            self.promises.announce(jobs[waits], start_s[waits], now_s)

    def _started(self, job: int, now_s: int) -> None:
        held = self.controller.running[job]
        self.start_s[job] = now_s
        self.allocations[job] = held.nodes
        self.predicted_s[job] = held.predicted_s
        if self.workload.malleable is None:
            self._expect_end(job, now_s + int(self.workload.runtime_s[job]))
            return
        self.work.start(job, len(held.nodes), now_s)
        if len(held.nodes) != self.workload.malleable.nominal[job]:
            self.controller.set_limit(job, self.work.limit_s(job))
        self._account(job, now_s)
        self._expect_end(job, self.work.end_s(job))
        self._follow(job, now_s)

    def _account(self, job: int, now_s: int) -> None:
        """Adds what a job has held so far to its sum, before its allocation changes."""
        if self.held_s is None:
            return
        if (before := self.holds.pop(job, None)) is not None:
            since_s, processors = before
            self.held_s[job] += processors * (now_s - since_s)
        if (held := self.controller.running.get(job)) is not None:
            use = int(held.use[:, CPUS].sum())
            if held.adaptation is not None:
                use += int(held.adaptation.use[:, CPUS].sum())
            self.holds[job] = now_s, use

    def _expect_end(self, job: int, end_s: int) -> None:
        """Schedules the end of a job, unless its allocation changes before."""
        self.pushed += 1
        heapq.heappush(self.ends, (end_s, job, self.pushed, self.controller.running[job]))

    def _finish_adaptations(self, now_s: int) -> list[int]:
        """Ends the changes of width that are complete by now."""
        if self.workload.malleable is None:
            return []
        done = self.controller.finish_adaptations(now_s)
        for job in done:
            self._account(job, now_s)
            self._expect_end(job, self.work.end_s(job))
        return done

    def _resized(self, jobs: list[int], now_s: int) -> None:
        """Reschedules the ends of resized jobs, which stand still for some of the change."""
        for job in jobs:
            held = self.controller.running[job]
            change = held.adaptation
            assert change is not None
            self._account(job, now_s)
            self.work.resize(job, len(held.nodes), now_s, change.goes_on_s, change.still_s)
            self.allocations[job] = held.nodes
            self.controller.set_limit(job, self.work.limit_s(job))
            self._expect_end(job, self.work.end_s(job))
            self._follow(job, now_s)

    def _follow(self, job: int, now_s: int) -> None:
        """Tells the controller the time in MPI of a job with phases."""
        mtct = self.reports.follow(job, len(self.controller.running[job].nodes), now_s)
        if mtct is not None:
            self.controller.measure(job, mtct)

    def _measure(self, now_s: int) -> int:
        """Tells the controller what has changed of that; returns of how many jobs."""
        renewed = self.reports.renewed(now_s)
        for job, mtct in renewed.items():
            self.controller.measure(job, mtct)
        return len(renewed)


@dataclass(frozen=True, slots=True)
class _Due:
    """A plan on its way.

    Attributes:
        made_s: when it was requested.
        at_s: when it is applied.
        lag_s: further delay, less than a second.
        failed: the fallback made it.
        again_s: when a wait for leaf switches ends; None: there is none.
    """

    plan: Plan
    made_s: int
    at_s: int
    lag_s: float
    failed: bool
    again_s: int | None


def _earliest_planned(plan: Plan, now_s: int) -> int:
    start_s = np.asarray(plan.start_s)
    later = start_s[start_s > now_s]  # NEVER is the largest of all
    return int(later.min()) if len(later) else NEVER
