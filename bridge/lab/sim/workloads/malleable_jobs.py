# SPDX-License-Identifier: Apache-2.0
"""Makes a share of a trace's jobs malleable.

Rules
    1. Which jobs, and how well each scales, is drawn from the seed: the same for every policy.
    2. A malleable job requests the trace's number of nodes. It may run on a quarter of that,
       rounded up, to four times that, at most the whole machine.
    3. Speed-ups and costs of changes are those of `bridge.lab.sim.workloads.esp`.
"""

from dataclasses import replace

import numpy as np

from bridge.errors import ConfigError
from bridge.lab.sim.workloads.change_costs import JOIN, ChangeCosts
from bridge.lab.sim.workloads.esp import SERIAL, misread
from bridge.lab.sim.workloads.speedup import Speedup, drawn
from bridge.lab.sim.workloads.workload import Malleable, Workload

WIDER = 4
"""The least and the largest width are so many times less and more than what is asked for."""


def with_malleable(
    workload: Workload,
    percent: float,
    *,
    seed: int = 0,
    changes: ChangeCosts = JOIN,
    mtct_error: float = 0.0,
    speedup: Speedup | None = None,
) -> Workload:
    """The workload with some of its jobs malleable.

    Args:
        percent: how many, 0 to 100.
        changes: see `bridge.lab.sim.workloads.esp.esp`.
        mtct_error: see `bridge.lab.sim.workloads.esp.esp`.
        speedup: see `bridge.lab.sim.workloads.esp.esp`.

    Raises:
        ConfigError: an impossible share.
    """
    if not 0 <= percent <= 100:
        raise ConfigError("share", f"{percent:g} is not a percentage")
    n = len(workload)
    rng = np.random.default_rng(seed)
    chosen = np.zeros(n, dtype=bool)
    chosen[rng.permutation(n)[: round(n * percent / 100)]] = True
    serial = rng.uniform(0.0, SERIAL, n)
    requested = workload.processors
    maximum = np.minimum(WIDER * requested, workload.processors_total)
    return replace(
        workload,
        malleable=Malleable(
            min_nodes=np.where(chosen, -(-requested // WIDER), 0),
            max_nodes=np.where(chosen, maximum, 0),
            width_rule=np.zeros(n, dtype=np.int8),
            nominal=requested,
            speedup=drawn(serial) if speedup is None else np.full(n, speedup, dtype=object),
            changes=changes,
            misread=misread(n, seed, mtct_error),
        ),
    )
