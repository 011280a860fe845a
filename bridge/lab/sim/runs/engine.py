# SPDX-License-Identifier: Apache-2.0
"""The events of a simulation, second by second, and the decision after each of them.

Rules
    1. Events of one second are handled together: first jobs end, then faults occur, then jobs are
       submitted. If any job waits then, one decision is requested and applied.
    2. Time advances to the next event; only the measurement of decision time reads a clock.
    3. A decision is also requested at the earliest start that the last plan announced, when the
       plan requests one (`Plan.again_s`), and `RETRY_S` after one that failed or was partly
       refused. Decisions that change nothing become less frequent (`bridge.lab.sim.runs.patience`).
    4. If the decider raises, the fallback decides, as Slurm's own backfill would if the service
       did not answer. Without a fallback the error is passed to the caller.
    5. The same workload, system, decider, seed and faults give the same schedule, unless decisions
       take their measured time (`decision_s` None).
    6. If decisions take time, their starts are delayed: by whole seconds as an event, during which
       jobs end and arrive but nothing else is decided; the rest, less than a second, is added to
       the jobs' waits (`ExecutedSchedule.lag_s`), not to any event.
    7. Guests that a plan requeues leave after its starts, then its quotas are put into force. While
       jobs share nodes, decisions are also requested when no job waits, and whenever the plan asks
       for one: a policy that watches guests changes nothing as long as their hosts are well.
    8. A significantly different time in MPI of a running job is an event
       (`bridge.lab.sim.runs.mpi_reports`), and so are changes of a corridor of power and reports of
       what a job draws (`bridge.lab.sim.corridor.power`).
    9. A job that waits for others (`bridge.lab.sim.runs.dependencies`) is submitted in the second
       in which the last of them ends; its wait begins then.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bridge.extensions.power.simulated_nodes import SimulatedPower
from bridge.extensions.sharing.part import shared_of
from bridge.lab.sim.cluster.controller import Controller
from bridge.lab.sim.corridor.power import PowerMeter, PowerSetting
from bridge.lab.sim.runs.backlog import Watch
from bridge.lab.sim.runs.dependencies import Dependencies
from bridge.lab.sim.runs.execution import Execution
from bridge.lab.sim.runs.faults import Fault, FaultKind
from bridge.lab.sim.runs.history import RunHistory
from bridge.lab.sim.runs.patience import Patience
from bridge.lab.sim.runs.shared_execution import SharedExecution
from bridge.lab.sim.runs.simulation_result import Observe, SimulationProgress, SimulationResult
from bridge.lab.sim.workloads.system import System
from bridge.lab.sim.workloads.workload import Workload
from bridge.model.job import Ending
from bridge.model.plan import Plan
from bridge.planning.eligibility.leaf_switches import next_change_s
from bridge.ports import Decide
from bridge.units import NEVER

RETRY_S = 30


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
    watch: Watch | None = None,
) -> SimulationResult:
    """Runs a workload on a system, deciding by `decide`.

    Args:
        decide: the cycle in this process, or the service behind its socket.
        faults: to be injected.
        fallback: decides when `decide` raises.
        observe: called with the progress after every decision.
        decision_s: simulated duration of a decision, s; None: the measured one.
        power: what nodes and jobs draw; None: power is not followed.
        watch: ends the run when its queue is hopeless; None: nothing does.

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
    return run.to_the_end(watch)


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
        self.workload = workload
        self.decide, self.fallback, self.observe = decide, fallback, observe
        self.decision_s = decision_s
        self.controller = Controller(workload, system)
        self.shares = workload.sharing is not None
        self.execution = (SharedExecution if self.shares else Execution)(self.controller, workload)
        self.meter = None
        if power is not None:
            origin_s, states = int(workload.submit_s[0]), None
            if power.resume_s:
                states = SimulatedPower(len(system.nodes), power.resume_s, origin_s)
                self.controller.nodes.extensions.append(states)
            self.meter = PowerMeter(power, self.controller, origin_s, states)
        self.history = RunHistory(workload, system, lags=decision_s != 0)
        self.submit_s: list[int] = workload.submit_s.tolist()
        self.faults = sorted(faults, key=lambda fault: fault.at_s)
        self.submitted = self.struck = 0
        self.dependencies = Dependencies(workload)
        self.patience = Patience()
        self.wake_s = self.requested_s = NEVER
        self.due: _Due | None = None
        self.owed = False

    def to_the_end(self, watch: Watch | None) -> SimulationResult:
        while (now_s := self._next_s()) != NEVER:
            if watch is not None and watch.hopeless(self.controller.waiting):
                break
            woken = now_s == self.wake_s
            wanted_s, self.wake_s = self.wake_s, NEVER
            changed = self._end_jobs(now_s) + self._strike(now_s) + self._submit(now_s)
            changed += self.execution.go_on(now_s)
            changed += self.controller.continue_nodes(now_s)
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
            self.wake_s = self._next_decision_s(now_s, changed)
        power = None if self.meter is None else self.meter.log()
        result = self.history.result(self.execution, self.controller.plans.refusals, power)
        return replace(result, stopped=watch is not None and watch.ended)

    def _next_decision_s(self, now_s: int, changed: int) -> int:
        """When to decide next, event or not (rules 3 and 7)."""
        wake_s = self.patience.wake_s(now_s, self.wake_s, changed)
        watches = self.execution.pairs > 0 and self.requested_s > now_s
        return min(wake_s, self.requested_s) if watches else wake_s

    def _undecided(self) -> bool:
        """Whether there are jobs that wait, or running ones that can grow or share nodes."""
        controller = self.controller
        can_grow = self.workload.malleable is not None and bool(controller.running)
        return bool(controller.waiting) or can_grow or bool(self.execution.pairs)

    def _next_s(self) -> int:
        submit_s = self.submit_s
        return min(
            self.execution.next_s(),
            submit_s[self.submitted] if self.submitted < len(submit_s) else NEVER,
            self.faults[self.struck].at_s if self.struck < len(self.faults) else NEVER,
            self.wake_s,
            self.due.at_s if self.due is not None else NEVER,
            self.meter.next_s() if self.meter is not None else NEVER,
            self.controller.nodes.next_s(),
        )

    def _end_jobs(self, now_s: int) -> int:
        ended = 0
        for job in self.execution.take_ended(now_s):
            completed = self.execution.completed(job, now_s)
            self._finish(job, now_s, Ending.COMPLETED if completed else Ending.TIMEOUT)
            ended += 1
        return ended

    def _finish(self, job: int, now_s: int, ending: Ending) -> None:
        self.controller.end(job, now_s, ending)
        self.execution.stop(job, now_s)
        self.history.end(job, now_s)
        self._release(job, now_s)

    def _release(self, ended: int, now_s: int) -> None:
        for job in self.dependencies.ended(ended):
            self.controller.submit(job, now_s)
            self.history.release(job, now_s)

    def _submit(self, now_s: int) -> int:
        last, count = self.submitted, 0
        while last < len(self.submit_s) and self.submit_s[last] <= now_s:
            last += 1
        for job in range(self.submitted, last):
            if not self.history.cancelled[job] and not self.dependencies.holds(job):
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
                    self._requeue(job, now_s)
                controller.nodes.set_usable(target, usable=False)
            case FaultKind.NODE_DRAINED:
                controller.nodes.set_usable(target, usable=False)
            case FaultKind.NODE_RETURNED:
                controller.nodes.set_usable(target, usable=True)
            case FaultKind.JOB_ENDED_EARLY:
                if target in controller.running and self.history.start_s[target] < now_s:
                    self._finish(target, now_s, Ending.FAILED)
            case FaultKind.JOB_CANCELLED:
                self._cancel(target, now_s)

    def _requeue(self, job: int, now_s: int) -> None:
        self.controller.release(job)
        self.execution.stop(job, now_s, requeued=True)
        self.controller.requeue(job)
        self.history.restart(job)

    def _cancel(self, job: int, now_s: int) -> None:
        if job in self.controller.running:
            self._finish(job, now_s, Ending.CANCELLED)
        elif job in self.controller.waiting:
            self.controller.cancel(job)
            self.history.leave(job)
            self._release(job, now_s)
        elif job in self.dependencies.held:
            self.dependencies.held.remove(job)
            self._release(job, now_s)
        elif job < self.submitted:
            return  # it ended before
        else:
            self._release(job, now_s)
        self.history.cancelled[job] = True

    def _decide_at(self, now_s: int) -> int:
        """Requests a plan and applies it if due at once; returns how many jobs started."""
        snapshot = self.controller.snapshot(now_s)
        failed = False
        began = time.perf_counter()
        try:
            plan = self.decide(snapshot)
        except Exception:
            if self.fallback is None:
                raise
            failed = True
            self.history.failures += 1
            plan = self.fallback(snapshot)
        decision_ms = (time.perf_counter() - began) * 1e3
        self.history.decision_ms.append(decision_ms)
        takes_s = decision_ms / 1e3 if self.decision_s is None else self.decision_s
        due = _Due(
            plan, now_s, now_s + int(takes_s), takes_s % 1.0, failed, next_change_s(snapshot)
        )
        if due.at_s > now_s:
            self.due = due
            return 0
        return self._carry_out(due, now_s)

    def _carry_out(self, due: "_Due", now_s: int) -> int:
        """Applies a plan; returns how many jobs it started, requeued or gave other quotas."""
        self.due = None
        controller, plan = self.controller, due.plan
        refused = len(controller.plans.refusals)
        started = controller.plans.apply(plan, now_s, due.made_s)
        for job in started:
            self.history.start(job, controller.running[job], now_s)
            self.execution.start(job, now_s)
        leaving: list[int] = []
        limited = 0
        has_orders = self.shares or len(shared_of(plan).requeues)
        if has_orders and controller.plans.accepts(plan, due.made_s):
            leaving = controller.plans.leaving(plan, now_s)
            for job in leaving:
                self._requeue(job, now_s)
            limited = self.execution.share(plan, now_s)
        for job in controller.adaptations.take_begun():
            self.history.resize(job, controller.running[job])
            self.execution.resize(job, now_s)
        self.history.carry_out(started, now_s, due.lag_s)
        self.history.announce(*controller.announced(plan), now_s)
        self.requested_s = max(plan.again_s, now_s + 1)
        self.wake_s = min(_earliest_planned(plan, now_s), self.requested_s)
        if due.again_s is not None:
            self.wake_s = max(min(self.wake_s, due.again_s), now_s)
        if len(controller.plans.refusals) > refused or due.failed:
            self.wake_s = min(self.wake_s, now_s + RETRY_S)
        if self.observe is not None:
            self.observe(
                SimulationProgress(
                    now_s,
                    len(controller.waiting),
                    len(controller.running),
                    self.history.finished,
                    len(self.workload),
                    controller.nodes.used_processors,
                    self.history.decision_ms[-1],
                )
            )
        return len(started) + len(leaving) + limited


@dataclass(frozen=True, slots=True)
class _Due:
    """A plan that is not yet applied.

    Attributes:
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
    in_order = plan.now_s <= now_s  # `planned` has all starts that are later than now
    start_s = (plan.start_s[plan.planned] if in_order else plan.start_s).tolist()
    return min((each for each in start_s if each > now_s), default=NEVER)
