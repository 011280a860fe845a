# SPDX-License-Identifier: Apache-2.0
"""One run of compressed ESP: submits the jobs, waits for them, reads the logs, checks results."""

import json
import re
import statistics
import subprocess
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from cluster_bench.batch import (
    Ran,
    common_figures,
    common_row,
    outputs,
    read_log,
    spread,
    wait_done,
)
from cluster_bench.meters import load_between
from cluster_bench.stand import BenchError, Stand

from elastic_bench import paced
from elastic_bench.esp_jobs import Costs, Job
from elastic_bench.steps import Change, changes, resizes

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
_RESULT = re.compile(r"paced: result (\w+) in ([\d.]+) s")
_WINDOW = re.compile(r"paced: width (\d+) after ([\d.]+) s")


def run(stand: Stand, jobs: Sequence[Job], bound_s: float) -> dict:
    """Runs all jobs; returns the figures, and each job."""
    stand.shell("sh", "-c", "rm -rf esp; mkdir esp; cat >paced.py", stdin=_program())
    meters = stand.meters()
    before = meters.read()
    given = json.dumps([(job.at_s, job.options, job.script) for job in jobs])
    lines = _submitted(stand, given, len(jobs), bound_s)
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


def _submitted(stand: Stand, given: str, count: int, bound_s: float) -> list[list[str]]:
    """Submits in the background; returns when the last job has ended."""
    with subprocess.Popen(
        stand.command("python3", "-c", SUBMIT), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as submitter:  # fmt: skip
        assert submitter.stdin
        submitter.stdin.write(given)
        submitter.stdin.close()
        submitter.stdin = None

        def is_submitting() -> bool:
            if submitter.poll() not in (None, 0):
                raise BenchError(f"submitting failed: {submitter.communicate()[1][-300:]}")
            return submitter.poll() is None

        try:
            wait_done(stand, bound_s, is_submitting)
        except BenchError:
            submitter.kill()
            raise
        out, _ = submitter.communicate()
    lines = [line.split() for line in out.splitlines()]
    if len(lines) != count:
        raise BenchError(f"{len(lines)} of {count} jobs were submitted")
    return lines


def read_outputs(ran: Sequence[Ran[Job]], text: str) -> None:
    """Results, compared with what the programs must print."""
    found_by = outputs(text)
    with ProcessPoolExecutor(2) as pool:
        expected = list(
            pool.map(
                paced.expected, [one.job.units for one in ran],
                [str(one.job.number) for one in ran], chunksize=8,
            )
        )  # fmt: skip
    for one, right in zip(ran, expected, strict=True):
        said = found_by.get(one.job_id, "")
        found = _RESULT.findall(said)
        one.right = [value for value, _ in found] == [right]
        one.program_s = float(found[0][1]) if found else 0.0
        one.windows_s = tuple(float(s) for _, s in _WINDOW.findall(said))
        if not one.right and not one.why:
            one.why = " / ".join(said.splitlines()[-3:])[:300] or "no output"


def figures(
    ran: Sequence[Ran[Job]], made: Sequence[Change], locks: Sequence[float], nodes: int
) -> dict[str, object]:
    """Of a whole run, in the cluster's seconds."""
    first_s, last_s = min(one.submitted_s for one in ran), max(one.end_s for one in ran)
    good = [one for one in made if one.done]
    lasted = [one.end_s - one.begin_s for one in good]
    windows = [s for one in ran for s in one.windows_s]
    costs = costs_of(ran, lasted, windows)
    return {
        **common_figures(ran),
        "utilization": round(sum(one.node_s() for one in ran) / nodes / (last_s - first_s), 5),
        "resizes": len(good),
        "not_done": len(made) - len(good),
        "why": sorted({one.why for one in made if one.why}),
        "started_elsewhere": sum(one.width != one.job.nodes for one in ran),
        "change_s": spread(lasted),
        "window_s": spread(windows),
        "lock_ms": spread(list(locks)),
        "costs": {key: value for key, value in vars(costs).items() if key != "scale"},
    }


def costs_of(
    ran: Sequence[Ran[Job]], lasted_s: Sequence[float], windows_s: Sequence[float]
) -> Costs:
    """The measured times for the simulation."""
    calm = [one for one in ran if one.right and not one.widths]
    rigid = [o.end_s - o.start_s - o.program_s for o in calm if not o.job.malleable]
    malleable = [o.end_s - o.start_s - o.program_s for o in calm if o.job.malleable]
    every = (lasted_s, windows_s, rigid, malleable)
    return Costs(*(round(statistics.mean(each), 3) if each else 0.0 for each in every))


def _row(one: Ran[Job]) -> dict[str, object]:
    return {
        "job": one.job.number, "nodes": one.job.nodes, "malleable": one.job.malleable,
        "model_s": round(one.job.runs_s, 2), **common_row(one),
    }  # fmt: skip
