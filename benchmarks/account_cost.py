#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time that the account of waits of `search` adds to a cycle, by the number of waiting jobs.

    benchmarks/account_cost.py [--jobs N ...] [--cycles N] [--out FILE.json]
    benchmarks/account_cost.py --show FILE.json

`bridge.planning.dispatch.account` as `search` calls it (`class_factor`, `longest_factor`), with a
queue of constant length: each cycle a job is submitted, the oldest one starts, and one that
started `RUNNING` cycles before ends. EASY is simulated again in every fifth cycle; with more
waiting jobs than the account may hold, once a minute. A cycle is a second. The first cycles, which
fill the account, are not counted. The table shows the median and the mean of all cycles, and the
largest; what follows the account in a cycle, the search itself, is not in them.
"""

import argparse
import json
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from about import about
from results_file import write

from bridge.model.learnt import Learnt
from bridge.planning.dispatch.account import MAX_KNOWN, Account

PROCESSORS = 1024
RUNNING = 200
"""Jobs that run at a time."""
WARM_UP = 10
LIMITS_S = (600, 3_600, 14_400, 43_200, 86_400)
WIDTHS = (1, 1, 2, 8, 64, 300)


class Queue:
    """The jobs that wait, run and end, by number; what `search` would tell the account."""

    def __init__(self, waiting: int, seed: int) -> None:
        rng, most = np.random.default_rng(seed), waiting + 10_000
        self.length_s = rng.choice(LIMITS_S, most).astype(np.int64)
        self.width = rng.choice(WIDTHS, most).astype(np.int64)
        self.submit_s = np.arange(most, dtype=np.int64)
        self._first, self._next, self.now_s = 0, waiting, waiting
        self._running: deque[tuple[int, int]] = deque()
        self._ended: list[tuple[str, int, int]] = []

    def step(self) -> None:
        """The next second."""
        self.now_s += 1
        self._running.append((self._first, self.now_s))
        self._first, self._next, self._ended = self._first + 1, self._next + 1, []
        if len(self._running) > RUNNING:
            job, start_s = self._running.popleft()
            self._ended = [(str(job), start_s, self.now_s)]

    def cycle(self, before: Learnt) -> tuple[Learnt, float]:
        """The account after a cycle, and its CPU time, ms."""
        rows = slice(self._first, self._next)
        ids = [str(job) for job in range(self._first, self._next)]
        starts = {str(job): start_s for job, start_s in self._running}
        size: dict[str, Any] = {"total": PROCESSORS, "nodes": PROCESSORS}
        columns = self.length_s[rows], self.width[rows]
        began = time.process_time()
        account = Account(before)
        account.running = lambda: starts
        if self._ended:
            account.end(*zip(*self._ended, strict=True))
        account.arrive(ids, self.submit_s[rows], *columns, **size)
        account.settle(self.now_s, PROCESSORS, 0.9, ids)
        account.weights(*columns, **size)
        after = account.done()
        return after, (time.process_time() - began) * 1e3


def measured(waiting: int, cycles: int) -> dict[str, Any]:
    """One row."""
    queue, learnt, took_ms = Queue(waiting, 1), Learnt(), []
    for at in range(WARM_UP + cycles):
        learnt, one_ms = queue.cycle(learnt)
        if at >= WARM_UP:
            took_ms.append(one_ms)
        queue.step()
    return {
        "waiting": waiting,
        "full": waiting > MAX_KNOWN,
        "cycles": cycles,
        "median_ms": round(float(np.median(took_ms)), 2),
        "mean_ms": round(float(np.mean(took_ms)), 2),
        "most_ms": round(max(took_ms), 2),
    }


def lines(found: Mapping[str, Any]) -> Sequence[str]:
    """A table as lines of Markdown."""
    return [
        "| waiting jobs | median, ms | mean, ms | largest, ms |",
        "|---:|---:|---:|---:|",
        *(
            f"| {row['waiting']:,} | {row['median_ms']:.1f} | {row['mean_ms']:.1f}"
            f" | {row['most_ms']:.1f} |"
            for row in found["rows"]
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, nargs="+", default=[100, 1_000, 3_000, 10_000])
    parser.add_argument("--cycles", type=int, default=60)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--show", type=Path, help="print the table of a results file")
    given = parser.parse_args()
    if given.show is not None:
        print("\n".join(lines(json.loads(given.show.read_text()))))
        return
    found = {"rows": [measured(jobs, given.cycles) for jobs in given.jobs]}
    found = {**about(), **found}
    print("\n".join(lines(found)))
    if given.out:
        write(given.out, found)


if __name__ == "__main__":
    main()
