# SPDX-License-Identifier: Apache-2.0
"""Runs the cycle safely: every snapshot gets a legal plan, whatever a policy does.

Every cycle has its own random number generator, seeded by the seed and the snapshot's generation.
So a recorded cycle can be repeated without the cycles before it.

Rules
    1. If a cycle fails, the jobs that make it fail are searched for
       (`bridge.safe_cycle.culprit_search`) and set aside, each with a reason, and the same policy
       plans the rest. Running jobs, reservations and nodes that make it fail are set aside, too:
       their nodes and licences are closed to all jobs.
    2. What was set aside is tried again when it, its partition, the site's rules or the policy
       change, and after `RETRY_S` (`set_aside.py`).
    3. A conservative plan is used for this cycle if the policy fails without any culprit, if most
       waiting jobs are culprits, or if the search did not finish in time. That plan is made under
       the same rules. If it fails, too, the plan is empty: every job waits, with a reason.
    4. After a search without result, the next one waits for 2, 4, ... at most `MAX_SKIPPED`
       failures. A search that ran out of time continues in the next cycle.
    5. The state changes only if a plan of the policy is used. Ended jobs are reported once; so if
       the policy has no plan, its predict stage is run alone and what it learns is kept.
    6. A policy that was interrupted (`bridge.safe_cycle.watchdog`) is not run for as many cycles as
       in rule 4.
    7. If the policy fails with its state but not without, the state is discarded: promises first,
       then what was learnt. What extensions state as kept is not (`Extension.keeps`).
    8. If a stage of an extension fails without any culprit, the same policy plans without it; not
       if it still fails, because its bounds do, which are never left out. If
       the conservative plan fails, it is made once more without the stages of any extension. What
       an extension did not decide stays as it is, and every plan is checked under the same rules.
"""

import dataclasses
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np

from bridge.cycle import CycleResult, run_cycle
from bridge.errors import ExtensionError, InvalidPlan, Overtime, PolicyError
from bridge.extension_packages import active_stages
from bridge.model.decisions.answer import LATE, Answer
from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.rules.site import NO_RULES, Site
from bridge.model.snapshot import Snapshot
from bridge.policies.catalogue import DEFAULT
from bridge.ports import Context, Environment, Policy, SolverRequest, State, Telemetry
from bridge.registry import PRESETS, build
from bridge.safe_cycle.culprit_search import CulpritSearch
from bridge.safe_cycle.exclusion import RowKind, mark_of, name_of, nothing, whole, without
from bridge.safe_cycle.failure_log import FailureLog
from bridge.safe_cycle.set_aside import SetAside, SetAsideJob, TookTooLong
from bridge.safe_cycle.without_policy import completed, kept

_log = logging.getLogger(__name__)

PATIENCE_S = 2.0
"""Time limit of the search for culprits in one cycle, by the clock passed to the decider."""
_SHARE = 4
"""Culprits in combination (`CulpritSearch.max_together`): at most one waiting job in so many."""
_CLOSED = (RowKind.RUNNING, RowKind.RESERVATION, RowKind.NODE)
_MAX_TEXT = 160
_WORDS = {
    RowKind.PENDING: "job",
    RowKind.ENDED: "ended job",
    RowKind.RUNNING: "running job",
    RowKind.RESERVATION: "reservation",
    RowKind.NODE: "node",
}


class _Late:
    """A solver without any time left; used while culprits are searched for."""

    def warm_up(self) -> None:
        """Does nothing."""

    def begin(self) -> None:
        """Does nothing."""

    def elapsed_s(self) -> float:
        """Returns 0."""
        return 0.0

    def alarm(self, left_s: float) -> None:
        """Returns None: there is no clock."""
        del left_s

    def solve(self, request: SolverRequest) -> Answer:
        """Returns no solution."""
        del request
        return Answer(None, problem=LATE)


@dataclass(frozen=True)
class _Tried:
    """The result of a policy, or why there is none, and the snapshot it was run on."""

    result: CycleResult | None
    problem: PolicyError | None
    world: Snapshot


@dataclass(frozen=True)
class _Attempt:
    """One way to plan a cycle.

    Attributes:
        net: it is the conservative one, after which there is none.
        left_out: extensions whose stages do not run.
    """

    policy: Policy
    net: bool = False
    left_out: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Failed:
    """An attempt that failed.

    Attributes:
        aside: what is set aside for this attempt.
        world: the same without what is set aside; the policy was tried on it.
    """

    attempt: _Attempt
    state: State
    aside: SetAside
    snapshot: Snapshot
    world: Snapshot
    problem: PolicyError


class Decider:
    """Runs a policy under the site's rules, and carries its state from cycle to cycle.

    Attributes:
        policy: in force; `exchange` replaces it.
        site: rules of every plan; may be replaced between cycles.
        state: from the last cycle in which a plan of the policy was used.
        environment: solver and oracle.
        telemetry: the telemetry of the last cycle.
        failures: number of cycles for which the policy had no plan.
    """

    def __init__(
        self,
        policy: Policy,
        state: State | None = None,
        seed: int = 0,
        *,
        site: Site = NO_RULES,
        environment: Environment | None = None,
        clock: Callable[[], float] | None = None,
        guard: AbstractContextManager[object] | None = None,
    ) -> None:
        """Creates a decider.

        Args:
            site: rules of every plan.
            environment: solver and oracle.
            clock: s, limits searches to `PATIENCE_S`; None: only the number of cycles is limited.
            guard: interrupts a cycle that does not end; None: none is interrupted.
        """
        self.policy = policy
        self.state = state or State()
        self.environment = environment or Environment()
        self.telemetry = Telemetry()
        self.failures = 0
        self.seed = seed
        self._clock = clock or (lambda: 0.0)
        self._guard = guard or nullcontext()
        self._failure_log = FailureLog()
        self._conservative = build(PRESETS[DEFAULT])
        self._site = site
        self._asides = defaultdict[tuple[bool, frozenset[str]], SetAside](SetAside)

    @property
    def site(self) -> Site:
        """The rules of every plan."""
        return self._site

    @site.setter
    def site(self, site: Site) -> None:
        if site != self._site:
            self._asides.clear()
        self._site = site

    def exchange(self, policy: Policy) -> None:
        """Puts another policy in force; the promises of another plan stage are dropped."""
        if type(policy.plan) is not type(self.policy.plan):
            self.state = State(learnt=self.state.learnt)
        self.policy = policy
        for key in [key for key in self._asides if not key[0]]:
            del self._asides[key]

    def decide(self, snapshot: Snapshot) -> Plan:
        """Plans one snapshot; the plan's notes report deviations from the policy."""
        began_s = self._clock()

        def over() -> bool:
            return self._clock() - began_s > PATIENCE_S

        self.telemetry = Telemetry()
        own = self._careful(snapshot, _Attempt(self.policy), over)
        if own.result is not None:
            self.state, self.telemetry = own.result.state, own.result.telemetry
            return own.result.plan
        self.failures += 1
        _log.error("%s; this cycle is planned conservatively", _one_line(str(own.problem)))
        self._observe(own.world)
        net = self._conservatively(snapshot, over)
        if net.result is not None:
            plan = net.result.plan
            self.telemetry = Telemetry(set_aside=net.result.telemetry.set_aside)
        else:
            self.telemetry = Telemetry(set_aside=len(snapshot.jobs))
            _log.error("%s; no job starts in this cycle", _one_line(str(net.problem)))
            text = _one_line(f"planning failed: {net.problem}")
            plan = nothing(snapshot, self._conservative.name, Reason(ReasonCode.OTHER, text))
            plan = completed(snapshot, plan)
        note = _one_line(f"fell back: {own.problem}")
        return dataclasses.replace(plan, notes=(*plan.notes, note))

    def _conservatively(self, snapshot: Snapshot, over: Callable[[], bool]) -> _Tried:
        """The conservative plan; without extensions if there is none with them."""
        net = self._careful(snapshot, _Attempt(self._conservative, net=True), over)
        stages = active_stages(snapshot)
        active = frozenset(each.name for each in stages if not each.acts_for_policy)
        if net.result is not None or not active:
            return net
        _log.error("%s; planned without extensions", _one_line(str(net.problem)))
        return self._careful(snapshot, _Attempt(self._conservative, True, active), over)

    def _careful(self, snapshot: Snapshot, attempt: _Attempt, over: Callable[[], bool]) -> _Tried:
        """Plans with a policy, without what makes it fail."""
        try:
            tried = self._tried(snapshot, attempt, over)
        except Exception as error:  # the conservative policy may still have a plan
            self._failure_log.write(attempt.policy.name, "failed in the search for culprits", error)
            return _Tried(None, _as_policy_error(attempt.policy, error), snapshot)
        problem = tried.problem
        if not isinstance(problem, ExtensionError) or problem.extension in attempt.left_out:
            return tried
        _log.error("%s; it is left out of this cycle", _one_line(str(problem)))
        left_out = attempt.left_out | {problem.extension}
        again = self._careful(snapshot, dataclasses.replace(attempt, left_out=left_out), over)
        if again.result is None:
            return again
        note = _one_line(f"left out: {problem}")
        plan = dataclasses.replace(again.result.plan, notes=(*again.result.plan.notes, note))
        return dataclasses.replace(again, result=dataclasses.replace(again.result, plan=plan))

    def _tried(self, snapshot: Snapshot, attempt: _Attempt, over: Callable[[], bool]) -> _Tried:
        aside = self._asides[attempt.net, attempt.left_out]
        state = State() if attempt.net else self.state
        left = aside.rows(snapshot)
        world = without(snapshot, left)
        rests = aside.rests if aside.skip > 0 else None
        found = rests or self._problem(attempt, world, state)
        if isinstance(found, PolicyError):
            if aside.is_skipped(found):
                return _Tried(None, found, world)
            return self._search(_Failed(attempt, state, aside, snapshot, world, found), over)
        aside.skip, aside.skipped = 0, 1
        aside.open.clear()
        return _Tried(_completed(snapshot, found, left), None, world)

    def _search(self, failed: _Failed, over: Callable[[], bool]) -> _Tried:
        """Searches for what makes a policy fail, sets it aside, and plans the rest."""
        aside, world, jobs = failed.aside, failed.world, failed.world.jobs
        _log.error("%s; searching for the cause", _one_line(str(failed.problem)))
        search = CulpritSearch(
            lambda some: self._run(failed.attempt, some, failed.state, solver=False),
            over,
            max_together=len(jobs) if failed.attempt.net else len(jobs) // _SHARE,
        )
        doubtful = [_rows_of(world, group) for group in aside.open]
        search.look(world, [_named(world, failed.problem), *doubtful])
        if search.general:
            return self._forget(failed)
        self._set_aside(failed.snapshot, world, failed.attempt.policy, search, aside)
        aside.open = [{str(jobs.id[row]) for row in group} for group in search.open]
        culprits = search.culprits[RowKind.PENDING]
        if failed.attempt.net or not (search.open or 2 * len(culprits) > len(jobs)):
            return self._plan_rest(failed, search)
        if not search.open:  # most jobs: the policy is to blame
            aside.known = {key: each for key, each in aside.known.items() if key[0] > 0}
            aside.search_failed()
        return _Tried(None, failed.problem, without(world, search.culprits))

    def _forget(self, failed: _Failed) -> _Tried:
        """Plans without what the policy remembers, as no row makes it fail."""
        found = None if failed.attempt.net else self._without_state(failed)
        if found is None:
            failed.aside.search_failed()
            return _Tried(None, failed.problem, failed.world)
        left = failed.aside.rows(failed.snapshot)
        return _Tried(_completed(failed.snapshot, found, left), None, failed.world)

    def _plan_rest(self, failed: _Failed, search: CulpritSearch) -> _Tried:
        """Plans without the culprits, and without those that may be some."""
        aside, snapshot = failed.aside, failed.snapshot
        left = aside.rows(snapshot)
        for row in search.culprits[RowKind.ENDED]:
            left.setdefault(RowKind.ENDED, {})[row] = ""
        for row in _rows_of(snapshot, set().union(*aside.open)):
            text = "set aside for this cycle: planning fails with one of several jobs"
            left.setdefault(RowKind.PENDING, {})[row] = text
        rest = without(snapshot, left)
        found = self._problem(failed.attempt, rest, failed.state)
        if isinstance(found, PolicyError) and self.environment.solver is not None:
            found = self._problem(failed.attempt, rest, failed.state, solver=False)
        if (
            not failed.attempt.net
            and isinstance(found, CycleResult)
            and _closes_all(search, found.plan)
        ):
            found = failed.problem  # with everything closed, any policy passes
            aside.known = {key: each for key, each in aside.known.items() if key[0] not in _CLOSED}
        if isinstance(found, PolicyError):
            if not search.open:
                aside.search_failed()
            return _Tried(None, found, rest)
        return _Tried(_completed(snapshot, found, left), None, rest)

    def _problem(
        self, attempt: _Attempt, world: Snapshot, state: State, *, solver: bool = True
    ) -> CycleResult | PolicyError:
        """Runs a policy; returns its result or its error."""
        policy = attempt.policy
        try:
            return self._run(attempt, world, state, solver=solver)
        except ExtensionError as error:
            what = f"failed in the extension {error.extension}"
            self._failure_log.write(policy.name, what, error.__cause__ or error)
            return error
        except PolicyError as error:
            return error
        except Overtime as error:
            self._failure_log.write(policy.name, "was interrupted", error)
            return TookTooLong(policy.name, "it was interrupted: it took too long")
        except Exception as error:  # a bug in one policy must not stop the cluster
            self._failure_log.write(policy.name, "failed", error)
            return _as_policy_error(policy, error)

    def _run(
        self, attempt: _Attempt, world: Snapshot, state: State, *, solver: bool
    ) -> CycleResult:
        environment = self.environment
        if not solver and environment.solver is not None:
            environment = dataclasses.replace(environment, solver=_Late())
        with self._guard:
            return run_cycle(
                world, self._site, state, attempt.policy, lambda: self._rng(world),
                environment=environment, left_out=attempt.left_out,
            )  # fmt: skip

    def _rng(self, world: Snapshot) -> np.random.Generator:
        return np.random.default_rng((self.seed, world.generation))

    def _without_state(self, failed: _Failed) -> CycleResult | None:
        """Plans without the state if the policy fails only with it, and discards it (rule 7)."""
        policy = failed.attempt.policy
        for what, state in (
            ("what was announced", State(learnt=self.state.learnt)),
            ("what was learnt", State(self.state.promises, kept(self.state))),
            ("everything that was remembered", State(learnt=kept(self.state))),
        ):
            found = self._problem(failed.attempt, failed.world, state)
            if isinstance(found, CycleResult):
                _log.error("policy %s fails with %s: it is discarded", policy.name, what)
                note = f"{what} is discarded: planning failed with it"
                plan = dataclasses.replace(found.plan, notes=(*found.plan.notes, note))
                return dataclasses.replace(found, plan=plan)
        return None

    def _observe(self, world: Snapshot) -> None:
        """Runs the predict stage alone, so that ended jobs are learnt from (rule 5)."""
        try:
            context = Context(self._site, self.state, self._rng(world), self.environment)
            learnt = self.policy.predict.predict(world, context).learnt
            self.state = State(self.state.promises, {**self.state.learnt, **learnt})
        except Exception as error:
            if len(world.ended):
                _log.error("nothing is learnt of %d jobs that ended: %s", len(world.ended), error)

    def _set_aside(
        self,
        snapshot: Snapshot,
        world: Snapshot,
        policy: Policy,
        search: CulpritSearch,
        aside: SetAside,
    ) -> None:
        for kind, rows in search.culprits.items():
            there = world if kind in (RowKind.PENDING, RowKind.ENDED) else snapshot
            for row in sorted(rows):
                name = name_of(there, kind, row)
                why = _one_line(search.problems.get((kind, row), ""))
                what = f"{_WORDS[kind]} {name!r}"
                _log.error("policy %s sets aside %s: %s", policy.name, what, why)
                if kind is RowKind.ENDED:
                    continue
                text = (
                    f"set aside: policy {policy.name} fails with it ({why}); tried again when it,"
                    " its partition, the site's rules or the policy change, and within an hour"
                )
                entry = SetAsideJob(mark_of(there, kind, row), snapshot.now_s, text)
                aside.known[kind, name] = entry


def _closes_all(search: CulpritSearch, plan: Plan) -> bool:
    """Tells whether nodes were closed for this plan and it starts and plans nothing."""
    closed = any(search.culprits[kind] for kind in _CLOSED)
    return closed and not len(plan.starts_now) and not len(plan.planned)


def _as_policy_error(policy: Policy, error: Exception) -> PolicyError:
    return PolicyError(policy.name, f"{type(error).__name__}: {error}")


def _one_line(text: str) -> str:
    shown = "".join(char if char.isprintable() else "?" for char in text[: 2 * _MAX_TEXT])
    return shown if len(shown) <= _MAX_TEXT else f"{shown[: _MAX_TEXT - 3]}..."


def _named(world: Snapshot, problem: PolicyError) -> list[int]:
    """Returns the rows of the jobs that the check names."""
    if not isinstance(problem, InvalidPlan):
        return []
    return _rows_of(world, {str(getattr(each, "job_id", "")) for each in problem.violations})


def _rows_of(world: Snapshot, ids: set[str]) -> list[int]:
    if not ids:
        return []
    return [row for row, job_id in enumerate(world.jobs.id.tolist()) if job_id in ids]


def _completed(
    snapshot: Snapshot, result: CycleResult, left: Mapping[RowKind, Mapping[int, str]]
) -> CycleResult:
    """Extends a result to the rows that were left out."""
    if not any(left.values()):
        return result
    reasons = {
        row: Reason(ReasonCode.OTHER, text) for row, text in left.get(RowKind.PENDING, {}).items()
    }
    plan = whole(snapshot, result.plan, reasons)
    counts = ", ".join(
        f"{len(rows)} {_WORDS[kind]}{'s' if len(rows) > 1 else ''}"
        for kind, rows in sorted(left.items())
        if rows
    )
    return dataclasses.replace(
        result,
        plan=dataclasses.replace(plan, notes=(*plan.notes, f"set aside: {counts}")),
        telemetry=dataclasses.replace(result.telemetry, set_aside=len(reasons)),
    )
