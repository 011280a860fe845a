# SPDX-License-Identifier: Apache-2.0
"""Jobs of a run on a cluster: waits for them, and reads what became of them."""

import re
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

from elastic_bench.steps import instant_s, resizes

from cluster_bench.stand import BenchError, Stand

STARTED = re.compile(
    r"^\[(?P<at>[^\]]+)\] .*?(?:sched: Allocate|_start_job: Started|bridge: start)"
    r" JobId=(?P<job>\d+) (?:in main on |NodeList=)?(?P<rest>.*)$"
)
ENDED = re.compile(r"^\[(?P<at>[^\]]+)\] _job_complete: JobId=(?P<job>\d+) done")
KILLED = re.compile(r"^\[(?P<at>[^\]]+)\] Time limit exhausted for JobId=(?P<job>\d+)")
_POLL_S, _TELL_S = 3.0, 30.0

Job = TypeVar("Job")


@dataclass
class Ran(Generic[Job]):
    """The outcome of a job; seconds since 1970.

    Attributes:
        width: at its start.
        widths: (when, nodes) of its resizes.
        program_s: from the program's first unit to its last.
        windows_s: duration of the program's standstill at each change.
        right: its result is the expected one.
    """

    job: Job
    job_id: str
    submitted_s: float
    start_s: float = 0.0
    end_s: float = 0.0
    width: int = 0
    widths: tuple[tuple[float, int], ...] = ()
    program_s: float = 0.0
    windows_s: tuple[float, ...] = ()
    right: bool = False
    why: str = ""

    def node_s(self) -> float:
        """Node-seconds that it held."""
        at = [(self.start_s, self.width), *self.widths, (self.end_s, 0)]
        return sum((end - begin) * nodes for (begin, nodes), (end, _) in pairwise(at))


def wait_done(stand: Stand, bound_s: float, is_submitting: Callable[[], bool]) -> None:
    """Waits until no job waits or runs; tells how many there are.

    Args:
        stand: the cluster.
        bound_s: maximum; all jobs are cancelled then.
        is_submitting: whether more jobs come; raises BenchError if that failed.

    Raises:
        BenchError: jobs are left.
    """
    begin_s = told_s = time.monotonic()
    while True:
        time.sleep(_POLL_S)
        states = stand.shell("squeue", "-h", "-t", "PD,R,CG,CF", "-o", "%t").split()
        submitting = is_submitting()
        if time.monotonic() - told_s > _TELL_S:
            told_s = time.monotonic()
            stand.say(f"  {states.count('R')} jobs run, {states.count('PD')} wait")
        if not states and not submitting:
            return
        if time.monotonic() - begin_s > bound_s:
            cancel_all(stand)
            raise BenchError(f"not all jobs have ended after {bound_s:.0f} s")


def cancel_all(stand: Stand) -> None:
    """Cancels all jobs."""
    stand.shell("sh", "-c", "squeue -h -o %i | xargs -r scancel", user="root")


def read_log(ran: Iterable[Ran[Job]], log: str) -> None:
    """Starts, widths and ends from slurmctld's log.

    Raises:
        BenchError: it lacks some of them.
    """
    by = {one.job_id: one for one in ran}
    sizes: dict[str, list[tuple[float, int]]] = {}
    for one in resizes(log):
        if one.job in by and one.said.startswith("n"):
            sizes.setdefault(one.job, []).append((one.at_s, one.width))
    for line in log.splitlines():
        for pattern in (STARTED, ENDED, KILLED):
            match = pattern.match(line)
            if match is None or match["job"] not in by:
                continue
            one_ran = by[match["job"]]
            if pattern is STARTED:
                one_ran.start_s = instant_s(match["at"])
                one_ran.width = len(nodes_of(match["rest"]))
                continue
            one_ran.end_s = instant_s(match["at"])
            if pattern is KILLED:
                one_ran.why = "killed at its time limit"
    for job_id, found in sizes.items():
        by[job_id].widths = tuple(found)
    missing = [one.job_id for one in by.values() if not (one.start_s and one.end_s and one.width)]
    if missing:
        raise BenchError(f"the log does not tell all of jobs {', '.join(missing[:5])}")


def nodes_of(text: str) -> list[str]:
    """The nodes of a list in Slurm's words, at the beginning of a text: n3, n[1-4,7], n1,n[3-4]."""
    found = re.search(r"(?:NodeList=| on |^)(n[\w\[\],-]*)", text)
    names = []
    for part in re.findall(r"n(\d+|\[[^\]]+\])", found[1] if found else ""):
        for span in part.strip("[]").split(","):
            low, _, high = span.partition("-")
            names += [f"n{number}" for number in range(int(low), int(high or low) + 1)]
    return names


def outputs(text: str) -> dict[str, str]:
    """Parts of a text by their titles, which are in lines `== TITLE`."""
    parts = (part.partition("\n") for part in re.split(r"^== ", text, flags=re.MULTILINE)[1:])
    return {title: body for title, _, body in parts}


def common_figures(ran: Sequence[Ran[Job]]) -> dict[str, object]:
    """Of a whole run, in the cluster's seconds."""
    first_s, last_s = min(one.submitted_s for one in ran), max(one.end_s for one in ran)
    return {
        "makespan_s": round(last_s - first_s, 2),
        "wait_s": round(statistics.mean(one.start_s - one.submitted_s for one in ran), 3),
        "response_s": round(statistics.mean(one.end_s - one.submitted_s for one in ran), 3),
        "right": sum(one.right for one in ran),
        "count": len(ran),
        "wrong": [f"{one.job_id}: {one.why}" for one in ran if not one.right],
    }


def common_row(one: Ran[Job]) -> dict[str, object]:
    """Of one job."""
    return {
        "wait_s": round(one.start_s - one.submitted_s, 2),
        "ran_s": round(one.end_s - one.start_s, 2),
        "width": one.width, "widths": [width for _, width in one.widths], "right": one.right,
    }  # fmt: skip


def spread(values: Sequence[float]) -> dict[str, float]:
    """Mean, median, 95th percentile, largest; empty of nothing."""
    if not values:
        return {}
    ordered = sorted(values)
    return {
        "mean": round(statistics.mean(ordered), 3),
        "median": round(statistics.median(ordered), 3),
        "p95": round(ordered[min(int(0.95 * len(ordered)), len(ordered) - 1)], 3),
        "most": round(ordered[-1], 3),
    }
