# SPDX-License-Identifier: Apache-2.0
"""Follows starts from the request until the server shows the job running.

The server's answer to a start says only that it was accepted: if the vnode's mom is dead, the job
is silently queued again; if it is frozen, the job stays in substate 41. Therefore a start counts
when the job is seen running, in substate 42 or a later one.

Rules
    1. From the request on, the tables show the job as running on the vnodes requested, whatever
       the server's answer contains: nothing else is started on them.
    2. A start that was queued again is refused, with the vnodes; the service then tries others.
    3. A job that has left the tables ran and ended meanwhile.
    4. After `DEADLINE_S` in substate 41 its vnodes are shown as down until the start is resolved,
       so that no other job is sent to a mom that does not answer.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bridge.pbs.link.index_ranges import without
from bridge.pbs.tables import Attributes, Objects, Tables, text
from bridge.rpc.pb import scheduler_pb2 as pb

DEADLINE_S = 60.0
GRACE_S = 3.0
"""A job that is still queued shortly after an accepted start may not have been read again yet."""

_PRERUN, _RUNNING = 41, 42


@dataclass(frozen=True)
class Open:
    """A start under way.

    Attributes:
        wire_id: the job as the service knows it: of a task its array.
        requested_s: time of the request, monotonic, s.
    """

    decision_id: int
    wire_id: str
    job_id: str
    exec_vnode: str
    requested_s: float
    run_count: int
    late: bool = False


class OpenStarts:
    """The starts under way."""

    def __init__(self) -> None:
        self._open: dict[str, Open] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._open

    def clear(self) -> None:
        """Forgets them: the server or the service has been restarted."""
        self._open.clear()

    def add(self, start: Open) -> None:
        """Follows a start that the server has accepted."""
        self._open[start.job_id] = start

    def resolve(self, jobs: Objects, now: float) -> list[pb.Fate]:
        """Returns the results that are known now.

        Args:
            now: monotonic, s.
        """
        results = []
        for job_id, start in list(self._open.items()):
            result, why = _result(start, jobs.get(job_id), now)
            if result is None:
                if now - start.requested_s >= DEADLINE_S and not start.late:
                    self._open[job_id] = replace(start, late=True)
                continue
            del self._open[job_id]
            results.append(
                pb.Fate(
                    decision_id=start.decision_id,
                    job_id=start.wire_id,
                    outcome=result,
                    text=why,
                )
            )
        return results

    def late(self) -> list[Open]:
        """Returns those past their deadline."""
        return [start for start in self._open.values() if start.late]

    def overlay(self, tables: Tables) -> Tables:
        """Shows jobs under way as running, and vnodes of late starts as down."""
        if not self._open:
            return tables
        jobs, vnodes = dict(tables.jobs), tables.vnodes
        taken: dict[str, list[int]] = {}
        for start in self._open.values():
            known = jobs.get(start.job_id)
            array = jobs.get(start.wire_id) if start.wire_id != start.job_id else None
            if known is None and array is not None:
                known = _as_task(array, start)
                taken.setdefault(start.wire_id, []).append(_index(start.job_id))
            if known is not None and not _holds(known):
                jobs[start.job_id] = _as_running(known, start, tables.now_s)
        for name, indices in taken.items():
            left = without(text(jobs[name], "array_indices_remaining"), indices)
            jobs[name] = {**jobs[name], "array_indices_remaining": left}
        silent = {vnode for start in self.late() for vnode in vnodes_of(start.exec_vnode)}
        if silent:
            vnodes = {
                name: {**held, "state": f"{text(held, 'state')},down"} if name in silent else held
                for name, held in vnodes.items()
            }
        return replace(tables, jobs=jobs, vnodes=vnodes)


def vnodes_of(exec_vnode: str) -> Iterator[str]:
    """The names in `(n1:ncpus=2)+(n2:ncpus=1+n3:ncpus=1)`."""
    for part in exec_vnode.replace("(", "").replace(")", "").split("+"):
        yield part.partition(":")[0]


def _substate(job: Attributes) -> int:
    word = text(job, "substate")
    return int(word) if word.isdecimal() else 0


def _holds(job: Attributes) -> bool:
    return text(job, "job_state") in {"R", "E", "S", "U"} and bool(text(job, "exec_vnode"))


def _result(start: Open, job: Attributes | None, now: float) -> "tuple[pb.Outcome | None, str]":
    fresh = now - start.requested_s < GRACE_S
    if job is None:
        # A task appears only when it starts; a job that is gone has ended.
        is_task = start.job_id != start.wire_id
        return (None, "") if is_task and fresh else (pb.OUTCOME_APPLIED, "")
    state, substate = text(job, "job_state"), _substate(job)
    if state in {"S", "U", "E", "X", "F"} or (state == "R" and substate >= _RUNNING):
        return pb.OUTCOME_APPLIED, ""
    if state == "R":
        return None, ""
    ran = text(job, "run_count")
    again = ran.isdecimal() and int(ran) > start.run_count
    if fresh and not again:
        return None, ""
    where = ", ".join(dict.fromkeys(vnodes_of(start.exec_vnode)))
    return pb.OUTCOME_REFUSED, f"queued again at once: a mom did not take it ({where})"[:160]


def _index(job_id: str) -> int:
    return int(job_id.partition("[")[2].partition("]")[0])


def _as_task(array: Attributes, start: Open) -> Attributes:
    dropped = ("array", "array_indices_remaining", "array_indices_submitted", "max_run_subjobs")
    task = {name: value for name, value in array.items() if name not in dropped}
    return task | {"array_id": start.wire_id, "array_index": str(_index(start.job_id))}


def _as_running(job: Attributes, start: Open, now_s: int) -> Attributes:
    return job | {
        "job_state": "R",
        "substate": str(_PRERUN),
        "exec_vnode": start.exec_vnode,
        "stime": text(job, "stime") or str(now_s),
    }
