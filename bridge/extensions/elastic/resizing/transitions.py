# SPDX-License-Identifier: Apache-2.0
"""The transitions of one change between its states (`states.py` has the table).

Rules
    1. A change makes all possible transitions at once.
    2. If the job's nodes are not those of the change, the change fails.
    3. An order is sent to each new attachment of a launcher, which knows by its id whether it is
       new.
    4. If the launcher has not answered by the deadline, the order is withdrawn; if it does not
       answer that either, the change fails.
    5. If a launcher attaches again on nodes which are being given back, the job keeps them.
    6. A change found under way after a restart, of the service or of the controller, continues in
       the state that the nodes show.
    7. Nodes of a failed growth are remembered until the job's launcher reports processes there: the
       program has never run on them, so they are given back even if they are lost.
"""

import logging
from collections.abc import Callable

from bridge.extensions.elastic.resizing.changes import OpenResizes
from bridge.extensions.elastic.resizing.journal import ResizeResult
from bridge.extensions.elastic.resizing.launchers import (
    ChangeResult,
    GrowOrder,
    LauncherOrder,
    LauncherReport,
    Launchers,
    ShrinkOrder,
    WithdrawOrder,
)
from bridge.extensions.elastic.resizing.states import OpenResize, ResizeState
from bridge.extensions.elastic.resizing.world import World

_log = logging.getLogger(__name__)


class Transitions:
    """Moves changes from state to state."""

    def __init__(self, launchers: Launchers, changes: OpenResizes) -> None:
        """Reads results from `launchers` and sends them orders; ends changes in `changes`."""
        self._launchers = launchers
        self._changes = changes
        self._results: dict[tuple[str, str, str], ChangeResult] = {}

    def read_results(self) -> None:
        """Reads the messages of launchers."""
        for result in self._launchers.results():
            self._results[result.job_id, result.user, result.id] = result

    def discard_results(self) -> None:
        """Drops results that belong to no change."""
        self._results = {}

    def advance(self, world: World, change: OpenResize) -> None:
        """Makes all transitions that are possible now (rule 1)."""
        for _ in range(len(ResizeState) + 1):
            state, change.version = change.state, world.version(change.job_id)
            held = set(world.nodes(change.job_id))
            keeps = change.before if state == ResizeState.GRANTING else change.target
            fits = set(keeps) <= held <= {*change.before, *change.wanted}
            if not fits or not world.knows(change.target):
                _log.warning("job %s has nodes that were not decided, or lost some", change.job_id)
                self.fail(change, world.now_s)
            elif world.ends(change.job_id):
                self._changes.end(change, ResizeResult.ENDED, world.now_s)
            else:
                self._step(world, change, held)
            if change.job_id not in self._changes.under_way or change.state == state:
                return

    def fail(
        self,
        change: OpenResize,
        now_s: int,
        why: str = "",
        *,
        result: ResizeResult = ResizeResult.FAILED,
    ) -> None:
        """Ends a change without success, and withdraws its order."""
        if change.grows and change.state != ResizeState.GRANTING:
            self._changes.unused[change.job_id] = frozenset(change.wanted).difference(change.before)
        why = why or change.refusal or f"stopped while {change.state}"
        self._changes.fail(change, result, now_s, why)
        if change.state in (ResizeState.ADDING, ResizeState.LEAVING) and not change.withdrawn:
            self._launchers.order(change.job_id, change.user, WithdrawOrder(change.id))

    def recover(self, world: World, job_id: str, new_id: Callable[[str], str]) -> None:
        """Adds the change of a job that is found under way, if there is one (rule 6).

        Args:
            job_id: the job id of a malleable running job that does not rest.
            new_id: gives the change its id, if the launcher names none.
        """
        attached = self._launchers.attached(job_id, world.user(job_id))
        if attached is None or attached.nodes is None or world.ends(job_id):
            return
        held, used = world.nodes(job_id), attached.nodes
        unused = self._changes.unused.get(job_id, frozenset())
        if unused & set(used):
            del self._changes.unused[job_id]
            unused = frozenset()
        state = _state_found(attached, set(held), set(used), head=held[0])
        if state is None:
            return
        before, wanted, target = held, used, used
        if state == ResizeState.ADDING:
            before, wanted, target = used, held, held
        elif state == ResizeState.LEAVING:
            wanted = target = attached.pending_nodes
        elif set(held) - set(used) <= unused:  # rule 7
            before, wanted = used, held
        change = OpenResize(
            id=attached.pending or new_id(job_id), job_id=job_id, user=world.user(job_id),
            state=state, before=before, wanted=wanted, target=target,
            until_s=0, by_s=world.now_s, reason="found under way",
        )  # fmt: skip
        self._changes.under_way[job_id] = change
        self._changes.enter(change, state, world.now_s)
        _log.info("job %s: a change was found under way: %s", job_id, state)

    def _step(self, world: World, change: OpenResize, held: set[str]) -> None:
        now_s = world.now_s
        match change.state:
            case ResizeState.GRANTING:
                if held == set(change.target):
                    self._changes.enter(change, ResizeState.ADDING, now_s)
                elif now_s > change.until_s:
                    self.fail(change, now_s)
            case ResizeState.ADDING | ResizeState.LEAVING:
                self._wait_for_launcher(world, change)
            case ResizeState.VACATING:
                self._vacate(world, change)
            case ResizeState.RELEASING:
                if held == set(change.target):
                    if change.failed:
                        self.fail(change, now_s, result=ResizeResult.WITHDRAWN)
                    else:
                        self._changes.end(change, ResizeResult.COMPLETED, now_s)
                elif self._is_back(change):
                    self.fail(change, now_s, "the job runs on these nodes again")
                elif now_s > change.until_s:
                    _log.warning("the controller does not release nodes of job %s", change.job_id)
                    self.fail(change, now_s)

    def _vacate(self, world: World, change: OpenResize) -> None:
        target = set(change.target)
        leaving = tuple(name for name in world.nodes(change.job_id) if name not in target)
        if self._is_back(change):
            self.fail(change, world.now_s, "the job runs on these nodes again")
        elif self._launchers.vacant(change.job_id, change.user, leaving, unused=change.failed):
            self._changes.enter(change, ResizeState.RELEASING, world.now_s)
        elif world.now_s > change.until_s:
            _log.warning("job %s has processes on nodes that it left", change.job_id)
            self.fail(change, world.now_s)

    def _is_back(self, change: OpenResize) -> bool:
        """Whether a launcher has attached since, on nodes that are being removed (rule 5)."""
        attached = self._launchers.attached(change.job_id, change.user)
        if attached is None or attached.nodes is None:
            return False
        return not set(attached.nodes) <= set(change.target)

    def _wait_for_launcher(self, world: World, change: OpenResize) -> None:
        """ADDING and LEAVING: until the launcher has answered."""
        result = self._take_result(change)
        if result is not None:
            self._finish(world, change, result)
            return
        if world.now_s > change.until_s:
            if change.withdrawn:
                _log.warning("the launcher of job %s does not answer", change.job_id)
                self.fail(change, world.now_s)
                return
            change.withdrawn = True
            change.until_s = world.now_s + self._changes.deadlines.withdraw_s
            self._launchers.order(change.job_id, change.user, WithdrawOrder(change.id))
        attached = self._launchers.attached(change.job_id, change.user)
        if attached is not None and attached.serial != change.serial:
            change.serial = attached.serial
            self._launchers.order(change.job_id, change.user, _order(world, change))
            self.read_results()
            if (result := self._take_result(change)) is not None:
                self._finish(world, change, result)

    def _take_result(self, change: OpenResize) -> ChangeResult | None:
        """The launcher's result of this change, once."""
        return self._results.pop((change.job_id, change.user, change.id), None)

    def _finish(self, world: World, change: OpenResize, result: ChangeResult) -> None:
        """ADDING and LEAVING: the launcher has answered."""
        now_s = world.now_s
        used = set(result.nodes or ())
        if result.done and change.grows:
            self._changes.end(change, ResizeResult.COMPLETED, now_s)
        elif result.done and not used <= set(change.target):
            self.fail(
                change,
                now_s,
                "the launcher reports done, but runs on nodes that were to be removed",
            )
        elif result.done:
            self._changes.enter(change, ResizeState.VACATING, now_s)
        elif change.grows and not used <= set(change.before):
            self.fail(change, now_s, "the launcher refused, but runs on other nodes than before")
        else:
            _log.info("job %s does not change its width: %s", change.job_id, result.reason)
            change.refusal = f"the application says: {result.reason}"
            if change.grows:
                change.target = change.before
                self._changes.enter(change, ResizeState.VACATING, now_s)
            else:
                self.fail(change, now_s, result=ResizeResult.WITHDRAWN)


def _order(world: World, change: OpenResize) -> LauncherOrder:
    if change.withdrawn:
        return WithdrawOrder(change.id)
    within_s = max(change.until_s - world.now_s, 1)
    before, after = set(change.before), set(change.target)
    if change.grows:
        added = tuple(name for name in change.target if name not in before)
        return GrowOrder(change.id, change.target, added, within_s)
    removed = tuple(name for name in change.before if name not in after)
    return ShrinkOrder(change.id, change.target, removed, within_s)


def _state_found(
    attached: LauncherReport, held: set[str], used: set[str], *, head: str
) -> ResizeState | None:
    """The state of a change found under way; None: none is, or it cannot be continued.

    Args:
        attached: the job's launcher.
        held: nodes that the job holds.
        used: those on which its processes run.
        head: the node that it must keep.
    """
    target = set(attached.pending_nodes)
    if head not in used or (target and head not in target):
        return None
    if attached.pending and target == held and used < held:
        return ResizeState.ADDING
    if attached.pending and target < held and used <= held:
        return ResizeState.LEAVING
    return ResizeState.VACATING if used < held else None
