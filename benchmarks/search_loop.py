# SPDX-License-Identifier: Apache-2.0
"""A fast replay of a whole trace by the plan stage `search`: its kernel without the cycle.

    python benchmarks/search_loop.py KTH-SP2-1996-2.1-cln.swf.gz --set ageing_s=14400 \
        --set ageing_s=none,most_wait_s=none
    python benchmarks/search_loop.py SDSC-SP2-1998-4.2-cln.swf.gz --predict last-two

For choosing parameters. On a pool of identical processors the decisions are those of `schedbridge
simulate --policy search --engine cycle`, except for the seeds; without snapshots, checks and
reasons a replay takes a tenth of the time. Prints for each setting and predictor: waits, bounded
slowdowns, also of large and of long jobs, the CPU time of the kernel, and how the searches ended;
with `--compare` how often other jobs start now than under the given order, and than without random
changes.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from about import about

from bridge.core import (
    UNLIMITED,
    NodeProblem,
    OrderFound,
    Stopped,
    plan_counts,
    replay_counts,
    search_orders,
)
from bridge.lab.sim.runs.counted import Counted, Running
from bridge.lab.sim.workloads.swf import read_swf
from bridge.lab.sim.workloads.system import pool_of
from bridge.lab.sim.workloads.workload import Workload, workload_from
from bridge.measures import ExecutedSchedule, Measures, measure, wait_s
from bridge.model.policy import PolicySpec
from bridge.policies.plan.search import LENGTHS, PATIENCE, PLAIN, SHARES, WEIGHT, Search
from bridge.registry import parse_policy
from bridge.units import BOUND_S, NEVER, STEPS_PER_MS


class Searched(Counted):
    """A pool under `search`; rules and terms are those of `bridge.policies.plan.search`.

    Attributes:
        patience: of the search; 0: no random changes.
        salt: of the random numbers.
        compare: also compute the starts of the search without random changes, and of the given
            order.
        unlike: how often either of these would have started another set.
        times_ms, gaps, stopped: of the searches; CPU time.
        longest: the longest queue.
    """

    def __init__(self, workload: Workload, spec: PolicySpec, search: Search) -> None:
        super().__init__(workload, pool_of(workload.processors_total), spec)
        self.search, self.size = search, workload.processors_total
        self.patience, self.salt, self.compare, self.unlike = PATIENCE, 0, False, [0, 0]
        self.width, self.arrival_s = workload.processors.astype(np.int64), workload.submit_s
        words = -(-self.size // 64)
        self.everywhere = np.zeros((1, words), dtype=np.uint64)
        for node in range(self.size):
            self.everywhere[0, node // 64] |= np.uint64(1) << np.uint64(node % 64)
        self.stopped = dict.fromkeys((one.name for one in Stopped), 0)
        self.gaps: list[float] = []
        self.times_ms: list[float] = []
        self.longest = 0

    def decide(self, now_s: int) -> tuple[list[Running], int]:
        """Starts the jobs that start now in the best order found."""
        queue = np.array(self.waiting, dtype=np.int64)
        self.longest = max(self.longest, len(queue))
        if self.width[queue].min() > self.free:
            return [], NEVER  # nothing can start, in any order
        late = np.zeros(len(queue), dtype=bool)
        if self.search.most_wait_s is not None:
            late = now_s - self.arrival_s[queue] >= self.search.most_wait_s
        queue = np.concatenate((queue[late], queue[~late]))
        takes_s = np.fromiter(map(self.takes_s, queue.tolist()), np.int64, len(queue))
        start_s = self._planned(queue, takes_s, int(late.sum()), now_s)
        now = start_s == now_s
        started = [
            self.start(job, now_s, length_s)
            for job, length_s in zip(queue[now].tolist(), takes_s[now].tolist(), strict=True)
        ]
        self.waiting = np.sort(queue[~now]).tolist()
        return started, int(start_s[~now].min(initial=NEVER))

    def _planned(self, queue: np.ndarray, takes_s: np.ndarray, lead: int, now_s: int) -> np.ndarray:
        """The planned start of each."""
        weight, due_s = self._costs(queue, takes_s, now_s)
        inside = slice(0, min(self.search.window, len(queue)))
        orders, ask = self._searching(
            queue[inside], takes_s[inside], weight[inside], due_s[inside],
            lead=min(lead, inside.stop), now_s=now_s,
        )  # fmt: skip
        began = time.process_time()
        found = ask(orders, self.patience, self.search.effort)
        self.times_ms.append((time.process_time() - began) * 1e3)
        self.stopped[found.stopped.name] += 1
        self.gaps.append((found.cost - found.bound) / found.cost if found.cost else 0.0)
        if self.compare:
            now = found.start == now_s
            others = ask(orders, 0, self.search.effort), ask(orders[:1], 0, 1)
            for at, other in enumerate(others):
                self.unlike[at] += not np.array_equal(other.start == now_s, now)
        if inside.stop == len(queue):
            return found.start
        behind = np.arange(inside.stop, len(queue))
        plans = [
            self._decoded(queue, takes_s, np.concatenate((first, behind)), now_s)
            for first in (np.arange(inside.stop), found.order)
        ]
        return min(plans, key=lambda start_s: float((weight * (start_s - due_s)).sum()))

    def _costs(
        self, queue: np.ndarray, takes_s: np.ndarray, now_s: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The cost of a second of delay, and its begin (`bridge.planning.dispatch.objective`)."""
        search, arrival_s = self.search, self.arrival_s[queue]
        relative = search.objective in ("slowdown", "bounded-slowdown")
        bound_s = BOUND_S if search.objective == "bounded-slowdown" else 1
        weight = 1.0 / np.maximum(takes_s, bound_s) if relative else np.ones(len(queue))
        if search.ageing_s is not None:
            aged = (now_s - arrival_s) / search.ageing_s
            weight = weight + aged / (search.ageing_s if relative else 1)
        due_s = arrival_s + (np.maximum(bound_s - takes_s, 0) if bound_s > 1 else 0)
        return weight, np.maximum(due_s, now_s)

    def _searching(
        self, jobs: np.ndarray, takes_s: np.ndarray, weight: np.ndarray, due_s: np.ndarray, *,
        lead: int, now_s: int,
    ) -> tuple[np.ndarray, Callable[[np.ndarray, int, int], OrderFound]]:  # fmt: skip
        """The family of orders, and the search from some of them, with patience and effort."""
        whole = np.rint(weight * (WEIGHT / weight.max())).astype(np.int64)
        size, length = np.log(self.width[jobs] / self.size), np.log(takes_s)
        logs = np.log(np.maximum(whole, 1))
        keys = [np.zeros(len(jobs)), -(now_s - self.arrival_s[jobs]) / takes_s]
        keys += [a * size + b * length for a, b in PLAIN]
        keys += [a * size + b * length - logs for a in SHARES for b in LENGTHS]
        table = np.array(keys)
        table[:, :lead] = -np.inf
        problem = self._problem(jobs, takes_s, now_s)

        def ask(orders: np.ndarray, patience: int, effort: int) -> OrderFound:
            return search_orders(
                problem,
                unit_indptr=np.arange(len(jobs) + 1, dtype=np.int64),
                weight=whole, due=due_s, orders=orders, lead=lead,
                effort=effort, steps=self.search.budget_ms * STEPS_PER_MS, patience=patience,
                seed=now_s + self.salt,
            )  # fmt: skip

        return np.argsort(table, axis=1, kind="stable").astype(np.int32), ask

    def _decoded(
        self, queue: np.ndarray, takes_s: np.ndarray, order: np.ndarray, now_s: int
    ) -> np.ndarray:
        """The starts of all jobs in this order."""
        ends_s, widths = self._held(now_s)
        start_s = np.empty(len(queue), dtype=np.int64)
        start_s[order] = plan_counts(
            now_s, self.size, ends_s, widths, self.width[queue[order]], takes_s[order],
            np.zeros(len(queue), dtype=np.int64), UNLIMITED,
        )  # fmt: skip
        return start_s

    def _held(self, now_s: int) -> tuple[np.ndarray, np.ndarray]:
        """The expected ends of the running jobs, and their processors."""
        running = self.running.values()
        ends_s = np.array([self.ends_s(one, now_s) for one in running], dtype=np.int64)
        return ends_s, np.array([one.processors for one in running], dtype=np.int64)

    def _problem(self, jobs: np.ndarray, takes_s: np.ndarray, now_s: int) -> NodeProblem:
        """What `plan_nodes` plans. The assignment of processors to jobs does not matter."""
        n, words = len(jobs), self.everywhere.shape[1]
        ends_s, widths = self._held(now_s)
        held = int(widths.sum())
        none = np.zeros((n, 1), dtype=np.int64)
        width = self.width[jobs].astype(np.int32)
        return NodeProblem(
            now=now_s, depth=UNLIMITED, select=0,
            capacity=np.ones((self.size, 1), dtype=np.int64),
            node_rank=np.zeros(self.size, dtype=np.int32),
            run_indptr=np.concatenate(([0], np.cumsum(widths))).astype(np.int64),
            run_nodes=np.arange(held, dtype=np.int32),
            run_use=np.ones((held, 1), dtype=np.int64),
            run_end=ends_s,
            run_exclusive=np.ones(len(widths), dtype=bool),
            run_counter=np.zeros((len(widths), 0), dtype=np.int64),
            class_nodes=self.everywhere,
            blackout_class=np.zeros(0, dtype=np.int32),
            blackout_start=np.zeros(0, dtype=np.int64),
            blackout_end=np.zeros(0, dtype=np.int64),
            blackout_nodes=np.zeros((0, words), dtype=np.uint64),
            counter_capacity=np.zeros(0, dtype=np.int64),
            job_counter=np.zeros((n, 0), dtype=np.int64),
            alt_indptr=np.arange(n + 1, dtype=np.int64),
            alt_class=np.zeros(n, dtype=np.int32),
            alt_time_limit_s=takes_s,
            alt_min_nodes=width, alt_max_nodes=width,
            per_node=none, per_task=none,
            tasks=np.zeros(n, dtype=np.int32),
            max_tasks_per_node=np.zeros(n, dtype=np.int32),
            exclusive=np.ones(n, dtype=bool),
            not_before=np.zeros(n, dtype=np.int64),
            width_rule=np.zeros(n, dtype=np.int8),
            required=np.full(n, -1, dtype=np.int32),
            required_nodes=np.zeros((0, words), dtype=np.uint64),
        )  # fmt: skip

    def told(self) -> dict[str, Any]:
        """The results."""
        told = figures(self.workload, self.start_s, np.array(self.times_ms)) | {
            "decisions": len(self.decision_ms),
            "in which something may start": len(self.times_ms),
            "longest queue": self.longest,
            "ended": self.stopped,
            "mean gap": round(float(np.mean(self.gaps)), 4),
        }
        if self.compare:
            told["starts now other than without changes at random"] = self.unlike[0]
            told["starts now other than under the given order"] = self.unlike[1]
        return told


def figures(workload: Workload, start_s: np.ndarray, times: np.ndarray) -> dict[str, Any]:
    """Waits and slowdowns, also of large and of long jobs."""
    end_s = start_s + workload.runtime_s
    schedule = ExecutedSchedule(
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
        "kernel CPU ms mean, p99, max": [
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
    parser.add_argument(
        "--predict", action="append", default=[], help="a predictor, or NAME,patience_s=N; repeat"
    )
    parser.add_argument("--patience", type=int, default=PATIENCE, help="0: no random changes")
    parser.add_argument("--salt", type=int, default=0, help="another number, other chance")
    parser.add_argument("--compare", action="store_true", help="what would others start now?")
    given = parser.parse_args()
    workload = workload_from(read_swf(given.trace))
    workload = workload if given.jobs is None else workload.first(given.jobs)
    log = {"log": given.trace.name.split(".")[0], "jobs": len(workload)}
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
        told = figures(workload, found.start, found.decision_ns / 1e6)
        print(json.dumps(log | {"policy": name} | told | about()), flush=True)
    for predictor in given.predict or ["time-limit"]:
        name, _, rest = predictor.partition(",")
        foreseen = {"name": name} | _setting(rest)
        spec = parse_policy({"preset": "search", "predict": foreseen})
        for text in given.set or [""]:
            settings = {"budget_ms": 0, "effort": 20_000} | _setting(text)
            run = Searched(workload, spec, Search(**settings))
            run.patience, run.salt, run.compare = given.patience, given.salt, given.compare
            run.to_the_end()
            told = {"policy": "search", "plan": settings, "predict": foreseen} | run.told()
            print(json.dumps(log | told | about()), flush=True)


if __name__ == "__main__":
    main()
