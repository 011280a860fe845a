# SPDX-License-Identifier: Apache-2.0
"""The paper's stream of jobs, and the resulting windows.

Terms
    window    the idle nodes at the end of a period, and the jobs of two nodes or more that are to
              start there together.
    driver    the placer whose placements determine the running jobs of the next window.

Rules, those of the paper's section VI-A, and of its public code where the paper is silent
    1. Jobs arrive 5 to 30 s apart (the code), run for 10 to 1,800 s, and request 1 to 40 nodes; all
       uniform in whole numbers. Their time limits are their run times.
    2. All 1,000 nodes are idle when an epoch begins. At the end of each period ended jobs leave and
       the jobs of the period join the queue; if there were neither, nothing happens.
    3. More waiting periods first, then fewer nodes. The first that does not fit ends the window,
       and so does the sixth of two nodes or more (the code).
    4. Jobs of one node get the first idle nodes when the window is placed. A single job that
       requests all idle nodes is not a window.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.lab.sim.workloads.workload import Workload
from bridge.model.hop_tree import NodeSets

NODES = 1000
PERIOD_S = 60
MAX_JOBS = 5
RUN_S = (10, 1800)
WIDTH = (1, 40)
APART_S = (5, 30)


@dataclass(frozen=True)
class Stream:
    """Jobs as columns, by submission."""

    submit_s: NDArray[np.int64]
    run_s: NDArray[np.int64]
    nodes: NDArray[np.int64]


def draw(rng: np.random.Generator, n_jobs: int) -> Stream:
    """Draws jobs (rule 1)."""

    def uniform(bounds: tuple[int, int]) -> NDArray[np.int64]:
        return rng.integers(*bounds, n_jobs, endpoint=True)

    return Stream(np.cumsum(uniform(APART_S)), uniform(RUN_S), uniform(WIDTH))


def workload(stream: Stream) -> Workload:
    """The stream as a trace."""
    n = len(stream.submit_s)
    unknown = np.full(n, -1, dtype=np.int64)
    return Workload(
        name="the paper's stream",
        processors_total=NODES,
        id=np.array([str(job + 1) for job in range(n)], dtype=object),
        submit_s=stream.submit_s,
        runtime_s=stream.run_s,
        time_limit_s=stream.run_s,
        processors=stream.nodes,
        memory_kib=np.zeros(n, dtype=np.int64),
        user=unknown,
        group=unknown,
        executable=unknown,
        queue=unknown,
        row=np.arange(n),
        left_out={},
    )


@dataclass(frozen=True)
class Window:
    """One instance of the placement problem."""

    idle: NDArray[np.int32]
    sizes: NDArray[np.int32]


Drive = Callable[[Window], NodeSets]


@dataclass
class _Waiting:
    run_s: int
    nodes: int
    periods: int = 0


def windows(stream: Stream, drive: Drive, count: int) -> Iterator[Window]:
    """Runs an epoch until a number of windows have been placed.

    Args:
        stream: more jobs than the windows take.
        drive: places each window.
        count: of windows.
    """
    idle = np.ones(NODES, dtype=bool)
    ends: list[tuple[int, int, NDArray[np.int32]]] = []
    queue: list[_Waiting] = []
    now_s, joined, started = int(stream.submit_s[0]), 0, 0

    def start(job: _Waiting, nodes: NDArray[np.int32]) -> None:
        nonlocal started
        started += 1
        idle[nodes] = False
        heapq.heappush(ends, (now_s + job.run_s, started, nodes))

    while count:
        now_s += PERIOD_S
        news = False
        while ends and ends[0][0] <= now_s:
            idle[heapq.heappop(ends)[2]] = news = True
        first, joined = joined, int(np.searchsorted(stream.submit_s, now_s))
        assert joined < len(stream.submit_s), "the stream is too short"
        queue += [
            _Waiting(int(stream.run_s[job]), int(stream.nodes[job])) for job in range(first, joined)
        ]
        if not queue or not (news or joined > first):
            continue
        jobs, queue = _select(queue, int(idle.sum()))
        wide = [job for job in jobs if job.nodes > 1]
        if wide and not (len(jobs) == 1 and wide[0].nodes == idle.sum()):
            sizes = np.array([job.nodes for job in wide], dtype=np.int32)
            window = Window(np.flatnonzero(idle).astype(np.int32), sizes)
            yield window
            count -= 1
            indptr, nodes = drive(window)
            assert np.array_equal(np.diff(indptr), sizes), "the driver places all"
            for job, a, b in zip(wide, indptr[:-1], indptr[1:], strict=True):
                start(job, nodes[a:b])
            jobs = [job for job in jobs if job.nodes == 1]
        for job in jobs:
            start(job, np.flatnonzero(idle)[: job.nodes].astype(np.int32))


def _select(queue: list[_Waiting], room: int) -> tuple[list[_Waiting], list[_Waiting]]:
    """Splits the queue into the window's jobs and those that wait for another period (rule 3)."""
    queue = sorted(queue, key=lambda job: (-job.periods, job.nodes))
    wide = end = 0
    while end < len(queue):
        nodes = queue[end].nodes
        if nodes > room or (nodes > 1 and wide == MAX_JOBS):
            break
        room -= nodes
        wide += nodes > 1
        end += 1
    for job in queue[end:]:
        job.periods += 1
    return queue[:end], queue[end:]
