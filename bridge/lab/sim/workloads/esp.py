# SPDX-License-Identifier: Apache-2.0
"""The ESP workload: 230 jobs of 14 types, some of them malleable.

Rules
    1. A type's size is its fraction of the machine, rounded, at least one node.
    2. The jobs are submitted `INTERVAL_S` apart, in an order drawn from the seed; which of them are
       malleable is drawn from it, too. Both are the same for every policy.
    3. A job takes its type's time at its type's size. Its time limit is `LIMIT` times that.
    4. A malleable job asks for its type's size. It may run on 1 to all nodes, or from the smallest
       to the largest number that its type's constraint allows, and start on any of them where the
       policy says so.
    5. How fast a job is at another width follows Amdahl's law, with a serial fraction drawn from
       the seed for each job, uniformly up to `SERIAL`.
    6. A change of width takes what was measured of the engine `join`
       (`bridge.lab.sim.workloads.change_costs`), unless other costs are given.

Source: ESP-2, with the job mix of Georgiou and Hautreux, JSSPP 2012, Table 1, and the constraints
of Chadha, John and Gerndt, HiPC 2020, Table I.
Deviates: that paper gives no speed-ups (its jobs are real programs) and no time limits; rules 3, 5
and 6 are ours. Jobs of type Z are submitted like all others.
"""

import json
from importlib.resources import files
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.lab.sim.workloads.change_costs import JOIN, ChangeCosts
from bridge.lab.sim.workloads.speedup import Speedup, drawn
from bridge.lab.sim.workloads.swf import Field, Trace
from bridge.lab.sim.workloads.workload import Malleable, Workload
from bridge.model.job import WidthRule

ESP_NODES: Final = 32
INTERVAL_S: Final = 30
LIMIT: Final = 1.5
SERIAL: Final = 0.1
_FIRST_S: Final = 1


def esp(
    malleable_percent: float,
    *,
    nodes: int = ESP_NODES,
    seed: int = 0,
    changes: ChangeCosts = JOIN,
    mtct_error: float = 0.0,
    speedup: Speedup | None = None,
) -> Workload:
    """The workload, for a pool of nodes.

    Args:
        malleable_percent: how many of the jobs are malleable, 0 to 100.
        nodes: size of the machine.
        seed: the seed of the order, of which jobs are malleable, and of their speed-ups.
        changes: what changes of width take.
        mtct_error: half of the jobs report more communication than they have, by this share, the
            others less by the same factor.
        speedup: the speedup of every job; None: as rule 5 says.

    Raises:
        ConfigError: an impossible share or size.
    """
    if not 0 <= malleable_percent <= 100:
        raise ConfigError("trace", f"esp: {malleable_percent:g} is not a percentage")
    if nodes < 1:
        raise ConfigError("procs", "esp needs at least one node")
    mix = json.loads(files("bridge.lab.sim").joinpath("data/esp_jobmix.json").read_text())["jobs"]
    types = [kind for kind in mix for _ in range(kind["count"])]
    n = len(types)
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    serial = rng.uniform(0.0, SERIAL, n)
    chosen = np.zeros(n, dtype=bool)
    chosen[rng.permutation(n)[: round(n * malleable_percent / 100)]] = True
    types = [types[at] for at in order]
    size = np.array([max(round(kind["fraction"] * nodes), 1) for kind in types], dtype=np.int64)
    runtime_s = np.array([kind["static_s"] for kind in types], dtype=np.int64)
    bounds = [_bounds(kind["constraint"], nodes) for kind in types]
    unknown = np.full(n, -1, dtype=np.int64)
    names = sorted({kind["type"] for kind in types})
    return Workload(
        name=f"ESP, {malleable_percent:g} % malleable, seed {seed}",
        processors_total=nodes,
        id=np.array([str(at + 1) for at in range(n)], dtype=object),
        submit_s=_FIRST_S + INTERVAL_S * np.arange(n, dtype=np.int64),
        runtime_s=runtime_s,
        time_limit_s=np.ceil(LIMIT * runtime_s).astype(np.int64),
        processors=np.minimum(size, nodes),
        memory_kib=np.zeros(n, dtype=np.int64),
        user=unknown,
        group=unknown,
        executable=np.array([names.index(kind["type"]) for kind in types], dtype=np.int64),
        queue=unknown,
        row=np.arange(n, dtype=np.int64),
        left_out={},
        malleable=Malleable(
            min_nodes=np.where(chosen, [minimum for minimum, _, _ in bounds], 0),
            max_nodes=np.where(chosen, [maximum for _, maximum, _ in bounds], 0),
            width_rule=np.array([rule for *_, rule in bounds], dtype=np.int8),
            nominal=np.minimum(size, nodes),
            speedup=drawn(serial) if speedup is None else np.full(n, speedup, dtype=object),
            changes=changes,
            misread=misread(n, seed, mtct_error),
        ),
    )


def as_trace(workload: Workload) -> Trace:
    """The workload as a trace, in which malleable jobs are rigid."""
    columns = np.full((len(workload), len(Field)), -1.0)
    columns[:, Field.JOB] = np.arange(1, len(workload) + 1)
    columns[:, Field.SUBMIT_S] = workload.submit_s - _FIRST_S
    columns[:, Field.RUNTIME_S] = workload.runtime_s
    columns[:, Field.ALLOCATED_PROCESSORS] = workload.processors
    columns[:, Field.REQUESTED_PROCESSORS] = workload.processors
    columns[:, Field.REQUESTED_TIME_S] = workload.time_limit_s
    columns[:, Field.EXECUTABLE] = workload.executable
    header = (f"Note: {workload.name}", f"MaxProcs: {workload.processors_total}")
    return Trace(workload.name, header, columns)


def misread(n_jobs: int, seed: int, error: float) -> NDArray[np.float64]:
    """(n_jobs,) measured over true MTCT."""
    wrong = np.full(n_jobs, 1.0 + error)
    wrong[np.random.default_rng((seed, 1)).random(n_jobs) < 0.5] = 1.0 / (1.0 + error)
    return wrong


def _bounds(constraint: str | None, nodes: int) -> tuple[int, int, WidthRule]:
    """Least and most nodes of a type's malleable jobs, and their rule."""
    rule = WidthRule[constraint.upper()] if constraint else WidthRule.ANY
    widths = [width for width in range(1, nodes + 1) if rule.allows(width)]
    return min(widths, default=1), max(widths, default=1), rule
