#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The size of the dispatchers' models by the size of the system: a table, JSON and a plot.

`model_size.py [--json FILE] [--svg FILE]`. The same ten jobs (seeded; 1 to 8 units of cores and
memory, some with GPUs or MICs) on systems like Eurora of 16 to 1,024 nodes: half of the nodes have
two GPUs, half two MICs; each node runs one job for a while. The models contain all nodes: PCP'20,
as used in the product, leaves out those that no solution needs.

| count | is |
|---|---|
| variables | decision variables as the paper counts them: PCP'20 |Q| + sum rn_i * |R_i| |
| all | with the auxiliary ones: PCP'20 has one more for each unit, its node |
| constraints | with intervals; running jobs are constants, but their intervals grow with the system
|
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from about import about
from results_file import write

from bridge.papers.dispatch import hcp19, pcp19, pcp20
from bridge.papers.dispatch.instance import Instance, ResourceUnit, Unavailable, WindowJob

HERE = Path(__file__).resolve().parent
SIZES = (16, 32, 64, 128, 256, 512, 1024)
CORES, MEMORY_GB, ACCELERATORS = 16, 16, 2
RESOURCES = ("cpus", "mem", "gpu", "mic")


def instance(n_nodes: int, n_jobs: int = 10, seed: int = 1) -> Instance:
    """The same jobs on a number of nodes."""
    dice = np.random.default_rng(seed)
    capacity = np.tile([CORES, MEMORY_GB, ACCELERATORS, 0], (n_nodes, 1))
    capacity[n_nodes // 2 :, 2:] = [0, ACCELERATORS]
    everywhere = tuple(range(n_nodes))
    halves = {2: everywhere[: n_nodes // 2], 3: everywhere[n_nodes // 2 :]}
    jobs, at_s = [], 100
    for _ in range(n_jobs):
        want = [int(dice.integers(1, 9)), int(dice.integers(1, 9)), 0, 0]
        nodes = everywhere
        if dice.random() < 0.4:
            kind = int(dice.integers(2, 4))
            want[kind], nodes = int(dice.integers(1, 3)), halves[kind]
        units = 2 ** int(dice.integers(0, 4))
        length_s = int(dice.integers(60, 7200))
        place = tuple(sorted(nodes[j] for j in range(units)))
        unit = ResourceUnit(0, tuple(want), nodes)
        jobs.append(
            WindowJob(
                -int(dice.integers(0, 3600)), 0, length_s, (unit,) * units, False, (0,), at_s, place
            )
        )
        at_s += length_s
    used = tuple((Unavailable(0, 10 + n % 90, (8, 4, 0, 0)),) for n in range(n_nodes))
    return Instance(
        tuple(jobs), RESOURCES, capacity, used, np.zeros(n_nodes, dtype=np.int64)
    )  # fmt: skip


def measure(n_nodes: int) -> list[dict[str, Any]]:
    """All three models on one system."""
    window = instance(n_nodes)
    weights = [1] * len(window.jobs)
    rows = []
    for name, build in (
        ("hcp19", hcp19.build), ("pcp19", pcp19.build), ("pcp20", pcp20.build)
    ):  # fmt: skip
        began = time.perf_counter()
        model = build(window, weights).model
        took_ms = 1000 * (time.perf_counter() - began)
        every = len(model.proto.variables)
        rows.append({
            "policy": name, "nodes": n_nodes, "jobs": len(window.jobs), "units": window.n_units,
            "variables": every - (window.n_units if name == "pcp20" else 0), "all": every,
            "constraints": len(model.proto.constraints), "build_ms": round(took_ms, 1),
        })  # fmt: skip
    return rows


def plot(rows: list[dict[str, Any]], file: Path) -> None:
    """Variables by nodes, both axes logarithmic."""
    import matplotlib as mpl  # noqa: PLC0415  only for a plot

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "model size"
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(6.5, 4))
    labels = {"pcp19": "PCP'19", "pcp20": "PCP'20", "hcp19": "HCP'19 (starts only)"}
    for name, label in labels.items():
        own = [row for row in rows if row["policy"] == name]
        axes.plot(
            [row["nodes"] for row in own], [row["all"] for row in own], marker="o", label=label
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("nodes")
    axes.set_ylabel("variables, auxiliary ones included")
    axes.set_title(f"The same {rows[0]['jobs']} jobs ({rows[0]['units']} units)")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    """Measures, shows, writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    rows = [row for n_nodes in SIZES for row in measure(n_nodes)]
    print("| nodes | PCP'19 | PCP'20 | with auxiliary | HCP'19 | build, ms: PCP'19 | PCP'20 |")
    print("|---|---|---|---|---|---|---|")
    for n_nodes in SIZES:
        own = {row["policy"]: row for row in rows if row["nodes"] == n_nodes}
        old, new, starts = own["pcp19"], own["pcp20"], own["hcp19"]
        print(
            f"| {n_nodes} | {old['variables']} | {new['variables']} | {new['all']} "
            f"| {starts['variables']} | {old['build_ms']} | {new['build_ms']} |"
        )
    if options.json:
        found = {**about(), "resources": RESOURCES, "rows": rows}
        write(options.json, found)
    if options.svg:
        plot(rows, options.svg)


if __name__ == "__main__":
    main()
