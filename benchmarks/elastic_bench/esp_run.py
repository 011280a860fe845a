# SPDX-License-Identifier: Apache-2.0
"""One run of compressed ESP: submits the jobs, waits for them, reads the logs, checks results."""

import json
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from cluster_bench.meters import load_between
from cluster_bench.stand import BenchError, Stand

from elastic_bench import paced
from elastic_bench.esp_jobs import Costs, Job
from elastic_bench.steps import Change, changes, instant_s, resizes

SUBMIT = """
import json, subprocess, sys, time
jobs = json.load(sys.stdin)
begin = time.time() + 1
for at_s, options, script in jobs:
    time.sleep(max(begin + at_s - time.time(), 0))
    called = time.time()
    done = subprocess.run(["sbatch", "--parsable", "-o", "esp/%j.out", *options],
                          input=script, text=True, capture_output=True)
    if done.returncode: sys.exit(f"sbatch {options}: {done.stderr}")
    print(done.stdout.strip(), called, time.time(), flush=True)
"""
READ = 'for job; do echo "== $job"; cat esp/$job.out; done'
_STARTED = re.compile(
    r"^\[(?P<at>[^\]]+)\] .*?(?:sched: Allocate|_start_job: Started|bridge: start)"
    r" JobId=(?P<job>\d+) (?:in main on |NodeList=)?(?P<rest>.*)$"
)
_ENDED = re.compile(r"^\[(?P<at>[^\]]+)\] _job_complete: JobId=(?P<job>\d+) done")
_KILLED = re.compile(r"^\[(?P<at>[^\]]+)\] Time limit exhausted for JobId=(?P<job>\d+)")
_RESULT = re.compile(r"paced: result (\w+) in ([\d.]+) s")
_WINDOW = re.compile(r"paced: width (\d+) after ([\d.]+) s")


@dataclass
class Ran:
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


def run(stand: Stand, jobs: Sequence[Job], bound_s: float, say: Callable[[str], None]) -> dict:
    """Runs all jobs; returns the figures, and each job."""
    stand.shell("sh", "-c", "rm -rf esp; mkdir esp; cat >paced.py", stdin=_program())
    meters = stand.meters()
    before = meters.read()
    given = json.dumps([(job.at_s, job.options, job.script) for job in jobs])
    lines = _submitted(stand, given, len(jobs), bound_s, say)
    load = load_between(before, meters.read())
    ids = {job_id: float(called) for job_id, called, _ in lines}
    ran = [
        Ran(job, job_id, ids[job_id]) for job, job_id in zip(jobs, ids, strict=True)
    ]  # fmt: skip
    log = stand.script("logs", "controller")
    read_log(ran, log)
    read_outputs(ran, stand.shell("sh", "-c", READ, "sh", *ids, timeout_s=600))
    service = stand.script("logs", "service") if stand.scheduler == "bridge" else ""
    made = [one for one in changes(service) if one.job in ids]
    locks = [one.lock_ms for one in resizes(log) if one.job in ids]
    return {**figures(ran, made, locks, stand.nodes), "load": load, "jobs": [_row(o) for o in ran]}


def _program() -> bytes:
    return Path(paced.__file__).read_bytes()


def _submitted(
    stand: Stand, given: str, count: int, bound_s: float, say: Callable[[str], None]
) -> list[list[str]]:
    """Submits in the background; returns when the last job has ended."""
    with subprocess.Popen(
        stand.command("python3", "-c", SUBMIT), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as submitter:  # fmt: skip
        assert submitter.stdin
        submitter.stdin.write(given)
        submitter.stdin.close()
        submitter.stdin = None
        begin_s = time.monotonic()
        told_s = begin_s
        while True:
            time.sleep(3)
            states = stand.shell("squeue", "-h", "-t", "PD,R,CG,CF", "-o", "%t").split()
            if submitter.poll() not in (None, 0):
                raise BenchError(f"submitting failed: {submitter.communicate()[1][-300:]}")
            if time.monotonic() - told_s > 30:
                told_s = time.monotonic()
                say(f"  {states.count('R')} jobs run, {states.count('PD')} wait")
            if not states and submitter.poll() is not None:
                break
            if time.monotonic() - begin_s > bound_s:
                submitter.kill()
                stand.shell("sh", "-c", "squeue -h -o %i | xargs -r scancel", user="root")
                raise BenchError(f"not all jobs have ended after {bound_s:.0f} s")
        out, _ = submitter.communicate()
    lines = [line.split() for line in out.splitlines()]
    if len(lines) != count:
        raise BenchError(f"{len(lines)} of {count} jobs were submitted")
    return lines


def read_log(ran: Iterable[Ran], log: str) -> None:
    """Starts, widths and ends from slurmctld's log."""
    by = {one.job_id: one for one in ran}
    sizes: dict[str, list[tuple[float, int]]] = {}
    for one in resizes(log):
        if one.job in by and one.said.startswith("n"):
            sizes.setdefault(one.job, []).append((one.at_s, one.width))
    for line in log.splitlines():
        for pattern in (_STARTED, _ENDED, _KILLED):
            match = pattern.match(line)
            if match is None or match["job"] not in by:
                continue
            one = by[match["job"]]
            if pattern is _STARTED:
                one.start_s = instant_s(match["at"])
                one.width = _count(match["rest"])
            elif pattern is _ENDED:
                one.end_s = instant_s(match["at"])
            else:
                one.why = "killed at its time limit"
                one.end_s = instant_s(match["at"])
    for job_id, found in sizes.items():
        by[job_id].widths = tuple(found)


def _count(text: str) -> int:
    """The number of nodes in a list: n3, n[1-4,7] or n1,n[3-4]."""
    found = re.search(r"(?:NodeList=| on |^)(n[\w\[\],-]*)", text)
    if found is None:
        return 0
    total = 0
    for part in re.findall(r"n(\d+|\[[^\]]+\])", found[1]):
        for span in part.strip("[]").split(","):
            low, _, high = span.partition("-")
            total += int(high or low) - int(low) + 1
    return total


def read_outputs(ran: Sequence[Ran], text: str) -> None:
    """Results, compared with what the programs must print."""
    outputs = dict(
        part.split("\n", 1) if "\n" in part else (part, "") for part in text.split("== ")[1:]
    )
    with ProcessPoolExecutor(2) as pool:
        expected = list(
            pool.map(
                paced.expected, [one.job.units for one in ran],
                [str(one.job.number) for one in ran], chunksize=8,
            )
        )  # fmt: skip
    for one, right in zip(ran, expected, strict=True):
        said = outputs.get(one.job_id, "")
        found = _RESULT.findall(said)
        one.right = [value for value, _ in found] == [right]
        one.program_s = float(found[0][1]) if found else 0.0
        one.windows_s = tuple(float(s) for _, s in _WINDOW.findall(said))
        if not one.right and not one.why:
            one.why = " / ".join(said.splitlines()[-3:])[:300] or "no output"


def figures(
    ran: Sequence[Ran], made: Sequence[Change], locks: Sequence[float], nodes: int
) -> dict[str, object]:
    """Of a whole run, in the cluster's seconds."""
    missing = [one.job_id for one in ran if not (one.start_s and one.end_s and one.width)]
    if missing:
        raise BenchError(f"the log does not tell all of jobs {', '.join(missing[:5])}")
    first_s, last_s = min(one.submitted_s for one in ran), max(one.end_s for one in ran)
    good = [one for one in made if one.done]
    lasted = [one.end_s - one.begin_s for one in good]
    windows = [s for one in ran for s in one.windows_s]
    costs = costs_of(ran, lasted, windows)
    return {
        "makespan_s": round(last_s - first_s, 2),
        "utilization": round(sum(one.node_s() for one in ran) / nodes / (last_s - first_s), 5),
        "wait_s": round(statistics.mean(one.start_s - one.submitted_s for one in ran), 3),
        "response_s": round(statistics.mean(one.end_s - one.submitted_s for one in ran), 3),
        "right": sum(one.right for one in ran),
        "count": len(ran),
        "wrong": [f"{one.job_id}: {one.why}" for one in ran if not one.right],
        "resizes": len(good),
        "not_done": len(made) - len(good),
        "why": sorted({one.why for one in made if one.why}),
        "started_elsewhere": sum(one.width != one.job.nodes for one in ran),
        "change_s": spread(lasted),
        "window_s": spread(windows),
        "lock_ms": spread(list(locks)),
        "costs": {key: value for key, value in vars(costs).items() if key != "scale"},
    }


def costs_of(ran: Sequence[Ran], lasted_s: Sequence[float], windows_s: Sequence[float]) -> Costs:
    """The measured times for the simulation."""
    calm = [one for one in ran if one.right and not one.widths]
    rigid = [o.end_s - o.start_s - o.program_s for o in calm if not o.job.malleable]
    malleable = [o.end_s - o.start_s - o.program_s for o in calm if o.job.malleable]
    every = (lasted_s, windows_s, rigid, malleable)
    return Costs(*(round(statistics.mean(each), 3) if each else 0.0 for each in every))


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


def _row(one: Ran) -> dict[str, object]:
    return {
        "job": one.job.number, "nodes": one.job.nodes, "malleable": one.job.malleable,
        "wait_s": round(one.start_s - one.submitted_s, 2),
        "ran_s": round(one.end_s - one.start_s, 2), "model_s": round(one.job.runs_s, 2),
        "width": one.width, "widths": [width for _, width in one.widths], "right": one.right,
    }  # fmt: skip
