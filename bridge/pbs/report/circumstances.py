# SPDX-License-Identifier: Apache-2.0
"""What waiting jobs are judged by, besides themselves: if it is as before, so are the judgements.

Rules
    1. Use counts where a limit is on it; otherwise any start or end would change it.
    2. Jobs that depend on the clock are always judged again: those that begin later, those in
       queues of reservations, and all of them while prime time or dedicated time is in force.
       Arrays are, too: how many of their tasks may start changes with the tasks that run.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bridge.pbs.objects.jobs import PbsJob
from bridge.pbs.objects.limits import Limits, Used
from bridge.pbs.objects.parsed import Parsed
from bridge.pbs.objects.sched_files import SchedFiles
from bridge.pbs.report.priorities import Priorities
from bridge.pbs.report.shared_vnodes import SharedVnodes


@dataclass(frozen=True)
class Circumstances:
    """What the judgement of a waiting job depends on.

    Attributes:
        used: what is used of the server and each queue, what limits are on.
        by_clock: the clock matters to any job.
        beyond: jobs that may not start because of reservations.
    """

    limits: Limits
    queues: Mapping[str, object]
    used: Mapping[str, Used]
    files: SchedFiles
    order: object
    beyond: Mapping[str, str]
    by_clock: bool


def is_judged_by_them(job: PbsJob) -> bool:
    """Tells whether a job depends on nothing else (rule 2)."""
    return not (job.is_array or job.begin_s or job.has_vnodes)


def circumstances(parsed: Parsed, priorities: Priorities, shared: SharedVnodes) -> Circumstances:
    calendar, now_s = parsed.files.calendar, parsed.tables.now_s
    return Circumstances(
        parsed.limits,
        {
            name: (queue.starts, queue.problem, queue.priority, queue.limits, queue.own_vnodes)
            for name, queue in parsed.queues.items()
        },
        {
            place: _limited(parsed.used.get(place, {}), limits)
            for place, limits in [
                ("", parsed.limits), *((name, q.limits) for name, q in parsed.queues.items()),
            ]
        },
        parsed.files,
        priorities.depend_on,
        shared.held,
        bool(parsed.by_queue) or calendar.holidays.in_force or calendar.span(now_s) is not None,
    )  # fmt: skip


def _limited(used: Used, limits: Limits) -> Used:
    resources = limits.hard.keys() | limits.soft.keys()
    return {key: value for key, value in used.items() if key[1] in resources} if resources else {}
