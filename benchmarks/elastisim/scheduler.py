# SPDX-License-Identifier: Apache-2.0
"""ElastiSim's scheduler process: carries out decisions that were made elsewhere.

Usage: scheduler.py DECISIONS URL, by an interpreter that has ElastiSim's Python interface.

DECISIONS is a JSON list of [time_s, job, nodes], in order of time: the job should have these nodes
from that time. A decision is carried out at the first invocation at or after its time at which

1. the job's earlier decisions have been carried out and have taken effect,
2. the nodes that it adds are free, and
3. no earlier decision waits for one of them.

Decisions on a job that has ended are dropped.
"""

import json
import sys
from pathlib import Path
from typing import Any

from elastisim_python import JobState, NodeState, pass_algorithm

_SETTLED = (JobState.PENDING, JobState.RUNNING)
_ENDED = (JobState.COMPLETED, JobState.KILLED)


def main() -> None:
    """Serves the simulator until it ends."""
    outstanding: list[tuple[float, int, list[int]]] = json.loads(Path(sys.argv[1]).read_text())

    def schedule(jobs: list[Any], nodes: list[Any], system: dict[str, Any]) -> None:
        claimed: set[int] = set()
        busy = {job.identifier for job in jobs if job.state not in _SETTLED}
        left = []
        for at, (time_s, number, wanted) in enumerate(outstanding):
            if time_s > system["time"] + 1e-6:
                left += outstanding[at:]
                break
            if number < len(jobs) and jobs[number].state in _ENDED:
                continue
            has = jobs[number].assigned_node_ids if number < len(jobs) else set()
            added = [nodes[each] for each in wanted if each not in has]
            free = all(
                node.state == NodeState.FREE and node.identifier not in claimed for node in added
            )
            claimed.update(node.identifier for node in added)
            if number >= len(jobs) or number in busy or not free:
                left.append((time_s, number, wanted))
            else:
                jobs[number].remove([nodes[each] for each in has if each not in wanted])
                jobs[number].assign(added)
            busy.add(number)
        outstanding[:] = left

    pass_algorithm(schedule, sys.argv[2])


if __name__ == "__main__":
    main()
