# SPDX-License-Identifier: Apache-2.0
"""What applications use when they run alone: CPU time, run time, memory.

Terms
    application   jobs of one user whose names differ in trailing digits only, on one number of
                  nodes.

Rules
    1. A job is learnt from if it ends by itself (COMPLETED), was measured within `LATE_S` of its
       end or within the last tenth of its run, and was never a host or a guest.
    2. Means and deviations cover about the last `MEMORY` runs: each new run has a weight of at
       least 1 / `MEMORY`. So old runs are forgotten slowly when an application changes.
    3. Control characters are removed from names, which are cut after `MAX_NAME` characters.
    4. A running job keeps the name under which it was first measured, so that a user cannot discard
       its measurements by renaming it.
    5. The last measurement of each running job is kept; after a restart this begins again.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bridge.extensions.sharing.kept_keys import APART, keep
from bridge.model.job import Ending
from bridge.model.layers import Layers
from bridge.model.learnt import Learning, Learnt
from bridge.model.snapshot import Snapshot

MEMORY: Final = 10
LATE_S: Final = 60
_APPLICATION, _FOLLOWED = "app", "seen"
_MILLI: Final = 1000
_DIGITS: Final = "0123456789"
MAX_NAME: Final = 128
_CONTROL: Final = dict.fromkeys((*range(32), 127), "?")


@dataclass(frozen=True)
class History:
    """What an application uses alone, as means.

    Attributes:
        runs: number of runs observed, at most `MEMORY`.
        cpu_s: CPU time of a run, s.
        run_s: its run time, s.
        peak_mib: the maximum memory on a node, MiB, over all runs.
        deviation_s: standard deviation of the run times, s.
    """

    runs: int
    cpu_s: float
    run_s: float
    peak_mib: int
    deviation_s: float = 0.0

    @property
    def busy_cpus(self) -> float:
        """CPUs in use, a mean over the run."""
        return self.cpu_s / max(self.run_s, 1.0)

    def numbers(self) -> list[int]:
        """Whole numbers for the state of the policy."""
        return [
            self.runs, round(self.cpu_s * _MILLI), round(self.run_s * _MILLI), self.peak_mib,
            round(self.deviation_s * _MILLI),
        ]  # fmt: skip


def application(user: str, name: str, nodes: int) -> str:
    plain = name.rstrip(_DIGITS)[:MAX_NAME].rstrip(_DIGITS).translate(_CONTROL)
    return APART.join((user, plain, str(nodes)))


def is_plain(text: str) -> bool:
    """Whether it has no control characters."""
    return text.translate(_CONTROL) == text


def application_of(app: str) -> tuple[str, str, int]:
    """User, name and number of nodes of an application."""
    user, name, nodes = (*app.split(APART, 2), "", "0")[:3]
    return user, name, int(nodes) if nodes.isdecimal() else 0


def history_key(app: str) -> str:
    return _APPLICATION + APART + app


def histories(known: Mapping[str, list[int]]) -> dict[str, History]:
    start = _APPLICATION + APART
    apps = [key.removeprefix(start) for key in known if key.startswith(start)]
    learnt = Learnt(known=Layers(dict(known)))
    found = ((app, history_of(learnt, app)) for app in apps)
    return {app: history for app, history in found if history is not None}


def applications(snapshot: Snapshot, learning: Learning) -> list[str]:
    """(n_running,) of the running jobs (rule 4)."""
    running = snapshot.running
    widths = (running.indptr[1:] - running.indptr[:-1]).tolist()
    start, first = _FOLLOWED + APART, dict[str, str]()
    for key in learning.running.in_order():
        if key.startswith(start):
            job_id, _, app = key.removeprefix(start).partition(APART)
            first[job_id] = app
    return [
        first.get(job_id) or application(str(user), str(name), width)
        for job_id, user, name, width in zip(
            running.id.tolist(), running.user, running.name, widths, strict=True
        )
    ]


def history_of(learnt: Learnt | Learning, app: str) -> History | None:
    """What is known about an application; None: nothing."""
    numbers = learnt.known.get(history_key(app))
    if numbers is None or len(numbers) != 5 or numbers[0] < 1:
        return None
    runs, cpu_ms, run_ms, peak_mib, deviation_ms = numbers
    return History(runs, cpu_ms / _MILLI, run_ms / _MILLI, peak_mib, deviation_ms / _MILLI)


def follow(snapshot: Snapshot, apps: list[str], learning: Learning) -> None:
    """Learns from ended jobs, and follows running ones (rules 1, 2 and 5)."""
    ended = snapshot.ended
    for row, job_id in enumerate(ended.id.tolist()):
        keys = [key for key in learning.running.in_order() if _is_of(key, job_id)]
        for key in keys:
            numbers = learning.running.pop(key)
            if numbers is not None and ended.ending[row] == Ending.COMPLETED:
                run_s = int(ended.end_s[row] - ended.start_s[row])
                _teach(learning, key.split(APART, 2)[2], numbers, int(ended.end_s[row]), run_s)
    _follow_running(snapshot, apps, learning)


def _is_of(key: str, job_id: str) -> bool:
    return key.startswith(_FOLLOWED + APART + job_id + APART)


def _follow_running(snapshot: Snapshot, apps: list[str], learning: Learning) -> None:
    running = snapshot.running
    hosts = set(running.host_id.tolist())
    here = set()
    own = (~running.releasing).tolist()  # a job's nodes that it gives back are no other run of it
    for row, (job_id, app) in enumerate(zip(running.id.tolist(), apps, strict=True)):
        if not own[row]:
            continue
        key = APART.join((_FOLLOWED, job_id, app))
        here.add(key)
        if running.measured_s[row] <= 0 or running.cpu_s[row] < 0:
            continue
        shared = bool(running.host_id[row]) or job_id in hosts
        before = learning.running.get(key)
        same_run = before is not None and before[0] == int(running.start_s[row])
        numbers = [
            int(running.start_s[row]), int(running.measured_s[row]),
            round(float(running.cpu_s[row]) * _MILLI), int(running.peak_mib[row]),
            int(shared or (same_run and before is not None and bool(before[4]))),
        ]  # fmt: skip
        if numbers != before:
            learning.running[key] = numbers
    for key in learning.running.in_order():
        if key.startswith(_FOLLOWED + APART) and key not in here:
            learning.running.pop(key)


def _teach(learning: Learning, app: str, numbers: list[int], end_s: int, run_s: int) -> None:
    """Learns from a job that ended by itself and was measured late enough (rules 1 and 2)."""
    _, measured_s, cpu_ms, peak_mib, shared = numbers
    if shared or run_s <= 0 or end_s - measured_s > max(LATE_S, run_s / 10):
        return
    before = history_of(learning, app)
    runs = min((before.runs if before else 0) + 1, MEMORY)
    weight = 1 / runs
    cpu_s, mean_s = (before.cpu_s, before.run_s) if before else (0.0, 0.0)
    variance = before.deviation_s**2 if before else 0.0
    variance = (1 - weight) * (variance + weight * (run_s - mean_s) ** 2)
    after = History(
        runs,
        cpu_s * (1 - weight) + cpu_ms / _MILLI * weight,
        mean_s * (1 - weight) + run_s * weight,
        max(peak_mib, before.peak_mib if before else 0),
        math.sqrt(variance),
    )
    keep(learning, history_key(app), after.numbers())
