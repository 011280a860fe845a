# SPDX-License-Identifier: Apache-2.0
"""What `search` costs whom: waits by class against EASY, over bounds on harm and exponents.

    python benchmarks/search_harm.py DIRECTORY --logs KTH,CTC --set harm_factor=1 --set power=2
    python benchmarks/search_harm.py DIRECTORY --seeds 5 --set harm_factor=1,predict=last-two

Of each log stated spans of consecutive jobs are replayed on counts (`bridge.lab.sim.runs.ordered`),
as `lab simulate` would with those jobs alone. A seed above 0 also shuffles jobs submitted
in the same second, for EASY and `search` alike; seed 0 keeps the log's order. One line of JSON for
each span, setting and seed: mean wait, 99th percentile and maximum, also by class, the same of
EASY, and by how many jobs the classes differ.
"""

import argparse
import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from about import about
from numpy.typing import NDArray

from bridge.core import UNLIMITED, replay_counts
from bridge.lab.sim.runs.ordered import OrderedPool, SearchedPool
from bridge.lab.sim.runs.replay import replay
from bridge.lab.sim.workloads.swf import read_swf
from bridge.lab.sim.workloads.system import pool_of
from bridge.lab.sim.workloads.workload import Workload, workload_from
from bridge.registry import parse_policy

LOGS = {
    "KTH": "KTH-SP2-1996-2.1-cln.swf.gz",
    "CTC": "CTC-SP2-1996-3.1-cln.swf.gz",
    "SDSC": "SDSC-SP2-1998-4.2-cln.swf.gz",
    "HPC2N": "HPC2N-2002-2.2-cln.swf.gz",
    "METACENTRUM": "METACENTRUM-wagap-2013.swf.gz",
    "CEA": "CEA-Curie-2011-2.1-cln.swf.gz",
}
"""Short names of the logs."""
PROCESSORS = {"METACENTRUM": 2176}
"""Where the header states none."""
EFFORT = 4_000
"""Jobs booked in a decision, unless a setting says otherwise."""
FEW = 30
"""Classes of fewer jobs are left out."""
LOSERS = 10
"""Of a class, whose differences are summed."""
MINUTE_S = 60


def span_of(workload: Workload, share: float, jobs: int) -> tuple[Workload, int]:
    """So many consecutive jobs that begin at a share of the log, and the first of them."""
    begin = int(share * max(len(workload) - jobs, 0))
    return taken(workload, np.arange(begin, min(begin + jobs, len(workload)))), begin


def taken(workload: Workload, rows: NDArray[np.int64]) -> Workload:
    """Some jobs of a workload, in this order."""
    columns = {
        field.name: value[rows]
        for field in dataclasses.fields(workload)
        if isinstance(value := getattr(workload, field.name), np.ndarray)
    }
    return dataclasses.replace(workload, **columns)


def shuffled(workload: Workload, seed: int) -> Workload:
    """Jobs of the same second in random order; seed 0: as they are."""
    if not seed:
        return workload
    chance = np.random.default_rng(seed).random(len(workload))
    return taken(workload, np.lexsort((chance, workload.submit_s)))


def classes(workload: Workload) -> dict[str, NDArray[np.bool_]]:
    """By name: the jobs of each class of size and of requested time."""
    total, wide = workload.processors_total, workload.processors
    limit_h = workload.time_limit_s / 3600
    return {
        "1 processor": wide == 1,
        "up to 1/8": (wide > 1) & (wide <= total / 8),
        "up to 1/2": (wide > total / 8) & (wide <= total / 2),
        "over 1/2": wide > total / 2,
        "limit up to 1 h": limit_h <= 1,
        "1 to 4 h": (limit_h > 1) & (limit_h <= 4),
        "4 to 12 h": (limit_h > 4) & (limit_h <= 12),
        "over 12 h": limit_h > 12,
    }


def waits(workload: Workload, start_s: NDArray[np.int64]) -> dict[str, Any]:
    """Mean, 99th percentile and maximum of the waits, s, of all jobs and of each class."""
    wait_s = start_s - workload.submit_s
    every = {"all": np.ones(len(workload), dtype=bool)} | classes(workload)
    return {
        name: [round(float(f(wait_s[own])), 1) for f in (np.mean, _p99, np.max)]
        for name, own in every.items()
        if own.sum() >= FEW
    }


def differences(
    workload: Workload, start_s: NDArray[np.int64], easy_s: NDArray[np.int64]
) -> dict[str, list[int]]:
    """What classes wait more than under EASY.

    Of each: jobs, those that wait longer and shorter by more than a minute, the sum of all
    differences, s, and that of the `LOSERS` that lose most, s.
    """
    more_s = start_s - easy_s
    found = {}
    for name, own in classes(workload).items():
        if own.sum() >= FEW:
            most_s = np.sort(more_s[own])[-LOSERS:]
            longer, shorter = more_s[own] > MINUTE_S, more_s[own] < -MINUTE_S
            sums = (own.sum(), longer.sum(), shorter.sum(), more_s[own].sum(), most_s.sum())
            found[name] = list(map(int, sums))
    return found


def _p99(values: NDArray[np.int64]) -> float:
    return float(np.percentile(values, 99))


def replayed(workload: Workload, setting: dict[str, Any], seed: int) -> dict[str, Any]:
    """One replay under a policy; `plan=shortest`: conservative, shortest limit first."""
    if setting.get("plan") == "shortest":
        columns = (workload.submit_s, workload.runtime_s, workload.time_limit_s)
        size = workload.processors_total
        found = replay_counts(*columns, workload.processors, size, UNLIMITED, workload.time_limit_s)
        return {"waits": waits(workload, found.start)}
    plan = {key: value for key, value in setting.items() if key not in ("predict", "order")}
    named = {key: setting[key] for key in ("predict", "order") if key in setting}
    kind: type[OrderedPool] = OrderedPool
    if setting.get("plan") == "easy":
        policy = {"preset": "easy", **named}
    else:
        kind = SearchedPool
        policy = {"preset": "search", "plan": {"name": "search", "effort": EFFORT, **plan}, **named}
    began = time.process_time()
    run = kind(workload, pool_of(workload.processors_total), parse_policy(policy), seed)
    run.to_the_end()
    easy_s = replay(workload, pool_of(workload.processors_total), 1).schedule.start_s
    return {
        "cpu_s": round(time.process_time() - began, 2),
        "plan_ms": round(float(np.mean(run.cpu_ms)), 3),
        "decisions": len(run.decision_ms),
        "waits": waits(workload, run.start_s),
        "differences": differences(workload, run.start_s, easy_s),
    }


def _setting(text: str) -> dict[str, Any]:
    return {
        key: json.loads(value) if value[:1] in "0123456789n" and value != "name-history" else value
        for key, _, value in (part.partition("=") for part in text.split(",") if part)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("directory", type=Path, help="of the logs")
    parser.add_argument("--logs", default=",".join(LOGS), help="short names; default: all")
    parser.add_argument("--at", default="0.3,0.8", help="where spans begin, as shares of the log")
    parser.add_argument("--jobs", type=int, default=3000, help="of a span")
    parser.add_argument("--set", action="append", default=[], help="parameters: a=1,b=2; repeat")
    parser.add_argument("--seeds", type=int, default=1, help="0 to N - 1")
    given = parser.parse_args()
    for log in given.logs.split(","):
        whole = workload_from(read_swf(given.directory / LOGS[log]), PROCESSORS.get(log))
        for share in map(float, given.at.split(",")):
            span, first = span_of(whole, share, given.jobs)
            for seed in range(given.seeds):
                jobs = shuffled(span, seed)
                easy = replay(jobs, pool_of(jobs.processors_total), 1).schedule.start_s
                for text in given.set or [""]:
                    told = {
                        "log": log, "first": first, "jobs": len(jobs), "seed": seed,
                        "setting": _setting(text), **replayed(jobs, _setting(text), seed),
                        "easy": waits(jobs, easy), **about(),
                    }  # fmt: skip
                    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
