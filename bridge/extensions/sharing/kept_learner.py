# SPDX-License-Identifier: Apache-2.0
"""The learner as it is kept between cycles, in whole numbers."""

from dataclasses import replace
from typing import Final

import numpy as np

from bridge.extensions.sharing.learner import Learner
from bridge.model.learnt import Learning, Learnt

ASAX: Final = "asax"
"""The name of this part of `bridge.ports.State.learnt`."""
RISK, COUNTS = "risk", "counts"
"""Keys: the risk of each expert, in order; and the decisions, the risk of the mixture, and the
bound. All except the decisions are in units of `TINY`."""
TINY: Final = 1e-9


def read_learner(learning: Learning | Learnt, n_experts: int) -> Learner:
    """What was learnt; nothing if it was learnt with other experts."""
    risk, counts = learning.known.get(RISK), learning.known.get(COUNTS)
    if risk is None or counts is None or len(risk) != n_experts or len(counts) != 3:
        return Learner.new(n_experts)
    if min(risk) < 0 or min(counts) < 0:
        return Learner.new(n_experts)
    return replace(
        Learner(np.array(risk, dtype=np.float64) * TINY),
        decisions=counts[0],
        mixture_risk=counts[1] * TINY,
        allowed=counts[2] * TINY,
    )


def write_learner(learning: Learning, learner: Learner) -> None:
    """Keeps what was learnt."""
    learning.known[RISK] = [round(each / TINY) for each in learner.risk.tolist()]
    learning.known[COUNTS] = [
        learner.decisions, round(learner.mixture_risk / TINY), round(learner.allowed / TINY),
    ]  # fmt: skip
