# SPDX-License-Identifier: Apache-2.0
"""Real clusters with switches, side by side: Slurm's topology/tree, and the bridge's `compact`.

The same jobs at the same instants go to clusters of 64 nodes (four pods of four leaf switches of
four), one for each opponent, concurrently, so that other load of the machine affects all equally.
The nodes and start times that are compared come from Slurm's own records.

    python benchmarks/placement/cluster.py --seeds 3 --json placement-cluster.json

Jobs hold whole nodes: U[1, 16] of them for U[2, 40] s (the paper's stream, U[1, 40] nodes of 1,000
for U[10, 1800] s, scaled down: from one node to all nodes below four leaf switches, or below one
pod). They arrive at random with an offered load of `--load` (inf: all at once). All have a time
limit of one minute, Slurm's shortest. A run of 150 jobs takes about nine minutes; runs need Docker
(`scripts/docker-engine`), the images of `scripts/cluster build`, and this package.

| opponent | |
|---|---|
| `slurm` | sched/backfill with its defaults, topology/tree |
| `slurm-tuned` | the same, looking every second (`slurm_conf/backfill-tuned.conf`) |
| `bridge` | preset `easy`, place `compact`; Slurm's topology/tree stays switched on |
| `bridge-wait` | jobs wait up to ten seconds for as few leaf switches as could hold them |
| `bridge-window` | jobs start every third second only, together |
| `-flat` | without switches |
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from about import about
from cluster_bench.stand import ROOT, BenchError, Stand, job_line
from results_file import write

from bridge.model.hop_tree import HopTree
from bridge.slurm.topology_conf import parse_topology

NODES, LARGEST, SHORTEST_S, LONGEST_S = 64, 16, 2, 40
_RECORDS = "/var/log/slurm/jobcomp.log"
_TREE = ("--topology", "tree")


@dataclass(frozen=True)
class Opponent:
    """A scheduler.

    Attributes:
        scheduler: of `scripts/cluster`.
        options: further ones of `up`.
        policy: the service's, as YAML; empty: there is no service.
        wait_s: of the service's `topology`.
    """

    name: str
    scheduler: str
    options: tuple[str, ...] = _TREE
    policy: str = ""
    wait_s: int = 0


OPPONENTS = (
    Opponent("slurm", "backfill", ("--no-bridge", *_TREE)),
    Opponent("slurm-tuned", "backfill-tuned", ("--no-bridge", *_TREE)),
    Opponent("slurm-tuned-flat", "backfill-tuned", ("--no-bridge",)),
    Opponent("bridge", "bridge", policy="{preset: easy, place: compact}"),
    Opponent("bridge-wait", "bridge", policy="{preset: easy, place: compact}", wait_s=10),
    Opponent(
        "bridge-window",
        "bridge",
        policy="{order: waiting-periods, plan: {name: window, period_s: 3}, place: compact}",
    ),
    Opponent("bridge-flat", "bridge", policy="easy"),
)


@dataclass(frozen=True)
class Job:
    """A job of the stream: its submission and its request."""

    at_s: float
    nodes: int
    length_s: int


def stream(jobs: int, load: float, seed: int) -> list[Job]:
    """Jobs that arrive at random.

    Args:
        jobs: how many.
        load: requested node time, as a share of the nodes' capacity meanwhile.
        seed: of chance.
    """
    chance = random.Random(seed)
    mean_node_s = (1 + LARGEST) / 2 * (SHORTEST_S + LONGEST_S) / 2
    at_s, found = 0.0, []
    for _ in range(jobs):
        found.append(Job(at_s, chance.randint(1, LARGEST), chance.randint(SHORTEST_S, LONGEST_S)))
        at_s += chance.expovariate(NODES * load / mean_node_s)
    return found


def run(opponent: Opponent, jobs: list[Job], name: str) -> list[dict[str, Any]]:
    """Runs the jobs on one cluster; the nodes and the start of each, in the order of submission."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        options = [
            *opponent.options,
            "--set", "JobCompType=jobcomp/filetxt", "--set", f"JobCompLoc={_RECORDS}",
        ]  # fmt: skip
        if opponent.policy:
            text = (ROOT / "slurm_conf/bridge.yaml").read_text()
            config.write(re.sub(r"(?m)^policy:.*$", f"policy: {opponent.policy}", text))
            if opponent.wait_s:
                config.write(
                    f"topology: {{file: /etc/slurm/topology.conf, wait_s: {opponent.wait_s}}}\n"
                )
            config.flush()
            options += ["--service-config", config.name]
        with Stand(name, opponent.scheduler, NODES, _say, options=options) as stand:
            return _measure(opponent, stand, jobs)


def _measure(opponent: Opponent, stand: Stand, jobs: list[Job]) -> list[dict[str, Any]]:
    before = _fallbacks(stand)
    submitted = stand.submit(
        (job_line(job.nodes, 1, f"sleep {job.length_s}", job.at_s) for job in jobs),
        timeout_s=jobs[-1].at_s + 300,
    )
    stand.wait_idle(600)
    records = _records(stand)
    started_ns = stand.allocated_ns()
    if opponent.policy:
        status = stand.service_status()
        report = {key: status[key] for key in ("policy", "decisions", "refusals")}
        _say(f"{opponent.name}: {report}")
        if _fallbacks(stand) > before:
            raise BenchError("the service fell silent, and Slurm's backfill took over meanwhile")
    found = []
    for job, sent in zip(jobs, submitted, strict=True):
        record = records.get(sent.job_id)
        if record is None or sent.job_id not in started_ns:
            raise BenchError(f"{opponent.name}: there is no record of job {sent.job_id}")
        held = _expand(record["NodeList"])
        if len(held) != job.nodes or record["JobState"] != "COMPLETED":
            raise BenchError(f"{opponent.name}: job {sent.job_id} ran otherwise: {record}")
        found.append(
            {
                "nodes": held,
                "submit_s": sent.called_ns / 1e9,
                "start_s": started_ns[sent.job_id] / 1e9,
                "end_s": datetime.fromisoformat(record["EndTime"]).replace(tzinfo=UTC).timestamp(),
            }
        )
    return found


def _fallbacks(stand: Stand) -> int:
    """How often Slurm's backfill took over; once is allowed while the cluster starts."""
    status: Any = stand.service_status().get("controller_status", {})
    return int(status.get("fallbacks", 0))


def _records(stand: Stand) -> dict[int, dict[str, str]]:
    done = subprocess.run(
        ["docker", "exec", f"{stand.name}-controller", "cat", _RECORDS],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = (dict(re.findall(r"(\w+)=(\S*)", line)) for line in done.stdout.splitlines())
    return {int(line["JobId"]): line for line in lines}


def _expand(nodes: str) -> list[int]:
    """Numbers from 0 of the nodes of a hostlist of one stem: `n[1-3,7]`."""
    found = []
    for part in nodes.removeprefix("n").strip("[]").split(","):
        low, _, high = part.partition("-")
        found += range(int(low) - 1, int(high or low))
    return found


def _hop_tree() -> HopTree:
    sys.path.insert(0, str(ROOT / "docker"))
    from cluster.switches import fat_tree  # noqa: PLC0415 - found once the path is

    return HopTree.of(parse_topology(fat_tree(NODES), [f"n{i + 1}" for i in range(NODES)]))


def figures(runs: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """The results of one opponent.

    Costs are of metric `paper`: 1,000 / n times the sum over ordered pairs of nodes, with 2, 4 and
    6 hops below one leaf switch, one pod, and across pods.
    """
    hop_tree = _hop_tree()
    topology = hop_tree.topology
    leaf = topology.leaf_of_node
    per_run = []
    for jobs in runs:
        wide = [job for job in jobs if len(job["nodes"]) > 1]
        sizes = np.array([len(job["nodes"]) for job in wide])
        cost = hop_tree.costs(_sets([sorted(job["nodes"]) for job in wide]))
        everywhere = np.arange(NODES, dtype=np.int32)
        least = [
            hop_tree.costs(
                hop_tree.tree.compact(hop_tree.metric, everywhere, np.array([n], np.int32))
            )[0]
            for n in sizes
        ]
        leaves = np.array([len(np.unique(leaf[job["nodes"]])) for job in wide])
        pods = np.array([len(np.unique(topology.parent[leaf[job["nodes"]]])) for job in wide])
        wait_s = np.array([job["start_s"] - job["submit_s"] for job in jobs])
        first, last = min(job["submit_s"] for job in jobs), max(job["end_s"] for job in jobs)
        per_run.append(
            {
                "cost": float(cost.sum()),
                "least_cost": float(sum(least)),
                "hops_per_pair": float((cost / 1000 * sizes).sum() / (sizes * (sizes - 1)).sum()),
                "leaf_switches": float(leaves.mean()),
                "least_leaf_switches": float((-(-sizes // 4)).mean()),
                "pods": float(pods.mean()),
                "across_pods": float((pods > 1).mean()),
                "wait_mean_s": float(wait_s.mean()),
                "wait_p90_s": float(np.quantile(wait_s, 0.9)),
                "makespan_s": float(last - first),
            }
        )
    return {
        "mean": {key: float(np.mean([one[key] for one in per_run])) for key in per_run[0]},
        "runs": per_run,
    }


def _sets(sets: list[list[int]]) -> tuple[Any, Any]:
    indptr = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    return indptr, np.array([node for one in sets for node in one], dtype=np.int32)


def table(found: dict[str, Any]) -> str:
    """Markdown: one line per opponent; hops relative to the first one, mean and range over runs."""
    lines = [
        "| | hops, to the first (range) | to the least possible | hops per pair "
        "| leaf switches per job | jobs across pods | mean wait, s | p90 wait, s | makespan, s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    first = next(iter(found.values()))
    for name, one in found.items():
        mean = one["mean"]
        shares = [
            mine["cost"] / other["cost"]
            for mine, other in zip(one["runs"], first["runs"], strict=True)
        ]
        lines.append(
            f"| `{name}` | {mean['cost'] / first['mean']['cost']:.3f} "
            f"({min(shares):.3f} to {max(shares):.3f}) "
            f"| {mean['cost'] / mean['least_cost']:.3f} | {mean['hops_per_pair']:.2f} "
            f"| {mean['leaf_switches']:.2f} ({mean['least_leaf_switches']:.2f} needed) "
            f"| {100 * mean['across_pods']:.0f} % | {mean['wait_mean_s']:.1f} "
            f"| {mean['wait_p90_s']:.1f} | {mean['makespan_s']:.0f} |"
        )
    return "\n".join(lines)


def _keep(path: Path, name: str, entry: dict[str, Any]) -> None:
    """Writes an entry into the file and keeps its other entries."""
    body = json.loads(path.read_text()) if path.exists() else {}
    write(path, {**body, name: entry})


def _say(text: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Help)
    names = [one.name for one in OPPONENTS]
    parser.add_argument("--seeds", type=int, default=2, help="runs, each with its own stream")
    parser.add_argument("--first-seed", type=int, default=1, help="of the first run")
    parser.add_argument("--jobs", type=int, default=150, help="of a run")
    parser.add_argument("--load", type=float, default=0.85, help="offered, as a share of all nodes")
    parser.add_argument("--opponents", nargs="+", choices=names, default=names)
    parser.add_argument("--note", default="", help="a note beside the load, to distinguish entries")
    parser.add_argument("--name", default="tp", help="stem of the clusters' names")
    parser.add_argument("--json", type=Path, help="write there after each run; other loads stay")
    parser.add_argument("--show", type=Path, help="only print the tables of this file")
    given = parser.parse_args()
    if given.show:
        for name, entry in json.loads(given.show.read_text()).items():
            print(
                f"{name}, {len(entry['load_average_5min'])} runs\n\n{table(entry['opponents'])}\n"
            )
        return 0
    opponents = [one for one in OPPONENTS if one.name in given.opponents]
    runs: dict[str, list[list[dict[str, Any]]]] = {one.name: [] for one in opponents}
    loads = []
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        jobs = stream(given.jobs, given.load, seed)
        with ThreadPoolExecutor(len(opponents)) as pool:
            parts = [
                pool.submit(run, one, jobs, f"{given.name}{i}") for i, one in enumerate(opponents)
            ]
            done = [part.result() for part in parts]
        loads.append(os.getloadavg()[1])
        for one, result in zip(opponents, done, strict=True):
            runs[one.name].append(result)
        found = {name: figures(results) for name, results in runs.items()}
        print(table(found), flush=True)
        if given.json:
            entry = {
                **about(),
                "load_average_5min": loads,
                "nodes": NODES, "jobs": given.jobs, "first_seed": given.first_seed,
                "opponents": found,
            }  # fmt: skip
            _keep(given.json, f"load {given.load:g}{given.note and f', {given.note}'}", entry)
    return 0


class _Help(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    pass


if __name__ == "__main__":
    sys.exit(main())
