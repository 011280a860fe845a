# SPDX-License-Identifier: Apache-2.0
"""Shares without cgroups: priorities of the job's threads. They are weaker, and reported as such.

Rules
    1. The least weight becomes SCHED_IDLE; another small weight the nearest niceness. A weight that
       is not small changes nothing.
    2. There are no quotas.
    3. New processes inherit the priority. The owner of a process is determined every `SCAN_S`, and
       again right before its priority is changed, because its id may have been reused.
    4. The processes of a job are taken from /proc. Where Slurm makes no cgroups, a process that
       hides its job is not found.
    5. A job that gets its full share back gets niceness 0, whatever it had before.
"""

import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bridge.agent.processes import Processes
from bridge.extensions.sharing.on_nodes.wanted import MIN_WEIGHT, USUAL_WEIGHT, Share, ShareKey

SCAN_S: Final = 2.0
LOWEST: Final = 19
_STEP: Final = 1.25
"""Between two levels of niceness the kernel's weights differ by this factor."""

Priority = tuple[int, int]
"""Policy and niceness."""


def priority_of(weight: int) -> Priority:
    """The priority nearest to a weight (rule 1)."""
    if weight <= MIN_WEIGHT:
        return os.SCHED_IDLE, LOWEST
    nice = round(math.log(USUAL_WEIGHT / weight, _STEP))
    return os.SCHED_OTHER, min(max(nice, 0), LOWEST)


class PriorityMethod:
    """A `bridge.extensions.sharing.on_nodes.method.Method`."""

    name = "priorities"
    is_weaker = True

    def __init__(self, processes: Processes, proc: Path = Path("/proc")) -> None:
        """Takes the processes of this machine."""
        self._processes, self._proc = processes, proc
        self._scanned_s = float("-inf")
        self._found: dict[tuple[str, str], list[int]] = {}

    def offers(self, key: ShareKey) -> bool:
        """Always true: priorities need nothing of the node."""
        return bool(key)

    def processes(self, key: ShareKey) -> Iterator[int]:
        """Processes of a job on a node."""
        if time.monotonic() - self._scanned_s >= SCAN_S:
            self._found = {}
            for pid, where in self._processes.with_jobs():
                self._found.setdefault(where, []).append(pid)
            self._scanned_s = time.monotonic()
        node, job = key
        yield from self._found.get((job, node), ())
        yield from self._found.get((job, ""), ())

    def apply(self, share: Share) -> bool:
        """Sets the priority where it differs."""
        return self._set(share.key, priority_of(share.weight))

    def is_complete(self, key: ShareKey) -> bool:
        """Never: a process that hides its job is not found."""
        return not key

    def restore(self, key: ShareKey) -> bool:
        """Sets the usual priority."""
        self._set(key, (os.SCHED_OTHER, 0))
        return True

    def _set(self, key: ShareKey, priority: Priority) -> bool:
        found, problem = False, None
        for pid in self.processes(key):
            try:
                found |= self._set_process(pid, key, priority)
            except OSError as error:
                problem = error
        if problem is not None:
            raise problem
        return found

    def _set_process(self, pid: int, key: ShareKey, priority: Priority) -> bool:
        """Sets the priority of all threads; whether there are any, and they are the job's."""
        found, sure, problem = False, False, None
        for thread in self._threads(pid):
            try:
                if not _has(thread, priority):
                    sure = sure or self._belongs(pid, key)
                    if not sure:
                        return False
                    _prioritise(thread, priority)
                found = True
            except ProcessLookupError:
                continue
            except OSError as error:
                problem = error
        if problem is not None:
            raise problem
        return found

    def _belongs(self, pid: int, key: ShareKey) -> bool:
        node, job = key
        return self._processes.job_of(pid) in ((job, node), (job, ""))

    def _threads(self, pid: int) -> list[int]:
        try:
            return [int(task.name) for task in (self._proc / str(pid) / "task").iterdir()]
        except OSError:
            return []


def _has(thread: int, priority: Priority) -> bool:
    now = os.sched_getscheduler(thread)
    if now not in (os.SCHED_OTHER, os.SCHED_BATCH, os.SCHED_IDLE):
        return True  # a real-time one stays as it is
    return (now, os.getpriority(os.PRIO_PROCESS, thread)) == priority


def _prioritise(thread: int, priority: Priority) -> None:
    policy, nice = priority
    if os.sched_getscheduler(thread) != policy:
        os.sched_setscheduler(thread, policy, os.sched_param(0))
    if os.getpriority(os.PRIO_PROCESS, thread) != nice:
        os.setpriority(os.PRIO_PROCESS, thread, nice)
