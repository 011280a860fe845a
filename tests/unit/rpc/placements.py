# SPDX-License-Identifier: Apache-2.0
"""Placements of running jobs, as a controller reports them."""

from dataclasses import replace

import numpy as np

from bridge.rpc.agents.job_placement import JobPlacement
from schedbridge_contracts.builders import a_running_job, a_snapshot


def a_placement(nodes_of, *, numbers=None, users=None):
    """Jobs by id with the names of their nodes, n1 to n12.

    Args:
        nodes_of: "7": "n1 n2".
        numbers: of tasks of arrays on their nodes, by id.
        users: by id; ann where none is named.
    """
    numbers, users = numbers or {}, users or {}
    running = [
        a_running_job(
            tuple(sorted(int(name[1:]) - 1 for name in names.split())),
            id=job,
            user=users.get(job, "ann"),
        )
        for job, names in nodes_of.items()
    ]
    snapshot = a_snapshot(nodes=12, running=running)()
    number = np.array([int(numbers.get(job, 0)) for job in nodes_of], dtype=np.int64)
    return JobPlacement(replace(snapshot.running, number=number), snapshot.nodes.names)
