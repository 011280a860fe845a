#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The duration of a whole cycle after one event, by the number of waiting jobs. Prints JSON.

    benchmarks/cycle_cost.py [--policy NAME ...] [--jobs N ...] [--nodes N ...] [--shape SHAPE ...]
                             [--cycles N] [--json FILE]

A cluster whose nodes all are in use, and a queue of constant length. Each cycle reports one event:

| event | is |
|---|---|
| submit | a job is submitted |
| end | a running job ends before its time limit |
| start | the jobs of the previous reply have started |
| node | a node is drained, or resumed |

A start follows each cycle that started something; otherwise one cycle in ten is about a node, and
the others are submissions while fewer jobs wait than at the beginning, else ends. The clock moves
by a second each.

`Cycles.run` is timed: the report is applied, planned, checked and answered, as in the
service, but without the transport (see `benchmarks/wire.py`). `plan_ms` is the part from
snapshot to plan; `cpu_ms` is the CPU time of the whole, the better measure on a shared machine. The
first cycles, which process the whole queue and warm up, are not counted.

Shapes: `whole`, every job takes 1-64 whole nodes (log-uniform), as in `cluster.py`'s part `deep`;
`mixed`, two jobs in three share nodes: a few cores and their memory on one to four nodes.
"""

import argparse
import gc
import json
import sys
import time
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from about import about
from results_file import as_text
from wire import NOW_S, hello

from bridge.registry import PRESETS, build
from bridge.rpc.controller.announcements import Announcements
from bridge.rpc.controller.cycles import CycleReport, Cycles
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.session import Session
from bridge.safe_cycle.decider import Decider

CPUS, MEMORY_MIB = 64, 262_144
WARM_UP = 30
LIMITS_S = (600, 1_800, 3_600, 7_200, 14_400, 28_800)


class Cluster:
    """Replaces the controller: it runs jobs as decided, and reports events one by one."""

    def __init__(self, nodes: int, jobs: int, shape: str, seed: int, width: int = 64) -> None:
        self._rng = np.random.default_rng(seed)
        self._shape, self._jobs = shape, jobs
        self._names = [f"n{at:05d}" for at in range(nodes)]
        self._width = min(width, nodes)
        self._waiting: dict[str, pb.Job] = {}
        self._running: dict[str, pb.Job] = {}
        self._drained: list[int] = []
        self._number = 0
        self._generation = 0
        self._now_s = NOW_S
        self._starts: list[pb.Decision] = []

    def _report(self) -> pb.CycleRequest:
        self._generation += 1
        self._now_s += 1
        return pb.CycleRequest(
            epoch=1,
            generation=self._generation,
            base_generation=self._generation - 1,
            now_s=self._now_s,
        )

    def _node(self, at: int) -> pb.Node:
        usable = at not in self._drained
        state = "ALLOCATED" if usable else "ALLOCATED+DRAIN"
        return pb.Node(
            name=self._names[at], cpus=CPUS, threads_per_core=1, memory_mib=MEMORY_MIB,
            usable=usable, state=state,
        )  # fmt: skip

    def _job(self) -> pb.Job:
        rng = self._rng
        self._number += 1
        if self._shape == "whole" or rng.random() < 1 / 3:
            width = int(np.exp(rng.uniform(0, np.log(self._width + 1))))
            request = pb.Request(
                partitions=["batch"], min_nodes=width, max_nodes=width, cpus_per_task=1,
                exclusive=True,
            )  # fmt: skip
        else:
            width, cores = int(rng.choice([1, 1, 1, 1, 2, 4])), int(2 ** rng.integers(0, 6))
            request = pb.Request(
                partitions=["batch"], min_nodes=width, max_nodes=width, tasks=width * cores,
                tasks_per_node=cores, cpus_per_task=1, memory_per_cpu_mib=2_048,
            )  # fmt: skip
        return pb.Job(
            id=str(self._number),
            version=self._number,
            state=pb.JOB_STATE_PENDING,
            name="job",
            user=f"user{self._number % 300}",
            account="account",
            priority=int(rng.integers(1, 1 << 20)),
            submit_s=self._now_s,
            time_limit_s=int(rng.choice(LIMITS_S)),
            request=request,
        )

    def whole(self) -> pb.CycleRequest:
        """Everything: all nodes held by jobs of 1-8 nodes, and the queue."""
        report, rng = self._report(), self._rng
        report.nodes.extend(self._node(at) for at in range(len(self._names)))
        last = self._names[-1].removeprefix("n")
        report.partitions.items.add(name="batch", nodes=f"n[00000-{last}]", up=True)
        first = 0
        while first < len(self._names):
            self._number += 1
            width = min(int(2 ** rng.integers(0, 4)), len(self._names) - first)
            job = self._job()
            end_s = self._now_s + 60 * int(rng.integers(120, 600))
            self._run(job, ",".join(self._names[first : first + width]), CPUS, True, end_s)
            report.jobs.append(job)
            first += width
        for _ in range(self._jobs):
            job = self._job()
            self._waiting[job.id] = job
            report.jobs.append(job)
        return report

    def _run(self, job: pb.Job, nodes: str, cpus: int, exclusive: bool, end_s: int) -> None:
        memory_mib = MEMORY_MIB if exclusive else cpus * 2_048
        job.state = pb.JOB_STATE_RUNNING
        job.allocation.CopyFrom(
            pb.Allocation(
                start_s=self._now_s, end_s=end_s, partition="batch", exclusive=exclusive,
                uses=[pb.NodeUse(nodes=nodes, cpus=cpus, memory_mib=memory_mib)],
            )
        )  # fmt: skip
        self._running[job.id] = job

    def event(self) -> tuple[str, pb.CycleRequest]:
        """The next event and its report."""
        report = self._report()
        if self._starts:
            self._begin(report)
            return "start", report
        if self._rng.random() < 0.1:
            at = int(self._rng.integers(len(self._names)))
            if len(self._drained) > 5:
                at = self._drained.pop(0)
            elif at not in self._drained:
                self._drained.append(at)
            report.nodes.append(self._node(at))
            return "node", report
        if len(self._waiting) < self._jobs:
            job = self._job()
            self._waiting[job.id] = job
            report.jobs.append(job)
            return "submit", report
        gone = self._rng.choice(sorted(self._running))
        job = self._running.pop(str(gone))
        report.removed_jobs.append(job.id)
        report.ended.add(
            id=job.id, name=job.name, user=job.user, start_s=job.allocation.start_s,
            end_s=self._now_s, time_limit_s=job.time_limit_s, ending=pb.ENDING_COMPLETED,
        )  # fmt: skip
        return "end", report

    def _begin(self, report: pb.CycleRequest) -> None:
        for decision in self._starts:
            report.fates.add(
                decision_id=decision.id, job_id=decision.job_id, outcome=pb.OUTCOME_APPLIED
            )
            job = self._waiting.pop(decision.job_id)
            asked, start = job.request, decision.start
            cpus = CPUS if asked.exclusive else asked.tasks_per_node
            end_s = self._now_s + job.time_limit_s
            self._run(job, start.nodes, cpus, asked.exclusive, end_s)
            report.jobs.append(job)
        self._starts = []

    def take(self, reply: pb.CycleReply) -> None:
        """Records the jobs to be started."""
        if reply.need_full:
            sys.exit("the service requested a full report: a defect of the benchmark")
        self._starts = [one for one in reply.decisions if one.WhichOneof("action") == "start"]


def run(policy: str, jobs: int, nodes: int, shape: str, cycles: int) -> dict[str, Any]:
    """One cell of the table."""
    reports: list[CycleReport] = []

    class Observer:
        def cycle(self, report: CycleReport) -> None:
            reports.append(report)

    decider = Decider(build(PRESETS[policy]))
    service = Cycles(
        decider.decide,
        session=Session(),
        announcements=Announcements(1_000_000),
        service="benchmark",
        policy=lambda: policy,
        site=lambda: decider.site,
        telemetry=lambda: decider.telemetry,
        observers=(Observer(),),
    )
    service.greet(hello())
    cluster = Cluster(nodes, jobs, shape, seed=1)
    cluster.take(service.run(cluster.whole()))
    times: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for turn in range(WARM_UP + cycles):
        event, report = cluster.event()
        if turn == WARM_UP:
            gc.collect()
        began, cpu_began = time.perf_counter(), time.process_time()
        reply = service.run(report)
        took_ms = (time.perf_counter() - began) * 1e3
        if turn >= WARM_UP:
            cpu_ms = (time.process_time() - cpu_began) * 1e3
            times[event].append((took_ms, reports[-1].plan_s * 1e3, cpu_ms))
        cluster.take(reply)
    if decider.failures:
        sys.exit(f"{policy}: {decider.failures} cycles were planned conservatively")
    every = np.array([each for some in times.values() for each in some])
    cell: dict[str, Any] = {"policy": policy, "shape": shape, "jobs": jobs, "nodes": nodes}
    cell["cycles"] = len(every)
    cell["cycle_ms"], cell["plan_ms"], cell["cpu_ms"] = map(told, every.T)
    cell["events"] = {
        event: {"cycles": len(some), "cpu_ms": told(np.array(some)[:, 2])}
        for event, some in sorted(times.items())
    }
    return cell


def told(values: np.ndarray) -> dict[str, float]:
    """Median and the rest."""
    at = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {name: round(float(np.quantile(values, share)), 2) for name, share in at.items()}


def main() -> None:
    """Runs every cell in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policy", nargs="+", default=["easy", "slurm-like", "openccs"])
    parser.add_argument("--jobs", nargs="+", type=int, default=[1_000, 5_000, 10_000])
    parser.add_argument("--nodes", nargs="+", type=int, default=[1_000])
    parser.add_argument("--shape", nargs="+", choices=["whole", "mixed"], default=["whole"])
    parser.add_argument("--cycles", type=int, default=300)
    parser.add_argument("--json", type=Path, help="also write the result to this file")
    chosen = parser.parse_args()
    if unknown := set(chosen.policy).difference(PRESETS):
        parser.error(f"no preset {min(unknown)}")
    if min(*chosen.jobs, *chosen.nodes, chosen.cycles) < 1:
        parser.error("numbers must be 1 or more")
    gc.set_threshold(50_000, 20, 50)  # as the service does
    cells = []
    for shape, policy, nodes, jobs in product(
        chosen.shape, chosen.policy, chosen.nodes, chosen.jobs
    ):
        cell = run(policy, jobs, nodes, shape, chosen.cycles)
        cells.append(cell)
        told_of = ("policy", "shape", "nodes", "jobs", "cycle_ms", "cpu_ms")
        summary = {key: cell[key] for key in told_of}
        print(json.dumps(summary), file=sys.stderr, flush=True)
    text = as_text({**about(), "cells": cells})
    print(text)
    if chosen.json:
        chosen.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
