# SPDX-License-Identifier: Apache-2.0
"""The rules that hold immediately before a job runs, as a table, each with one message.

The server checks almost none of these: it runs held jobs, jobs of stopped queues and jobs beyond
every limit. The rules here are about the job; `free_vnodes` and `packing` are about vnodes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bridge.pbs.objects import limits
from bridge.pbs.objects.jobs import PbsJob
from bridge.pbs.objects.limits import Limits, Used
from bridge.pbs.objects.parsed import Parsed
from bridge.pbs.orders import Refusal
from bridge.rpc.pb import scheduler_pb2 as pb


@dataclass(frozen=True)
class RuleInput:
    """The input of a rule.

    Attributes:
        used: what is used of the server ("") and each queue, with what was admitted since the
            tables were read.
        running: array to running tasks, likewise.
        wall_s: the time limit with which it would start; 0: its own.
    """

    parsed: Parsed
    job: PbsJob
    used: Mapping[str, Used]
    running: Mapping[str, int]
    wall_s: int = 0

    @property
    def bounds(self) -> list[tuple[Limits, Used]]:
        """The limits that the job counts against, with what is used."""
        found = [(self.parsed.limits, self.used.get("", {}))]
        if self.job.queue in self.parsed.queues:
            queue = self.parsed.queues[self.job.queue]
            found.append((queue.limits, self.used.get(self.job.queue, {})))
        return found


Rule = Callable[[RuleInput], str]
"""Returns why the job may not run; empty: it may."""


def _waits(at: RuleInput) -> str:
    return "" if at.job.state in ("Q", "B") else f"the job is in state {at.job.state or 'unknown'}"


def _is_understood(at: RuleInput) -> str:
    return at.job.problem


def _not_held(at: RuleInput) -> str:
    if not at.job.holds:
        return ""
    if at.job.depend and at.job.holds == "s":
        return f"the job waits for {at.job.depend}"
    return f"the job has a hold of type {at.job.holds}"


def _has_begun(at: RuleInput) -> str:
    if at.job.begin_s <= at.parsed.tables.now_s:
        return ""
    return "the time requested with -a has not come"


def _queue_starts(at: RuleInput) -> str:
    queue = at.parsed.queues.get(at.job.queue)
    if queue is None:
        return f"there is no queue {at.job.queue}"
    return queue.problem


def _reservation_is_active(at: RuleInput) -> str:
    reservation = at.parsed.by_queue.get(at.job.queue)
    if reservation is None or (
        reservation.start_s <= at.parsed.tables.now_s < reservation.end_s and reservation.held
    ):
        return ""
    return f"reservation {reservation.name} is not active"


def _time_allows(at: RuleInput) -> str:
    limit_s = at.wall_s or at.job.min_walltime_s or at.job.walltime_s
    return at.parsed.files.calendar.closed(at.job.queue, at.parsed.tables.now_s, limit_s)


def _below_limits(at: RuleInput) -> str:
    return limits.exceeded(at.bounds, at.job.owner, at.job.total, at.parsed.definitions)


def _pools_match(at: RuleInput) -> str:
    return limits.mismatch((place for place, _ in at.bounds), at.job.words)


def _array_may_run_more(at: RuleInput) -> str:
    maximum, running = at.job.max_tasks, at.running.get(at.job.id, 0)
    if at.job.is_array and maximum and running >= maximum:
        return f"{running} tasks of the array run, its max_run_subjobs is {maximum}"
    return ""


RULES: tuple[tuple[str, Rule, "pb.Outcome"], ...] = (
    ("state", _waits, pb.OUTCOME_STALE),
    ("understood", _is_understood, pb.OUTCOME_REFUSED),
    ("hold", _not_held, pb.OUTCOME_STALE),
    ("begin time", _has_begun, pb.OUTCOME_STALE),
    ("queue", _queue_starts, pb.OUTCOME_REFUSED),
    ("reservation", _reservation_is_active, pb.OUTCOME_BUSY),
    ("time of day", _time_allows, pb.OUTCOME_BUSY),
    ("limits", _below_limits, pb.OUTCOME_LIMITED),
    ("resources of server and queue", _pools_match, pb.OUTCOME_LIMITED),
    ("array", _array_may_run_more, pb.OUTCOME_LIMITED),
)
"""Name, rule, and the outcome that is reported if it does not hold."""

REQUIRED_TO_RUN_NOW = frozenset(("state", "understood"))
"""The rules that hold even if an operator runs a job now (`qrun`)."""


def first_refusal(at: RuleInput, only: frozenset[str] = frozenset()) -> Refusal | None:
    """Returns the first rule that does not hold, as a refusal.

    Args:
        at: the job, now.
        only: names of the rules that count; empty: all.
    """
    for name, rule, result in RULES:
        if only and name not in only:
            continue
        if why := rule(at):
            return Refusal(result, 0, why)
    return None
