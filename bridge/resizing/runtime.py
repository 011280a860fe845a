# SPDX-License-Identifier: Apache-2.0
"""Brings every decided resize to its end, whatever dies meanwhile.

Rules
    1. A job has at most one change. A job without an attached launcher keeps its nodes.
    2. In every cycle, for each job: what the controller reports, what launchers and agents have
       said, then the deadlines; as often as one of them leads to another state.
    3. What is under way is shown in the snapshot: the job as adapting, with the nodes that it will
       have, and those that it gives back as being released. So nothing is planned on nodes that are
       not free yet or are promised.
    4. A job whose launcher names other nodes than the controller keeps its nodes.
    5. A change that failed is over for the job's launcher and its nodes: the job keeps what it has
       for `rest_s`, unless its version changes.
    6. A launcher that attaches again gets its order again; it knows by the id whether that is new.
    7. Of changes under way nothing is kept on disk. A job whose launcher works on a change that is
       not known here, or whose processes run on fewer nodes than it holds, is taken up where it is.
    8. What does not fit a report is forgotten, with a line in the log. One job stops no other.
    9. No job gets a node that nobody could later say it has left.
   10. A launcher that starts anew on nodes which are being given back keeps them.
   11. Nodes of a growth that failed are remembered until the job's launcher says that processes run
       there: the program has never run on them, so that they go back also if they are lost.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from bridge.errors import ControllerError
from bridge.model.job import WidthRule
from bridge.model.resizes import Resizes, resized
from bridge.model.snapshot import Snapshot
from bridge.resizing.journal import Journal, Outcome
from bridge.resizing.lately import Lately
from bridge.resizing.launchers import (
    Attached,
    Grow,
    Launchers,
    Names,
    Order,
    Result,
    Shrink,
    Withdraw,
)
from bridge.resizing.states import Change, Deadlines, State
from bridge.resizing.world import World

_log = logging.getLogger(__name__)

LEAST_WAKE_MS, MOST_WAKE_MS = 50, 1000

LISTEN_MS = 500
"""Nobody can wake the controller: so often it asks what launchers, users, operators have said."""

RESEND_S = 2
"""A release that the controller refused is sent again after so many seconds."""

BUSY_S = 1
"""So is one whose nodes were busy: a released node takes a second until it can be used."""

UNANSWERED_S = 10
"""So is what the controller does not answer: it names all nodes, so twice is as good as once."""


@dataclass(frozen=True)
class Send:
    """What the controller is to be told of a job: all nodes that it holds afterwards."""

    change: Change
    version: int
    nodes: Names


@dataclass(frozen=True)
class Shown:
    """A malleable running job, for people.

    Attributes:
        nodes: that it holds.
        min_nodes, max_nodes: that it may hold.
        rule: which numbers of nodes between them are allowed.
        engine: of its launcher; empty: none is attached, so the job keeps its nodes.
        state: of its change; "running" without one.
        target: nodes that it will hold.
        until_s: the state's deadline, Unix seconds; 0: none.
        held: an operator keeps it as it is.
        rests_until_s: it keeps its nodes until then, as a change has failed; 0: it does not.
        reason: of the change, or of the last failure.
        strays: its processes run on other nodes than it holds.
        mtct: time in MPI over computing time at its width, as measured; -1: unknown.
        mtct_estimate: by CPU time, for people; -1: unknown.
    """

    job_id: str
    user: str
    nodes: Names
    min_nodes: int
    max_nodes: int
    rule: WidthRule
    engine: str
    state: str
    target: Names
    until_s: int
    held: bool
    rests_until_s: int
    reason: str
    mtct: float = -1.0
    mtct_estimate: float = -1.0
    strays: bool = False


class Runtime:
    """All changes of one controller's jobs.

    Attributes:
        held: jobs that operators keep as they are.
        wishes: widths that are asked for, and whether an administrator does.
        shown: malleable running jobs as of the last report.
        journal: what became of resizes.
        lately: when widths have changed, for limits on resizes; kept over restarts.
    """

    def __init__(
        self,
        launchers: Launchers,
        new_id: Callable[[str], str],
        deadlines: Deadlines | None = None,
    ) -> None:
        """Begins with no changes.

        Args:
            launchers: of the jobs.
            new_id: gives a job's next change an id that was never used before.
            deadlines: of the states.
        """
        self._launchers = launchers
        self._new_id = new_id
        self._deadlines = deadlines or Deadlines()
        self._changes: dict[str, Change] = {}
        self._resting: dict[str, tuple[int, int]] = {}
        self._results: dict[tuple[str, str, str], Result] = {}
        self._now_s = 0
        self._unused: dict[str, frozenset[str]] = {}
        self._why: dict[str, str] = {}
        self.held: set[str] = set()
        self.wishes: dict[str, tuple[int, bool]] = {}
        self.shown: tuple[Shown, ...] = ()
        self.journal = Journal()
        self.lately = Lately()

    @property
    def changes(self) -> Sequence[Change]:
        """Those under way."""
        return tuple(self._changes.values())

    def reset(self) -> None:
        """The controller has started again: what it was sent may be lost.

        Jobs are taken up anew by what the controller and the launchers say then (rule 7).
        """
        self._changes.clear()
        self._resting.clear()

    # ------------------------------------------------------------ what happened

    def see(self, snapshot: Snapshot) -> None:
        """Takes in a report, and what launchers and agents have said since the last one."""
        world = World(snapshot)
        self._set_back(self._now_s - world.now_s)
        self._now_s = world.now_s
        self._launchers.numbered(world.numbers())
        self._hear()
        for job_id in [job_id for job_id in self._changes if job_id not in world]:
            self._over(self._changes[job_id], Outcome.ENDED)
        for job_id in world.malleable():
            try:
                self._job(world, job_id)
            except Exception:
                self._forget(world, job_id)
        self._settle_rests(world)
        self._results = {}
        if self.held:  # also of jobs that are suspended
            self.held &= set(snapshot.running.id.tolist())
        self.wishes = {job: wish for job, wish in self.wishes.items() if job in world}
        self.lately.keep(world.malleable(), world.now_s)
        self._why = {job: why for job, why in self._why.items() if job in world}
        self._unused = {job: nodes for job, nodes in self._unused.items() if job in world}
        self.journal.keep(set(world), {change.id for change in self.changes})

    def _hear(self) -> None:
        for result in self._launchers.results():
            self._results[result.job_id, result.user, result.id] = result

    def _set_back(self, by_s: int) -> None:
        """The controller's clock was set back by so many seconds: deadlines keep their distance."""
        for change in self._changes.values() if by_s > 0 else ():
            change.until_s -= by_s
            change.by_s -= by_s
            change.again_s -= by_s
        if by_s > 0:
            self.lately.set_back(by_s)

    def _forget(self, world: World, job_id: str) -> None:
        """Called while an exception is handled: the job keeps what it has for a while."""
        _log.exception("the resize of job %s does not fit the report: forgotten", job_id)
        if (change := self._changes.pop(job_id, None)) is not None:
            self.journal.over(change, Outcome.FAILED, world.now_s, "it does not fit the report")
        self._resting[job_id] = (world.version(job_id), world.now_s)

    def _job(self, world: World, job_id: str) -> None:
        if job_id not in self._changes:
            self._take_up(world, job_id)
        change = self._changes.get(job_id)
        if change is not None:
            change.looks += 1
            self._go_on(world, change)

    def answered(
        self, decision: int, now_s: int, *, applied: bool, busy: bool = False, text: str = ""
    ) -> bool:
        """Takes note of the controller's answer; False if the decision is none of a resize.

        Args:
            decision: its number.
            now_s: Unix seconds.
            applied: it was carried out.
            busy: nodes were not free yet; it is sent again.
            text: why not, for people.
        """
        for change in self._changes.values():
            if change.decision and change.decision == decision:
                change.decision = 0
                if applied:
                    change.again_s = change.until_s
                elif busy:
                    change.again_s = now_s + BUSY_S
                else:
                    self._refused_by_controller(change, now_s, text)
                return True
        return False

    def _refused_by_controller(self, change: Change, now_s: int, text: str) -> None:
        _log.info("resize of job %s refused: %s", change.job_id, text or "no reason given")
        if change.state == State.GRANTING:
            self._fail(change, now_s, f"refused by the controller: {text}")
        else:
            change.again_s = now_s + RESEND_S

    # ------------------------------------------------------------ one change

    def begin(
        self, world: World, job_id: str, wanted: Names, *, by_s: int, end_s: int, reason: str
    ) -> None:
        """Begins a decided resize, unless one is under way."""
        before = world.nodes(job_id)
        if job_id in self._changes or not before:
            return
        wanted = tuple(sorted(wanted, key=lambda name: name != before[0]))
        grows = len(wanted) > len(before)
        added = tuple(name for name in wanted if name not in set(before))
        if without := self._launchers.unattended(added):
            _log.warning("job %s does not grow: node %s has no agent", job_id, without[0])
            self._why[job_id] = f"node {without[0]} has no agent"
            self._resting[job_id] = (world.version(job_id), world.now_s)
            return
        change = Change(
            id=self._new_id(job_id), job_id=job_id, user=world.user(job_id),
            state=State.GRANTING, before=before, wanted=wanted, target=wanted,
            until_s=0, by_s=by_s, end_s=end_s, reason=reason,
        )  # fmt: skip
        self._changes[job_id] = change
        self.journal.begun(change, world.now_s)
        self.lately.begun(job_id, change.user, world.now_s)
        self._enter(change, State.GRANTING if grows else State.LEAVING, world.now_s)
        self._hear()
        try:
            self._go_on(world, change)
        except Exception:
            self._forget(world, job_id)

    def _enter(self, change: Change, state: State, now_s: int) -> None:
        from_s = now_s if state in (State.ADDING, State.LEAVING) else max(now_s, change.by_s)
        change.state, change.until_s = state, from_s + self._deadlines.of(state)
        change.withdrawn, change.serial, change.decision, change.again_s = False, -1, 0, 0
        change.looks = 0
        _tell(change, state)

    def _go_on(self, world: World, change: Change) -> None:
        """Makes all steps that are possible now (rule 2)."""
        for _ in range(len(State) + 1):
            state, change.version = change.state, world.version(change.job_id)
            held = set(world.nodes(change.job_id))
            keeps = change.before if state == State.GRANTING else change.target
            fits = set(keeps) <= held <= {*change.before, *change.wanted}
            if not fits or not world.knows(change.target):
                _log.warning("job %s has nodes that nobody decided, or lost some", change.job_id)
                self._fail(change, world.now_s)
            elif world.ends(change.job_id):
                self._over(change, Outcome.ENDED)
            else:
                self._step(world, change, held)
            if change.job_id not in self._changes or change.state == state:
                return

    def _step(self, world: World, change: Change, held: set[str]) -> None:
        now_s = world.now_s
        match change.state:
            case State.GRANTING:
                if held == set(change.target):
                    self._enter(change, State.ADDING, now_s)
                elif now_s > change.until_s:
                    self._fail(change, now_s)
            case State.ADDING | State.LEAVING:
                self._ask(world, change)
            case State.VACATING:
                self._vacate(world, change)
            case State.RELEASING:
                if held == set(change.target):
                    if change.failed:
                        self._fail(change, now_s, outcome=Outcome.WITHDRAWN)
                    else:
                        self._over(change)
                elif self._is_back(change):
                    self._fail(change, now_s, "the job runs on these nodes again")
                elif now_s > change.until_s:
                    _log.warning("the controller does not release nodes of job %s", change.job_id)
                    self._fail(change, now_s)

    def _vacate(self, world: World, change: Change) -> None:
        target = set(change.target)
        leaving = tuple(name for name in world.nodes(change.job_id) if name not in target)
        if self._is_back(change):
            self._fail(change, world.now_s, "the job runs on these nodes again")
        elif self._launchers.vacant(change.job_id, change.user, leaving, unused=change.failed):
            self._enter(change, State.RELEASING, world.now_s)
        elif world.now_s > change.until_s:
            _log.warning("job %s has processes on nodes that it left", change.job_id)
            self._fail(change, world.now_s)

    def _is_back(self, change: Change) -> bool:
        """Whether a launcher has attached since, on nodes that were to go (rule 10)."""
        attached = self._launchers.attached(change.job_id, change.user)
        if attached is None or attached.nodes is None:
            return False
        return not set(attached.nodes) <= set(change.target)

    def _ask(self, world: World, change: Change) -> None:
        """ADDING and LEAVING: until the launcher has answered."""
        result = self._answer(change)
        if result is not None:
            self._told(world, change, result)
            return
        if world.now_s > change.until_s:
            if change.withdrawn:
                _log.warning("the launcher of job %s does not answer", change.job_id)
                self._fail(change, world.now_s)
                return
            change.withdrawn = True
            change.until_s = world.now_s + self._deadlines.withdraw_s
            self._launchers.order(change.job_id, change.user, Withdraw(change.id))
        attached = self._launchers.attached(change.job_id, change.user)
        if attached is not None and attached.serial != change.serial:
            change.serial = attached.serial
            self._launchers.order(change.job_id, change.user, self._order(world, change))
            self._hear()
            if (result := self._answer(change)) is not None:
                self._told(world, change, result)

    def _answer(self, change: Change) -> Result | None:
        """The launcher's result of this change, once."""
        return self._results.pop((change.job_id, change.user, change.id), None)

    def _order(self, world: World, change: Change) -> Order:
        if change.withdrawn:
            return Withdraw(change.id)
        within_s = max(change.until_s - world.now_s, 1)
        before, after = set(change.before), set(change.target)
        if change.grows:
            added = tuple(name for name in change.target if name not in before)
            return Grow(change.id, change.target, added, within_s)
        removed = tuple(name for name in change.before if name not in after)
        return Shrink(change.id, change.target, removed, within_s)

    def _told(self, world: World, change: Change, result: Result) -> None:
        now_s = world.now_s
        runs_on = set(result.nodes or ())
        if result.done and change.grows:
            self._over(change)
        elif result.done and not runs_on <= set(change.target):
            self._fail(change, now_s, "the launcher says done, but runs on nodes that were to go")
        elif result.done:
            self._enter(change, State.VACATING, now_s)
        elif change.grows and not runs_on <= set(change.before):
            self._fail(change, now_s, "the launcher refused, but runs on other nodes than before")
        else:
            _log.info("job %s does not change its width: %s", change.job_id, result.reason)
            if change.grows:
                change.target = change.before
                change.refusal = f"the application says: {result.reason}"
                self._enter(change, State.VACATING, now_s)
            else:
                why = f"the application says: {result.reason}"
                self._fail(change, now_s, why, outcome=Outcome.WITHDRAWN)

    def _over(self, change: Change, outcome: Outcome = Outcome.COMPLETED) -> None:
        _tell(change, "over")
        self.journal.over(change, outcome, self._now_s)
        self._changes.pop(change.job_id, None)
        self._why.pop(change.job_id, None)

    def _fail(
        self, change: Change, now_s: int, why: str = "", *, outcome: Outcome = Outcome.FAILED
    ) -> None:
        """Ends a change; the job keeps what it has for a while (rule 5)."""
        if change.grows and change.state != State.GRANTING:
            self._unused[change.job_id] = frozenset(change.wanted).difference(change.before)
        why = why or change.refusal or f"stopped while {change.state}"
        self._why[change.job_id] = why
        self.journal.over(change, outcome, now_s, why)
        _tell(change, f"failed: {self._why[change.job_id]}")
        self._changes.pop(change.job_id, None)
        self._resting[change.job_id] = (change.version, now_s)
        if change.state in (State.ADDING, State.LEAVING) and not change.withdrawn:
            self._launchers.order(change.job_id, change.user, Withdraw(change.id))

    def _settle_rests(self, world: World) -> None:
        for job_id, (version, since_s) in list(self._resting.items()):
            rests = 0 <= world.now_s - since_s < self._deadlines.rest_s
            if not rests or job_id not in world or version != world.version(job_id):
                del self._resting[job_id]

    # ------------------------------------------------------------ jobs that nobody knows

    def _take_up(self, world: World, job_id: str) -> None:
        """Takes up a change that was under way before the service or the controller started."""
        attached = self._launchers.attached(job_id, world.user(job_id))
        if attached is None or attached.nodes is None or job_id in self._resting:
            return
        if world.ends(job_id):
            return
        held, runs_on = world.nodes(job_id), attached.nodes
        change = self._found(world, job_id, attached, held, runs_on)
        if change is not None:
            _log.info("job %s is taken up: %s", job_id, change.state)
            self._changes[job_id] = change

    def _found(
        self, world: World, job_id: str, attached: Attached, held: Names, runs_on: Names
    ) -> Change | None:
        here, there, aim = set(held), set(runs_on), set(attached.pending_nodes)
        if there & self._unused.get(job_id, frozenset()):
            del self._unused[job_id]
        if held[0] not in there or (aim and held[0] not in aim):
            return None
        change = Change(
            id=attached.pending or self._new_id(job_id), job_id=job_id, user=world.user(job_id),
            state=State.VACATING, before=held, wanted=runs_on, target=runs_on,
            until_s=0, by_s=world.now_s, reason="found under way",
        )  # fmt: skip
        if attached.pending and aim == here and there < here:
            change.before, change.wanted, change.target = runs_on, held, held
            self._enter(change, State.ADDING, world.now_s)
        elif attached.pending and aim < here and there <= here:
            change.wanted = change.target = attached.pending_nodes
            self._enter(change, State.LEAVING, world.now_s)
        elif there < here:
            if here - there <= self._unused.get(job_id, frozenset()):  # rule 11
                change.before, change.wanted = runs_on, held
            self._enter(change, State.VACATING, world.now_s)
        else:
            return None
        return change

    # ------------------------------------------------------------ operators and users

    def ask(
        self, job_id: str, user: str, *, uid: str = "", hold: bool | None = None, width: int = 0
    ) -> None:
        """Takes an order of an operator or a user.

        Args:
            job_id: of a malleable running job.
            user: who asks, if it may be the job's user only; empty: an administrator.
            uid: that user's number: without accounting the controller names users by it.
            hold: keep the job's nodes as they are, or do so no longer; None: not asked.
            width: nodes that the job is to have; 0: not asked.

        Raises:
            ControllerError: it cannot be.
        """
        job = next((job for job in self.shown if job.job_id == job_id), None)
        if job is None:
            raise ControllerError(f"job {job_id[:80]} is no malleable running job")
        if user and job.user not in (user, uid):
            raise ControllerError(f"job {job_id} is {job.user}'s, not {user}'s")
        if hold is not None:
            (self.held.add if hold else self.held.discard)(job_id)
            self.wishes.pop(job_id, None)
            self.shown = tuple(replace(one, held=one.job_id in self.held) for one in self.shown)
        if not width:
            return
        if not job.engine:
            raise ControllerError(f"job {job_id} has no launcher: start it by 'schedbridge run'")
        if job.state != "running":
            raise ControllerError(f"job {job_id} is {job.state}: wait until that is over")
        fits = job.min_nodes <= width <= job.max_nodes and job.rule.allows(width)
        if not fits:
            rule = "" if job.rule == WidthRule.ANY else f", {job.rule.name.lower()} numbers only"
            bounds = f"{job.min_nodes} to {job.max_nodes} nodes{rule}"
            raise ControllerError(f"job {job_id} may have {bounds}, not {width}")
        self.wishes[job_id] = width, not user

    # ------------------------------------------------------------ what others see

    def sends(self, world: World) -> Iterator[Send]:
        """What the controller is to be told now; the caller sets `Change.decision`."""
        for change in self.changes:
            if world.now_s < change.again_s or change.job_id not in world:
                continue
            if change.state in (State.GRANTING, State.RELEASING):
                change.again_s = world.now_s + UNANSWERED_S
                yield Send(change, world.version(change.job_id), change.target)

    def wake_ms(self) -> int:
        """When to look again, ms: soon after a step, then less often; 0: no job has a launcher."""
        looks = min((change.looks for change in self._changes.values()), default=None)
        if looks is None:
            return LISTEN_MS if any(job.engine for job in self.shown) else 0
        return min(LEAST_WAKE_MS << (looks // 8), MOST_WAKE_MS)

    def overlay(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot as planning is to see it (rules 3 and 8)."""
        try:
            return self._overlaid(snapshot, World(snapshot))
        except Exception:
            _log.exception("what is under way does not fit the report: forgotten")
            self.reset()
            return snapshot

    def _overlaid(self, snapshot: Snapshot, world: World) -> Snapshot:
        running = snapshot.running
        adapting = running.adapting.copy()
        least, most = running.min_nodes.copy(), running.max_nodes.copy()
        mtct, resized_s = running.mtct.copy(), running.resized_s.copy()
        begun = running.user_resizes.copy()
        rows, end_s = [], {}
        changed = False
        self.shown = tuple(self._show(snapshot, world, job) for job in world.malleable())
        for job in self.shown:
            if job.mtct >= 0:
                mtct[world.row(job.job_id)], changed = job.mtct, True
        for job_id in world.malleable():
            row = world.row(job_id)
            if since_s := self.lately.of_job(job_id):
                resized_s[row], changed = since_s, True
            if times := self.lately.of_user(world.user(job_id)):
                begun[row], changed = times, True
            attached = self._launchers.attached(job_id, world.user(job_id))
            change = self._changes.get(job_id)
            if change is not None:
                adapting[row] = changed = True
                end_s[row] = change.end_s
                by_s = max(change.by_s, world.now_s + 1)
                rows.append((row, by_s, world.indexes(change.target), change.reason))
            elif (
                attached is None or job_id in self._resting or job_id in self.held
                or _strays(attached, world.nodes(job_id))
            ):  # fmt: skip
                most[row], changed = 0, True
            elif attached.min_nodes or attached.max_nodes:
                least[row] = max(least[row], attached.min_nodes)
                most[row] = min(most[row], attached.max_nodes or most[row])
                most[row] = most[row] if least[row] <= most[row] else 0
                changed = True
        if not changed:
            return snapshot
        table = replace(
            running, adapting=adapting, min_nodes=least, max_nodes=most, mtct=mtct,
            resized_s=resized_s, user_resizes=begun,
        )  # fmt: skip
        return resized(replace(snapshot, running=table), Resizes.of(rows, end_s))

    def _show(self, snapshot: Snapshot, world: World, job_id: str) -> Shown:
        row, running = world.row(job_id), snapshot.running
        attached = self._launchers.attached(job_id, world.user(job_id))
        change = self._changes.get(job_id)
        rest = self._resting.get(job_id)
        nodes = world.nodes(job_id)
        return Shown(
            job_id=job_id,
            user=world.user(job_id),
            nodes=nodes,
            min_nodes=max(int(running.min_nodes[row]), 1),
            max_nodes=int(running.max_nodes[row]),
            rule=WidthRule(int(running.width_rule[row])),
            engine="" if attached is None else attached.engine or "unknown",
            state=change.state.value if change else "running",
            target=change.target if change else nodes,
            until_s=change.until_s if change else 0,
            held=job_id in self.held,
            rests_until_s=rest[1] + self._deadlines.rest_s if rest else 0,
            reason=change.reason if change else self._why.get(job_id, ""),
            mtct=self._launchers.mtct(job_id, world.user(job_id)),
            mtct_estimate=self._launchers.mtct(job_id, world.user(job_id), estimate=True),
            strays=_strays(attached, nodes),
        )


def _strays(attached: Attached | None, nodes: Names) -> bool:
    """Whether a job's processes run on other nodes than it holds."""
    return attached is not None and attached.nodes is not None and {*attached.nodes} != {*nodes}


def _tell(change: Change, what: str) -> None:
    """A line for each state: their times tell where a slow change spends its time."""
    before, after = len(change.before), len(change.wanted)
    _log.info("job %s, %d to %d nodes: %s", change.job_id, before, after, what)
