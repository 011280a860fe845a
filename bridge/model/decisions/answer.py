# SPDX-License-Identifier: Apache-2.0
"""The answer of a solver, and the statistics of a dispatcher.

Reasons why the greedy plan is used, as counted in the metrics

    settled     every job of the window starts as early as possible: there is nothing to gain
    small       the model can represent no job, or none of them could start now
    late        the budget was spent before the solver could be called
    starting    the solver's process was not ready yet
    timeout     no solution was found in time
    crash       the solver's process ended
    infeasible  the solver reports that there is no solution
    no gain     the solver's plan is no better than the greedy plan
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

SETTLED: Final = "settled"
SMALL: Final = "small"
LATE: Final = "late"
STARTING: Final = "starting"
TIMEOUT: Final = "timeout"
CRASH: Final = "crash"
INFEASIBLE: Final = "infeasible"
NO_GAIN: Final = "no gain"


@dataclass(frozen=True)
class Answer:
    """The best solution found in time.

    Attributes:
        values: (n,) int64 of the model's variables; None: there is none.
        objective: its value; inf without one.
        bound: lower bound on the objective of any solution.
        proved: the solution is proved optimal.
        killed: the solver exceeded its budget and was killed.
        problem: why there is no solution; one of the reasons above.
    """

    values: NDArray[np.int64] | None
    objective: float = float("inf")
    bound: float = float("-inf")
    proved: bool = False
    killed: bool = False
    problem: str = ""


@dataclass(frozen=True)
class Dispatched:
    """Statistics of the dispatcher in one cycle.

    Attributes:
        jobs: number in the window.
        greedy: objective of the greedy plan, over the whole queue.
        found: objective of the plan used; never higher.
        gap: (cost - bound) / cost of the plan used, over the window; None: no bound was proved over
            all schedules of its jobs.
        fallback: why the greedy plan is used; empty: it is not.
        killed: the solver exceeded its budget and was killed.
    """

    jobs: int
    greedy: float
    found: float
    gap: float | None = None
    fallback: str = ""
    killed: bool = False
