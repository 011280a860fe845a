# SPDX-License-Identifier: Apache-2.0
"""Measures of the effect of shared nodes on a simulated schedule, defined once.

| key | meaning |
|---|---|
| guests | jobs that began as guests, in their last run |
| hosts | jobs that had a guest for some time |
| pair_h | hours of pairs |
| cpu_use | CPU time used over CPUs * makespan |
| memory_use | memory used over memory * makespan, by nodes |
| host_slowdown | delay by guests over the run time alone: mean of hosts, 95 %, maximum |
| guest_slowdown | likewise of guests by their hosts: mean, 95 %, maximum |
| above_bound | share of the hosts that were slowed down by more than `BOUND` |
| above_s | how long such a slowdown lasted, s: of hosts that had it: mean, 95 %, maximum |
| overrun | share of all jobs that ran beyond their own time limit |
| hosts_overrun | share of the hosts that ran beyond their limit as lengthened, because of guests |
| extended | share of the hosts whose limit was lengthened |
| extended_s | by how much, s: of these hosts: mean, 95 %, maximum |
| killed | jobs killed at their time limit |
| requeued | how often a guest was requeued |
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.lab.sim.runs.simulation_result import SimulationResult
from bridge.lab.sim.sharing.progress import BOUND
from bridge.measures import makespan_s

__all__ = ["BOUND", "sharing_measures"]


def sharing_measures(result: SimulationResult) -> dict[str, Any]:
    """The measures of the module's table.

    Args:
        result: with `SimulationResult.sharing`, all jobs ended.
    """
    log, schedule, workload = result.sharing, result.schedule, result.workload
    assert log is not None
    guest = log.host >= 0
    host = ~guest & (log.shared_s > 0)
    slower = log.lost_s / workload.runtime_s
    span_s = max(makespan_s(schedule), 1)
    widths = np.diff(result.indptr)
    ran_s = np.where(schedule.finished, schedule.end_s - schedule.start_s, 0)
    limit_s = workload.time_limit_s
    late, in_time = ran_s > limit_s + log.extended_s, workload.runtime_s <= limit_s
    extended = host & (log.extended_s > 0)
    return {
        "guests": int(guest.sum()),
        "hosts": int(host.sum()),
        "pair_h": round(float(log.shared_s[guest].sum()) / 3600, 2),
        "cpu_use": round(float(log.cpu_s.sum()) / (result.system.processors * span_s), 4),
        "memory_use": round(
            float((log.memory_s * widths).sum()) / (len(result.system.nodes) * span_s), 4
        ),
        "host_slowdown": _spread(slower[host]),
        "guest_slowdown": _spread(slower[guest]),
        "above_bound": round(float((slower[host] > BOUND).mean()), 4) if host.any() else 0.0,
        "above_s": _spread(log.above_s[host & (log.above_s > 0)]),
        "overrun": round(float((ran_s > limit_s).mean()), 4),
        "hosts_overrun": round(float((late & in_time)[host].mean()), 4) if host.any() else 0.0,
        "extended": round(float(extended[host].mean()), 4) if host.any() else 0.0,
        "extended_s": _spread(log.extended_s[extended].astype(np.float64)),
        "killed": int(log.killed.sum()),
        "requeued": int(log.requeued.sum()),
    }


def _spread(values: NDArray[np.float64]) -> dict[str, float]:
    if not len(values):
        return {"mean": 0.0, "p95": 0.0, "most": 0.0}
    found = float(values.mean()), float(np.percentile(values, 95)), float(values.max())
    return dict(zip(("mean", "p95", "most"), (round(each, 4) for each in found), strict=True))
