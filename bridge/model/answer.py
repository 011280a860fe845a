# SPDX-License-Identifier: Apache-2.0
"""What a solver answers, and what came of a dispatch: for those who count.

Reasons for which the greedy plan serves, as they are counted in the metrics

    settled     every job of the window starts as early as it may: nothing to gain
    small       no job can be said in the model, or none of them could start now
    late        the budget was spent before the solver could be asked
    starting    the solver's process was not ready yet
    timeout     no solution came in time
    crash       the solver's process ended
    infeasible  the solver says that there is no solution
    no gain     what came of it is no better than the greedy plan
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
    """The best solution that came in time.

    Attributes:
        values: (n,) int64 of the model's variables; None: there is none.
        objective: its value; inf without one.
        bound: no solution is lower.
        proved: nothing better exists.
        killed: the solver overran its budget and was ended.
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
    """What one cycle's dispatcher did.

    Attributes:
        jobs: in the window.
        greedy: objective of the greedy plan, over the whole queue.
        found: of the plan that serves; never more.
        gap: (cost - bound) / cost of the plan that serves, over the window; None: unknown: no
            bound was proved of all that its jobs may do.
        fallback: why the greedy plan serves; empty: it does not.
        killed: the solver overran its budget and was ended.
    """

    jobs: int
    greedy: float
    found: float
    gap: float | None = None
    fallback: str = ""
    killed: bool = False
