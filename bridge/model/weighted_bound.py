# SPDX-License-Identifier: Apache-2.0
"""A bound on a sum to which jobs add amounts that depend on their nodes; extensions state it.

Rules
    1. On each of its nodes a job adds the amount that is stated of it less the node's floor, not
       below 0; or, if nothing is stated, the node's weight. A job on a part of a node adds the
       same part of the weight, by its CPUs, rounded up.
    2. While the nodes of a job are unknown, it adds the maximum of the nodes that it may get.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.model.reasons import ReasonCode


@dataclass(frozen=True)
class Rise:
    """By how much a bound may leave more although no rule changes.

    Attributes:
        amount: in the unit of the bound.
        until: what keeps it from leaving more now, for users: "while idle nodes are on".
    """

    amount: int
    until: str


@dataclass(frozen=True)
class WeightedBound:
    """An upper bound over time, for one snapshot.

    Attributes:
        key: identifies it in all snapshots.
        label: for users: "upper bound of power".
        subject: what jobs wait for, for users: "power".
        code: the code of the reasons of jobs that wait for it.
        starts_s: (n_steps,) instants, ascending; the first is 0.
        upper: (n_steps,) the bound from there on; NEVER: none.
        rest: what is used of it without any job.
        floor: (n_nodes,) what is used of it on each node without a job.
        weight: (n_nodes,) the maximum that a job adds on each node.
        stated: (n_jobs,) the amount on each node that is stated of a waiting job; 0: none.
        running: (n_running,) what each running job adds.
        rise: by how much it may leave more although no rule changes.
    """

    key: str
    label: str
    subject: str
    unit: str
    code: ReasonCode
    starts_s: NDArray[np.int64]
    upper: NDArray[np.int64]
    rest: int
    floor: NDArray[np.int64]
    weight: NDArray[np.int64]
    stated: NDArray[np.int64]
    running: NDArray[np.int64]
    rise: Rise
