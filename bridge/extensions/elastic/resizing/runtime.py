# SPDX-License-Identifier: Apache-2.0
"""Brings every decided resize to its end, whatever process dies meanwhile.

Rules
    1. A job has at most one change. A job without an attached launcher keeps its nodes.
    2. In every cycle, for each job: first the controller's report, then messages of launchers and
       agents, then the deadlines (`transitions.py`).
    3. Changes under way are shown in the snapshot (`overlay.py`).
    4. After a failed change the job keeps its nodes for `rest_s`, unless its version changes.
    5. Changes under way are not kept on disk. A change that is unknown here, but that the launcher
       works on or that the nodes show, is continued.
    6. A change that does not fit a report is dropped, with a line in the log. No job stops others.
    7. No job gets a node for which it could not be verified later that the job has left it.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from bridge.errors import ControllerError
from bridge.extensions.elastic.resizing.changes import OpenResizes
from bridge.extensions.elastic.resizing.journal import Journal, ResizeResult
from bridge.extensions.elastic.resizing.launchers import Launchers, Names
from bridge.extensions.elastic.resizing.overlay import Shown, overlaid, shown_jobs
from bridge.extensions.elastic.resizing.resize_times import ResizeTimes
from bridge.extensions.elastic.resizing.states import Deadlines, OpenResize, ResizeState
from bridge.extensions.elastic.resizing.transitions import Transitions
from bridge.extensions.elastic.resizing.world import World
from bridge.model.job import WidthRule
from bridge.model.snapshot import Snapshot

_log = logging.getLogger(__name__)

MIN_WAKE_MS, MAX_WAKE_MS = 50, 1000

LISTEN_MS = 500
"""The controller cannot be woken, so it calls at this interval for messages of launchers, users
and operators."""

RESEND_S = 2
"""After this time a release that the controller refused is sent again."""

BUSY_S = 1
"""The same for a change whose nodes were busy: a released node can be used after a second."""

UNANSWERED_S = 10
"""The same if the controller does not answer. Repeating is safe: a message names all nodes."""


@dataclass(frozen=True)
class Send:
    """A message to the controller about a job: all nodes that it holds afterwards."""

    change: OpenResize
    version: int
    nodes: Names


class Runtime:
    """All changes of one controller's jobs.

    Attributes:
        held: jobs whose nodes operators keep.
        wishes: requested widths, and whether an administrator requests them.
        shown: running malleable jobs as of the last report.
    """

    def __init__(
        self,
        launchers: Launchers,
        new_id: Callable[[str], str],
        deadlines: Deadlines | None = None,
    ) -> None:
        """Starts without changes.

        Args:
            new_id: gives a job's next change an id that was never used before.
        """
        self._launchers = launchers
        self._new_id = new_id
        self._changes = OpenResizes(deadlines or Deadlines())
        self._transitions = Transitions(launchers, self._changes)
        self._now_s = 0
        self.held: set[str] = set()
        self.wishes: dict[str, tuple[int, bool]] = {}
        self.shown: tuple[Shown, ...] = ()

    @property
    def changes(self) -> Sequence[OpenResize]:
        """The changes under way."""
        return tuple(self._changes.under_way.values())

    @property
    def is_idle(self) -> bool:
        """Whether nothing has to be shown, sent or forgotten until a malleable job runs."""
        return not (self.shown or self.held or self._changes.resize_times.known)

    @property
    def journal(self) -> Journal:
        """Outcomes of resizes."""
        return self._changes.journal

    @property
    def resize_times(self) -> ResizeTimes:
        """When widths changed, for limits on resizes; survives restarts."""
        return self._changes.resize_times

    def reset(self) -> None:
        """Handles a restart of the controller: messages to it may be lost.

        Changes are found again from what the controller and the launchers report then (rule 5).
        """
        self._changes.clear()

    def see(self, snapshot: Snapshot) -> None:
        """Reads a report, and the messages of launchers and agents since the last one."""
        world = World(snapshot)
        if world.now_s < self._now_s:
            self._changes.set_clock_back(self._now_s - world.now_s)
        self._now_s = world.now_s
        self._transitions.read_results()
        for change in self.changes:
            if change.job_id not in world:
                self._changes.end(change, ResizeResult.ENDED, world.now_s)
        for job_id in world.malleable():
            try:
                self._advance(world, job_id)
            except Exception:
                self._changes.drop(world, job_id)
        self._transitions.discard_results()
        self._changes.prune(world)
        if self.held:  # also of jobs that are suspended
            self.held &= set(snapshot.running.id.tolist())
        self.wishes = {job: wish for job, wish in self.wishes.items() if job in world}

    def _advance(self, world: World, job_id: str) -> None:
        if job_id not in self._changes.under_way and job_id not in self._changes.resting:
            self._transitions.recover(world, job_id, self._new_id)
        change = self._changes.under_way.get(job_id)
        if change is not None:
            change.looks += 1
            self._transitions.advance(world, change)

    def begin(
        self, world: World, job_id: str, wanted: Names, *, by_s: int, end_s: int, reason: str
    ) -> None:
        """Begins a decided resize, unless one is under way."""
        before, changes = world.nodes(job_id), self._changes
        if job_id in changes.under_way or not before:
            return
        wanted = tuple(sorted(wanted, key=lambda name: name != before[0]))
        added = tuple(name for name in wanted if name not in set(before))
        if without := self._launchers.unattended(added):
            _log.warning("job %s does not grow: node %s has no agent", job_id, without[0])
            changes.reasons[job_id] = f"node {without[0]} has no agent"
            changes.resting[job_id] = (world.version(job_id), world.now_s)
            return
        state = ResizeState.GRANTING if len(wanted) > len(before) else ResizeState.LEAVING
        change = OpenResize(
            id=self._new_id(job_id), job_id=job_id, user=world.user(job_id),
            state=state, before=before, wanted=wanted, target=wanted,
            until_s=0, by_s=by_s, end_s=end_s, reason=reason,
        )  # fmt: skip
        changes.begin(change, state, world.now_s)
        self._transitions.read_results()
        try:
            self._transitions.advance(world, change)
        except Exception:
            changes.drop(world, job_id)

    def sends(self, world: World) -> Iterator[Send]:
        """The messages for the controller; the caller sets `OpenResize.decision`."""
        for change in self.changes:
            if world.now_s < change.again_s or change.job_id not in world:
                continue
            if change.state in (ResizeState.GRANTING, ResizeState.RELEASING):
                change.again_s = world.now_s + UNANSWERED_S
                yield Send(change, world.version(change.job_id), change.target)

    def answered(
        self, decision: int, now_s: int, *, applied: bool, busy: bool = False, text: str = ""
    ) -> bool:
        """Reads the controller's answer; False if it does not belong to a resize.

        Args:
            now_s: Unix seconds.
            applied: it was carried out.
            busy: nodes were not free yet; it is sent again.
            text: why not, for display.
        """
        for change in self.changes:
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

    def _refused_by_controller(self, change: OpenResize, now_s: int, text: str) -> None:
        _log.info("resize of job %s refused: %s", change.job_id, text or "no reason given")
        if change.state == ResizeState.GRANTING:
            self._transitions.fail(change, now_s, f"refused by the controller: {text}")
        else:
            change.again_s = now_s + RESEND_S

    def ask(
        self, job_id: str, user: str, *, uid: str = "", hold: bool | None = None, width: int = 0
    ) -> None:
        """Accepts an order of an operator or a user.

        Args:
            user: the caller, who must be the job's user; empty: an administrator.
            uid: that user's number: without accounting the controller names users by it.
            hold: keep the job's nodes, or stop doing so; None: not requested.
            width: requested number of nodes; 0: not requested.

        Raises:
            ControllerError: the order is impossible.
        """
        job = next((job for job in self.shown if job.job_id == job_id), None)
        if job is None:
            raise ControllerError(f"job {job_id[:80]} is not a malleable running job")
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

    def wake_ms(self) -> int:
        """When to call again, ms: soon after a step, then less often; 0: no job has a launcher."""
        looks = min((change.looks for change in self.changes), default=None)
        if looks is None:
            return LISTEN_MS if any(job.engine for job in self.shown) else 0
        return min(MIN_WAKE_MS << (looks // 8), MAX_WAKE_MS)

    def overlay(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot for planning (rules 3 and 6)."""
        try:
            world = World(snapshot)
            self.shown = shown_jobs(snapshot, world, self._changes, self._launchers, self.held)
            return overlaid(snapshot, world, self._changes, self._launchers, self.shown)
        except Exception:
            _log.exception("the changes under way do not fit the report: dropped")
            self.reset()
            return snapshot
