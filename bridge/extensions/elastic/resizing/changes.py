# SPDX-License-Identifier: Apache-2.0
"""The changes under way, and a record of those that ended.

A log line is written for each state that a change enters. `benchmarks/elastic_bench/steps.py` reads
them to find out where a slow change spends its time.
"""

import logging

from bridge.extensions.elastic.resizing.journal import Journal, ResizeResult
from bridge.extensions.elastic.resizing.resize_times import ResizeTimes
from bridge.extensions.elastic.resizing.states import Deadlines, OpenResize, ResizeState
from bridge.extensions.elastic.resizing.world import World

_log = logging.getLogger(__name__)


class OpenResizes:
    """All changes of one controller's jobs.

    Attributes:
        under_way: by job id.
        resting: jobs that keep their nodes because a change failed: version, and since when.
        unused: nodes of a failed growth on which the program has never run, by job id.
        reasons: why a job's last change failed, by job id.
        resize_times: when widths have changed, for limits on resizes.
    """

    def __init__(self, deadlines: Deadlines) -> None:
        """Starts without changes."""
        self.deadlines = deadlines
        self.under_way: dict[str, OpenResize] = {}
        self.resting: dict[str, tuple[int, int]] = {}
        self.unused: dict[str, frozenset[str]] = {}
        self.reasons: dict[str, str] = {}
        self.journal = Journal()
        self.resize_times = ResizeTimes()

    def clear(self) -> None:
        """Forgets the changes under way, and which jobs rest."""
        self.under_way.clear()
        self.resting.clear()

    def begin(self, change: OpenResize, state: ResizeState, now_s: int) -> None:
        """Adds a decided change."""
        self.under_way[change.job_id] = change
        self.journal.begun(change, now_s)
        self.resize_times.begun(change.job_id, change.user, now_s)
        self.enter(change, state, now_s)

    def enter(self, change: OpenResize, state: ResizeState, now_s: int) -> None:
        """Puts a change into a state."""
        from_s = (
            now_s if state in (ResizeState.ADDING, ResizeState.LEAVING) else max(now_s, change.by_s)
        )
        change.state, change.until_s = state, from_s + self.deadlines.of(state)
        change.withdrawn, change.serial, change.decision, change.again_s = False, -1, 0, 0
        change.looks = 0
        _log_state(change, state)

    def end(self, change: OpenResize, result: ResizeResult, now_s: int) -> None:
        """Removes a change that is completed, or whose job has ended."""
        _log_state(change, "over")
        self.journal.over(change, result, now_s)
        self.under_way.pop(change.job_id, None)
        self.reasons.pop(change.job_id, None)

    def fail(self, change: OpenResize, result: ResizeResult, now_s: int, why: str) -> None:
        """Removes a change that failed; the job rests."""
        _log_state(change, f"failed: {why}")
        self.journal.over(change, result, now_s, why)
        self.under_way.pop(change.job_id, None)
        self.reasons[change.job_id] = why
        self.resting[change.job_id] = (change.version, now_s)

    def drop(self, world: World, job_id: str) -> None:
        """Drops a change whose handling raised an exception; the job rests."""
        _log.exception("the resize of job %s does not fit the report: dropped", job_id)
        if (change := self.under_way.pop(job_id, None)) is not None:
            self.journal.over(
                change, ResizeResult.FAILED, world.now_s, "it does not fit the report"
            )
        self.resting[job_id] = (world.version(job_id), world.now_s)

    def set_clock_back(self, by_s: int) -> None:
        """Shifts all times after the controller's clock was set back by `by_s`."""
        for change in self.under_way.values():
            change.until_s -= by_s
            change.by_s -= by_s
            change.again_s -= by_s
        self.resize_times.set_back(by_s)

    def prune(self, world: World) -> None:
        """Forgets ended jobs, and old records."""
        for job_id, (version, since_s) in list(self.resting.items()):
            rests = 0 <= world.now_s - since_s < self.deadlines.rest_s
            if not rests or job_id not in world or version != world.version(job_id):
                del self.resting[job_id]
        self.resize_times.keep(world.malleable(), world.now_s)
        self.reasons = {job: why for job, why in self.reasons.items() if job in world}
        self.unused = {job: nodes for job, nodes in self.unused.items() if job in world}
        self.journal.keep(set(world), {change.id for change in self.under_way.values()})


def _log_state(change: OpenResize, state: str) -> None:
    before, after = len(change.before), len(change.wanted)
    _log.info("job %s, %d to %d nodes: %s", change.job_id, before, after, state)
