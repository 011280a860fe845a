# SPDX-License-Identifier: Apache-2.0
"""The workload of the first evaluation of malleable jobs in a power corridor.

Rules
    1. 20 jobs, alternately Pi and heat, are submitted 2 s apart to 14 nodes. Each asks for 1 to 4
       nodes, by the seed, and may have 1 to 14 while it runs.
    2. An idle node draws 71 W. The models are 170 W a node for Pi and 250 W for heat; a job draws
       up to 10 % more or less, by the seed, and states that range.
    3. The corridor is 1700 to 2500 W, from `LOWER_S` on 1000 to 1700 W, and from `HIGHER_S` on 2500
       to 3500 W. No policy knows a change before it happens. The grace is 10 s.
    4. A job runs for `RUNTIME_S` on the nodes that it asks for, by the seed; its time limit is
       `LIMIT` times that. Pi and heat scale by Amdahl's law with the serial fractions of `_KINDS`.

Source: M. Chadha, J. John, M. Gerndt, Extending SLURM for Dynamic Resource-Aware Adaptive Batch
Scheduling, HiPC 2020, section VI-C.
Deviates: it states neither how long the jobs run, nor how they scale, nor when the corridor
changes, nor a grace: rule 4, the instants and the 10 s are ours, and so is the error of rule 2.
"""

from typing import Final

import numpy as np

from bridge.extensions.power.rules import NodePower
from bridge.lab.sim.corridor.steps import CorridorStep, CorridorSteps
from bridge.lab.sim.workloads.change_costs import JOIN
from bridge.lab.sim.workloads.job_power import drawn_around
from bridge.lab.sim.workloads.speedup import drawn
from bridge.lab.sim.workloads.workload import Malleable, Workload
from bridge.model.rules.node_set import NodeSet

JOBS: Final = 20
PAPER_NODES: Final = 14
INTERVAL_S: Final = 2
ERROR: Final = 0.1
RUNTIME_S: Final = (180, 300)
LIMIT: Final = 2
LOWER_S: Final = 300
HIGHER_S: Final = 600
_FIRST_S: Final = 1
_KINDS: Final = ((170.0, 0.01), (250.0, 0.05))
"""Model in W a node and serial fraction of Pi, and of heat."""

PAPER_NODE: Final = NodePower("paper", NodeSet(), idle_w=71, max_w=275)

PAPER_CORRIDOR: Final = CorridorSteps(
    (
        CorridorStep(0, 1700, 2500),
        CorridorStep(LOWER_S, 1000, 1700),
        CorridorStep(HIGHER_S, 2500, 3500),
    ),
    grace_s=10,
)


def power_paper(
    *,
    seed: int = 0,
    error: float = ERROR,
) -> Workload:
    """The workload, for a pool of `PAPER_NODES` nodes.

    Args:
        seed: the seed of sizes, run times, and what the jobs draw.
        error: by how much that differs from the model at most, as a share of it.

    Raises:
        ConfigError: an impossible error.
    """
    rng = np.random.default_rng(seed)
    nodes = rng.integers(1, 4, JOBS, endpoint=True)
    runtime_s = rng.integers(*RUNTIME_S, JOBS, endpoint=True)
    kind = np.arange(JOBS) % len(_KINDS)
    model_w, serial = np.array(_KINDS)[kind].T
    unknown = np.full(JOBS, -1, dtype=np.int64)
    return Workload(
        name=f"Pi and heat, seed {seed}",
        processors_total=PAPER_NODES,
        id=np.array([str(at + 1) for at in range(JOBS)], dtype=object),
        submit_s=_FIRST_S + INTERVAL_S * np.arange(JOBS, dtype=np.int64),
        runtime_s=runtime_s,
        time_limit_s=LIMIT * runtime_s,
        processors=nodes,
        memory_kib=np.zeros(JOBS, dtype=np.int64),
        user=unknown,
        group=unknown,
        executable=kind,
        queue=unknown,
        row=np.arange(JOBS, dtype=np.int64),
        left_out={},
        malleable=Malleable(
            min_nodes=np.ones(JOBS, dtype=np.int64),
            max_nodes=np.full(JOBS, PAPER_NODES, dtype=np.int64),
            width_rule=np.zeros(JOBS, dtype=np.int8),
            nominal=nodes,
            speedup=drawn(serial),
            changes=JOIN,
        ),
        power=drawn_around(model_w, PAPER_NODE, error=error, seed=seed),
    )
