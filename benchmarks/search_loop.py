# SPDX-License-Identifier: Apache-2.0
"""The plan stage `search` in closed loop on a whole trace, quickly: its kernel without the cycle.

    python benchmarks/search_loop.py KTH-SP2-1996-2.1-cln.swf.gz --set ageing_s=14400 \
        --set ageing_s=none,most_wait_s=none

On a pool of identical processors the decisions are those of `schedbridge simulate --policy search
--engine cycle` but for the seeds; without snapshots, checks and reasons a replay takes a tenth of
the time. For choosing parameters. Prints for each setting: waits, bounded slowdowns, what large and
long jobs pay, the time of the kernel, how often the search ended how, and how often what starts now
is another set than under the given order, and than without changes at random.
"""

import argparse
import heapq
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from bridge.core import UNLIMITED, Stopped, replay_counts, search_orders
from bridge.measures import Measures, Schedule, measure, wait_s
from bridge.policies.plan.search import LENGTHS, PATIENCE, PLAIN, SHARES, WEIGHT, Search
from bridge.sim.swf import read_swf
from bridge.sim.workload import Workload, workload_from
from bridge.units import BOUND_S, NEVER


class Pool:
    """Who holds which processors; the queue in order of submission."""

    def __init__(self, workload: Workload) -> None:
        self.size = workload.processors_total
        self.workload = workload
        self.free = list(range(self.size))
        self.held: dict[int, list[int]] = {}
        self.start_s = np.full(len(workload), NEVER, dtype=np.int64)
        words = -(-self.size // 64)
        self._class = np.zeros((1, words), dtype=np.uint64)
        for node in range(self.size):
            self._class[0, node // 64] |= np.uint64(1) << np.uint64(node % 64)

    def start(self, job: int, now_s: int) -> None:
        """Gives a job the first free processors."""
        width = int(self.workload.processors[job])
        self.held[job], self.free = self.free[:width], self.free[width:]
        self.start_s[job] = now_s

    def columns(self, jobs: np.ndarray, now_s: int) -> dict[str, Any]:
        """The arguments of `plan_nodes` for these jobs."""
        n, running = len(jobs), list(self.held)
        widths = [len(self.held[job]) for job in running]
        none = np.zeros((n, 1), dtype=np.int64)
        width = self.workload.processors[jobs].astype(np.int32)
        return {
            "now": now_s, "depth": UNLIMITED, "select": 0,
            "capacity": np.ones((self.size, 1), dtype=np.int64),
            "node_rank": np.zeros(self.size, dtype=np.int32),
            "run_indptr": np.concatenate(([0], np.cumsum(widths))).astype(np.int64),
            "run_nodes": np.array([x for j in running for x in self.held[j]], dtype=np.int32),
            "run_use": np.ones((sum(widths), 1), dtype=np.int64),
            "run_end": self.start_s[running] + self.workload.time_limit_s[running],
            "run_exclusive": np.ones(len(running), dtype=bool),
            "run_counter": np.zeros((len(running), 0), dtype=np.int64),
            "class_nodes": self._class,
            "blackout_class": np.zeros(0, dtype=np.int32),
            "blackout_start": np.zeros(0, dtype=np.int64),
            "blackout_end": np.zeros(0, dtype=np.int64),
            "blackout_nodes": np.zeros((0, self._class.shape[1]), dtype=np.uint64),
            "counter_capacity": np.zeros(0, dtype=np.int64),
            "job_counter": np.zeros((n, 0), dtype=np.int64),
            "alt_indptr": np.arange(n + 1, dtype=np.int64),
            "alt_class": np.zeros(n, dtype=np.int32),
            "alt_time_limit_s": self.workload.time_limit_s[jobs],
            "alt_min_nodes": width, "alt_max_nodes": width,
            "per_node": none, "per_task": none,
            "tasks": np.zeros(n, dtype=np.int32),
            "max_tasks_per_node": np.zeros(n, dtype=np.int32),
            "exclusive": np.ones(n, dtype=bool),
            "not_before": np.zeros(n, dtype=np.int64),
            "width_rule": np.zeros(n, dtype=np.int8),
            "required": np.full(n, -1, dtype=np.int32),
            "required_nodes": np.zeros((0, self._class.shape[1]), dtype=np.uint64),
        }  # fmt: skip


def decide(
    pool: Pool, queue: np.ndarray, now_s: int, search: Search, *, patience: int, salt: int
) -> list[Any]:
    """What the search finds; what it does without changes at random; what the given order does."""
    work = pool.workload
    submit_s = work.submit_s[queue]
    late = np.zeros(len(queue), dtype=bool)
    if search.most_wait_s is not None:
        late = now_s - submit_s >= search.most_wait_s
    queue = np.concatenate((queue[late], queue[~late]))
    lead, submit_s, length_s = int(late.sum()), work.submit_s[queue], work.time_limit_s[queue]
    relative = search.objective in ("slowdown", "bounded-slowdown")
    bound_s = BOUND_S if search.objective == "bounded-slowdown" else 1
    weight = 1.0 / np.maximum(length_s, bound_s) if relative else np.ones(len(queue))
    if search.ageing_s is not None:
        aged = (now_s - submit_s) / search.ageing_s
        weight = weight + aged / (search.ageing_s if relative else 1)
    whole = np.rint(weight * (WEIGHT / weight.max())).astype(np.int64)
    due_s = submit_s + (np.maximum(bound_s - length_s, 0) if bound_s > 1 else 0)
    size, length = np.log(work.processors[queue] / pool.size), np.log(length_s)
    keys = [np.zeros(len(queue)), -(now_s - submit_s) / length_s]
    keys += [a * size + b * length for a, b in PLAIN]
    logs = np.log(np.maximum(whole, 1))
    keys += [a * size + b * length - logs for a in SHARES for b in LENGTHS]
    table = np.array(keys)
    table[:, :lead] = -np.inf
    orders = np.argsort(table, axis=1, kind="stable").astype(np.int32)
    columns = pool.columns(queue, now_s)

    def ask(orders: np.ndarray, patience: int, effort: int) -> Any:
        return search_orders(
            columns,
            unit_indptr=np.arange(len(queue) + 1, dtype=np.int64),
            weight=whole, due=np.maximum(due_s, now_s), orders=orders, lead=lead,
            effort=effort, budget_us=search.budget_ms * 1000, patience=patience,
            seed=now_s + salt,
        )  # fmt: skip

    began = time.perf_counter()
    found = ask(orders, patience, search.effort)
    took_ms = (time.perf_counter() - began) * 1e3
    family, given = ask(orders, 0, search.effort), ask(orders[:1], 0, 1)
    others = [set(queue[one.start == now_s].tolist()) for one in (family, given)]
    return [queue[found.start == now_s], found, took_ms, *others]


def run(workload: Workload, search: Search, *, patience: int, salt: int) -> dict[str, Any]:
    """Replays a workload under one setting."""
    pool, waiting, ends = Pool(workload), np.zeros(0, dtype=np.int64), []
    submitted = decisions = by_search = by_family = 0
    times, gaps, stopped = [], [], dict.fromkeys((s.name for s in Stopped), 0)
    while submitted < len(workload) or ends:
        arrival_s = int(workload.submit_s[submitted]) if submitted < len(workload) else NEVER
        now_s = min(ends[0][0] if ends else NEVER, arrival_s)
        while ends and ends[0][0] <= now_s:
            pool.free += pool.held.pop(heapq.heappop(ends)[1])
        last = int(np.searchsorted(workload.submit_s, now_s, side="right"))
        waiting = np.concatenate((waiting, np.arange(submitted, max(last, submitted))))
        submitted = max(last, submitted)
        decisions += len(waiting) > 0
        if not len(waiting) or workload.processors[waiting].min() > len(pool.free):
            continue  # nothing can start, in whatever order
        now, found, took_ms, family, given = decide(
            pool, waiting, now_s, search, patience=patience, salt=salt
        )
        times.append(took_ms)
        stopped[found.stopped.name] += 1
        gaps.append((found.cost - found.bound) / found.cost if found.cost else 0.0)
        by_search += set(now.tolist()) != family
        by_family += set(now.tolist()) != given
        for job in now.tolist():
            pool.start(job, now_s)
            heapq.heappush(ends, (now_s + int(workload.runtime_s[job]), job))
        waiting = waiting[~np.isin(waiting, now)]
    return figures(workload, pool.start_s, np.array(times)) | {
        "decisions": decisions,
        "in which something may start": len(times),
        "starts now other than under the given order": by_family,
        "starts now other than without changes at random": by_search,
        "ended": stopped,
        "mean gap": round(float(np.mean(gaps)), 4),
    }


def figures(workload: Workload, start_s: np.ndarray, times: np.ndarray) -> dict[str, Any]:
    """Waits, slowdowns, and what large and long jobs pay."""
    end_s = start_s + workload.runtime_s
    schedule = Schedule(
        workload.processors_total, workload.submit_s, start_s, end_s, workload.processors
    )
    found: Measures = measure(schedule, times)
    hours = wait_s(schedule) / 3600
    long = workload.runtime_s >= np.percentile(workload.runtime_s, 90)
    wide = workload.processors > workload.processors_total / 2

    def tail(which: np.ndarray) -> list[float]:
        values = hours[which] if which.any() else np.zeros(1)
        return [round(float(x), 1) for x in (values.mean(), *np.percentile(values, (90, 99)))]

    return {
        "wait_s": round(found.wait_s.mean),
        "wait_h p99, max": [round(found.wait_s.p99 / 3600, 1), round(found.wait_s.max / 3600, 1)],
        "bounded slowdown mean, p90": [
            round(found.bounded_slowdown.mean, 1),
            round(found.bounded_slowdown.p90, 1),
        ],
        "by size, wait_s and bounded slowdown": [
            [one.name, one.jobs, round(one.wait_s_mean), round(one.bounded_slowdown_mean, 1)]
            for one in found.by_size
        ],
        "wait_h of jobs over half the machine, mean, p90, p99": tail(wide),
        "wait_h of the longest tenth, mean, p90, p99": tail(long),
        "kernel ms mean, p99, max": [
            round(float(x), 2) for x in (times.mean(), np.percentile(times, 99), times.max())
        ],
    }


def _setting(text: str) -> dict[str, Any]:
    pairs = [part.split("=") for part in text.split(",") if part]
    read = {"none": None}
    return {key: read.get(value, int(value) if value.isdigit() else value) for key, value in pairs}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("trace", type=Path)
    parser.add_argument("--jobs", type=int, help="only the first N")
    parser.add_argument("--set", action="append", default=[], help="parameters of search: a=1,b=2")
    parser.add_argument("--patience", type=int, default=PATIENCE, help="0: no random changes")
    parser.add_argument("--salt", type=int, default=0, help="another number, other chance")
    given = parser.parse_args()
    workload = workload_from(read_swf(given.trace))
    workload = workload if given.jobs is None else workload.first(given.jobs)
    columns = (
        workload.submit_s, workload.runtime_s, workload.time_limit_s, workload.processors,
        workload.processors_total,
    )  # fmt: skip
    for name, depth, order in (
        ("easy", 1, None),
        ("conservative", UNLIMITED, None),
        ("shortest-first", UNLIMITED, workload.time_limit_s),
    ):
        found = replay_counts(*columns, depth, order)
        print(json.dumps({name: figures(workload, found.start, found.decision_ns / 1e6)}))
    for text in given.set or [""]:
        settings = {"budget_ms": 0, "effort": 20_000} | _setting(text)
        found = run(workload, Search(**settings), patience=given.patience, salt=given.salt)
        print(json.dumps({"search": settings} | found), flush=True)


if __name__ == "__main__":
    main()
