# SPDX-License-Identifier: Apache-2.0
"""Tasks of an array, and jobs of a mixed stream, per second.

They are submitted with `sbatch` to nodes that jobs share by the core. Unlike the whole-node jobs of
`throughput`, their starts depend on other jobs of a node and on nodes that still clean up after a
job, so a scheduler that waits after a refused start is noticeably slower.
"""

import random
import re
import time
from collections.abc import Iterator

from cluster_bench.meters import cost_of_jobs
from cluster_bench.stand import CPUS_PER_NODE, BenchError, Stand

_DONE = re.compile(r"^\[[^\]]+\] _job_complete: JobId=(\d+(?:_\d+)?)(?:\(\d+\))? done")
_ARRAY = 20
"""Tasks of one array of the mixed stream."""


def array(tasks: int, seed: int) -> list[tuple[str, int]]:
    """One array of one-core tasks that sleep a second."""
    del seed
    return [(f"-a 1-{tasks} -n1 -t5 --wrap 'sleep 1'", tasks)]


def mixed(jobs: int, seed: int) -> list[tuple[str, int]]:
    """A stream of small arrays, single cores, parts of nodes, whole nodes and several nodes."""
    return list(_mixed(random.Random(seed), jobs))


def _mixed(rng: random.Random, jobs: int) -> Iterator[tuple[str, int]]:
    while jobs > 0:
        kind = rng.random()
        wrap = rng.choice(("true", "sleep 1", "sleep 2"))
        limit = rng.choice((1, 5, 30))
        if kind < 0.05:
            tasks = min(jobs, _ARRAY)
            yield f"-a 1-{tasks} -n1 -t{limit} --wrap '{wrap}'", tasks
            jobs -= tasks
            continue
        if kind < 0.5:
            size = "-n1"
        elif kind < 0.75:
            size = f"-n{rng.randint(2, CPUS_PER_NODE)} -N1"
        elif kind < 0.9:
            size = "-N1 --exclusive"
        else:
            size = f"-N{rng.randint(2, 4)}"
        yield f"{size} -t{limit} --wrap '{wrap}'", 1
        jobs -= 1


def measure(
    stand: Stand, submissions: list[tuple[str, int]], *, bound_s: float
) -> dict[str, object]:
    """Jobs (each task counts) per second, from the first submission to the last end."""
    jobs = sum(tasks for _, tasks in submissions)
    stand.wait_idle()
    meters = stand.meters()
    before = meters.read()
    known = set(_ended(stand))
    began = time.monotonic()
    script = "\n".join(f"sbatch -o /dev/null {words}" for words, _ in submissions)
    output = stand.shell("sh", "-e", stdin=script, timeout_s=bound_s)
    if (taken := output.count("Submitted batch job")) != len(submissions):
        raise BenchError(f"{taken} of {len(submissions)} submissions were taken")
    submitted_s = time.monotonic() - began
    # Read the log rarely and do not query the controller, to keep the measurement undisturbed.
    while len(ended := set(_ended(stand)) - known) < jobs:
        if time.monotonic() - began > bound_s:
            raise BenchError(f"{len(ended)} of {jobs} jobs ended within {bound_s:.0f} s")
        time.sleep(0.5)
    elapsed_s = time.monotonic() - began
    after = meters.read()
    stand.wait_idle()
    return {
        "jobs": jobs,
        "elapsed_s": round(elapsed_s, 2),
        "jobs_per_s": round(jobs / elapsed_s, 1),
        "submitting_s": round(submitted_s, 2),
        **cost_of_jobs(before, after, jobs),
    }


def _ended(stand: Stand) -> Iterator[str]:
    for line in stand.script("logs", "controller").splitlines():
        if match := _DONE.match(line):
            yield match[1]
