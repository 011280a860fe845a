# SPDX-License-Identifier: Apache-2.0
"""Chooses a guest's CPU quota by a mixture of experts, and learns from the loss of its choices.

Terms
    E, p_i(a|s)   number of experts; the distribution of expert i over actions (quotas) for host s
    R_i           accumulated risk of expert i
    w_i           its weight in the mixture
    gamma_t       learning rate of the t-th decision

Rules
    1. p(a|s) = sum_i w_i p_i(a|s), with w_i in proportion to exp(-gamma_t R_i) and
       gamma_t = sqrt(8 ln E / t), which never increases. An action is drawn from p.
    2. When the loss l of action a is known: R_i grows by p_i(a|s) l.
    3. On one host guests follow each other until the host's losses sum to `threshold`. Then its
       sum is reset, and no further guest is placed there in this round (Algorithm 1: the inner
       loop ends, and the outer one goes on with another allocation).
    4. Excess risk after T decisions, sum_t sum_i w_i p_i(a_t|s_t) l_t - min_i R_i, is at most
       ln(E) / gamma_T + sum_t gamma_t / 8, whatever the losses and the actions are.

Source: as of `observation.py`, section 3.2, Algorithm 1 and Theorem 1.
Deviates: our copy lacks the equations and the algorithm, so all rules are reconstructed from the
prose and from the outline of the proof. Losses arrive late and in any order; a decision is charged
with the advice given when it was made. Rule 4 bounds the risk of the actions that were taken, not
the loss of an expert's own actions: p_i(a|s) l is not an unbiased estimate of it, so an expert that
avoids the actions taken so far seems to be without risk.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.sharing.experts import QUOTAS_PERCENT, Expert
from bridge.extensions.sharing.observation import Observation

THRESHOLD: Final = 1.0
"""Sum of a host's losses at which it gets no further guest (the paper states no value)."""


@dataclass(frozen=True)
class Choice:
    """A decision whose loss is not known yet.

    Attributes:
        quota_percent: the guest's share of the CPUs; 0: no guest.
        advice: (n_experts,) float64, p_i(a|s) of this action.
    """

    quota_percent: int
    advice: NDArray[np.float64]


@dataclass(frozen=True)
class Learner:
    """What was learnt; replaced, never changed.

    Attributes:
        risk: (n_experts,) float64, R_i.
        decisions: t, losses that are known.
        mixture_risk, allowed: the terms of rule 4: the risk of the mixture, and sum_t gamma_t / 8.
    """

    risk: NDArray[np.float64]
    decisions: int = 0
    mixture_risk: float = 0.0
    allowed: float = 0.0

    @staticmethod
    def new(n_experts: int) -> "Learner":
        """Returns one that knows nothing.

        Raises:
            ValueError: there are no experts.
        """
        if n_experts < 1:
            raise ValueError("no experts")
        return Learner(np.zeros(n_experts))

    @property
    def rate(self) -> float:
        """gamma_t of the next decision."""
        return math.sqrt(8 * math.log(len(self.risk)) / (self.decisions + 1))

    def weights(self) -> NDArray[np.float64]:
        """w_i, (n_experts,) float64, sum 1."""
        weight: NDArray[np.float64] = np.exp(-self.rate * (self.risk - self.risk.min()))
        weight /= weight.sum()
        return weight

    def mixture(self, experts: Sequence[Expert], host: Observation) -> NDArray[np.float64]:
        """p(a|s), (n_quotas,) float64, sum 1; O(n_experts)."""
        return self.weights() @ _advice(experts, host)

    def choose(
        self, experts: Sequence[Expert], host: Observation, rng: np.random.Generator
    ) -> Choice:
        """Draws an action from the mixture."""
        advice = _advice(experts, host)
        probability = self.weights() @ advice
        action = int(rng.choice(len(QUOTAS_PERCENT), p=probability / probability.sum()))
        return Choice(QUOTAS_PERCENT[action], advice[:, action])

    def told(self, choice: Choice, loss: float) -> "Learner":
        """Returns what is known after the loss of a choice.

        Args:
            loss: 0 to 1; see `observation.overrun_loss`.

        Raises:
            ValueError: the loss is out of range, or the choice was made by other experts.
        """
        if not 0 <= loss <= 1:
            raise ValueError(f"loss {loss} is not between 0 and 1")
        if len(choice.advice) != len(self.risk):
            raise ValueError(f"advice of {len(choice.advice)} experts, not {len(self.risk)}")
        risk = choice.advice * loss
        return replace(
            self,
            risk=self.risk + risk,
            decisions=self.decisions + 1,
            mixture_risk=self.mixture_risk + float(self.weights() @ risk),
            allowed=self.allowed + self.rate / 8,
        )

    def excess_risk(self) -> float:
        """The left side of rule 4."""
        return self.mixture_risk - float(self.risk.min())

    def bound(self) -> float:
        """The right side of rule 4; 0 before the first loss."""
        if not self.decisions:
            return 0.0
        last = math.sqrt(8 * math.log(len(self.risk)) / self.decisions)
        return (math.log(len(self.risk)) / last if last else 0.0) + self.allowed


def _advice(experts: Sequence[Expert], host: Observation) -> NDArray[np.float64]:
    return np.array([expert.advise(host) for expert in experts])


@dataclass(frozen=True)
class HostRound:
    """The losses of one host (rule 3).

    Attributes:
        loss: sum since the last reset.
        closed: it gets no further guest in this round.
    """

    loss: float = 0.0
    closed: bool = False

    def after(self, loss: float, threshold: float = THRESHOLD) -> "HostRound":
        """Returns the state after one more loss."""
        total = self.loss + loss
        return HostRound(0.0, closed=True) if total >= threshold else HostRound(total, self.closed)
