# SPDX-License-Identifier: Apache-2.0
"""The cost of a deep queue: time until all jobs have announced starts, and latencies meanwhile.

All nodes are held by smaller jobs whose ends spread over hours; then come jobs of whole nodes with
log-uniform sizes and clustered limits, each of which can run eventually. They are submitted
while their partition is down, so that all schedulers begin with the same queue at the same
instant, when the partition is set up. While the plan is made and afterwards, three open-loop
streams query single jobs, submit held jobs and cancel waiting ones (so that there is always
something to replan). Shortly after the last call the announcements are checked: at no instant may
they need more nodes than there are.
"""

import random
from collections.abc import Iterable

from cluster_bench.figures import spread
from cluster_bench.meters import load_between
from cluster_bench.stand import PARTITION, BenchError, Stand, job_line, submissions

_LIMITS_MIN = (10, 20, 30, 60, 120, 240, 480)
_WEIGHTS = (2, 1, 4, 6, 4, 2, 1)
_LARGEST = 64
_LARGEST_FILLER = 8
_QUERY_HZ, _SUBMIT_HZ, _CANCEL_HZ = 10.0, 4.0, 0.5


def measure(
    stand: Stand, *, jobs: int, bound_s: float, shortest_s: float, seed: int
) -> dict[str, object]:
    """Fills the cluster, queues `jobs` jobs, watches for at most `bound_s` seconds."""
    rng = random.Random(seed)
    stand.fill(_fillers(stand.nodes, rng))
    stand.say(f"{stand.scheduler}: nodes full, submitting {jobs} jobs")
    meters = stand.meters()
    before = meters.read()
    lines = stand.probe(
        "deep", PARTITION, f"{bound_s}", f"{shortest_s}", f"{seed % 65521}",
        f"{_QUERY_HZ}", f"{_SUBMIT_HZ}", f"{_CANCEL_HZ}",
        jobs=_queue(jobs, rng), timeout_s=bound_s + shortest_s + jobs / 40 + 60,
        user="root",
    )  # fmt: skip
    after = meters.read()
    submitted = submissions(lines)
    (up_ns,) = (int(words[1]) for words in lines if words[0] == "up")
    ((_, early, _),) = (words for words in lines if words[0] == "before")
    looks = [(int(w[1]), int(w[2]), int(w[3])) for w in lines if w[0] == "seen"]
    if not looks:
        raise BenchError("slurmctld never showed its queue")
    complete_ns = next((at for at, announced, pending in looks if announced == pending), None)
    _, announced, pending = looks[-1]
    submitting_s = (submitted[-1].returned_ns - submitted[0].called_ns) / 1e9
    errors = sum(words[4] != "0" for words in lines if words[0] == "took")
    peak = peak_nodes(
        (int(w[2]), int(w[3]), int(w[4]) * 60) for w in lines if w[0] == "plan" and int(w[3])
    )
    found: dict[str, object] = {
        "jobs": jobs,
        "nodes": stand.nodes,
        "submissions_per_s": round(jobs / submitting_s, 1),
        "all_announced_s": None if complete_ns is None else round((complete_ns - up_ns) / 1e9, 2),
        "watched_s": round((looks[-1][0] - up_ns) / 1e9, 1),
        "announced_before": int(early),
        "announced": announced,
        "pending": pending,
        "announced_share": round(announced / pending, 4) if pending else 1.0,
        "peak_nodes_planned": peak,
        "call_errors": errors,
        "load": load_between(before, after),
    }
    for kind in ("query", "submit", "cancel"):
        took_ms = [int(w[3]) / 1000 for w in lines if w[0] == "took" and w[1] == kind]
        found[f"{kind}_ms"] = spread(took_ms)
    if status := stand.service_status():
        found["service"] = {
            key: status[key] for key in ("cycles", "cycle_ms_last", "cycle_ms_p99") if key in status
        }
    return found


def peak_nodes(jobs: Iterable[tuple[int, int, int]]) -> int:
    """The maximum of nodes needed at once by jobs of (nodes, start_s, limit_s), half-open."""
    changes: list[tuple[int, int]] = []
    for nodes, start_s, limit_s in jobs:
        changes += [(start_s, nodes), (start_s + limit_s, -nodes)]
    used = peak = 0
    for _, change in sorted(changes):
        used += change
        peak = max(peak, used)
    return peak


def _fillers(nodes: int, rng: random.Random) -> list[str]:
    """Jobs that hold all nodes for longer than the measurement, with ends that spread."""
    lines = []
    while nodes:
        width = min(nodes, _log_uniform(_LARGEST_FILLER, rng))
        lines.append(job_line(width, rng.randint(120, 600), "sleep 7000"))
        nodes -= width
    return lines


def _queue(jobs: int, rng: random.Random) -> list[str]:
    """Jobs of 1 to 64 nodes, log-uniform, with common time limits."""
    return [
        job_line(_log_uniform(_LARGEST, rng), rng.choices(_LIMITS_MIN, _WEIGHTS)[0], "sleep 60")
        for _ in range(jobs)
    ]


def _log_uniform(largest: int, rng: random.Random) -> int:
    return int((largest + 1) ** rng.random())
