# SPDX-License-Identifier: Apache-2.0
"""The mean harm to the hosts of each user and of the whole site; if too large, it ends sharing.

Rules
    1. An observation counts for the host's user, cut to `MAX_HARM` in both directions,
       weighted by the time it covers, so that 10 s of harm count less than an hour of it. The mean
       covers about the user's last `MEMORY` observations. Their number is the effective one, (sum
       of weights)^2 / sum of squared weights: a single long observation is not sufficient.
    2. A user's jobs are no longer hosts when the mean of at least `MIN` observations of the user
       exceeds the limit by its confidence interval.
    3. Sharing ends on the whole site when the mean over users exceeds the limit by its confidence
       interval: over at least `USERS` users with `MIN_OF_USER` observations or more. Each counts
       once, so no single user can end sharing for all. A user whose hosts were faster with guests
       counts as not harmed, so none can mask the harm to others.
    4. The error of the mean over users is that of their observations, or that of their spread if
       larger.
"""

import math
from dataclasses import replace
from typing import Final

from bridge.extensions.sharing.kept_keys import APART, keep
from bridge.extensions.sharing.slowdown import SURE
from bridge.model.layers import Layers
from bridge.model.learnt import Learning, Learnt

MIN: Final = 10
MIN_OF_USER: Final = 3
USERS: Final = 3
MEMORY: Final = 100
MAX_HARM: Final = 0.25
MAX_S: Final = 3600.0
"""Maximum weight of an observation, s."""
_SITE: Final = "site" + APART
_UNIT: Final = 1_000_000


def with_observations_of(learnt: Learnt, other: Learnt) -> Learnt:
    """What was learnt, with the observations of another state in place of its own."""
    known = {key: numbers for key, numbers in learnt.known.items() if not key.startswith(_SITE)}
    known |= {key: numbers for key, numbers in other.known.items() if key.startswith(_SITE)}
    return replace(learnt, known=Layers(known))


class SiteHarm:
    """Mean and variance of the observations of each user."""

    def __init__(self, learning: Learning) -> None:
        """Begins with what is known."""
        self._learning = learning

    def add(self, user: str, harm: float, lasted_s: float) -> None:
        """One more observation of a host of this user, over a time (rule 1)."""
        harm = min(max(harm, -MAX_HARM), MAX_HARM)
        weight = min(max(lasted_s, 1.0), MAX_S)
        total, squared, mean, squares = self._sums(user)
        total, squared = total + weight, squared + weight * weight
        mean += (harm - mean) * weight / total
        squares += (harm * harm - squares) * weight / total
        kept = min(MEMORY * squared / (total * total), 1.0)
        numbers = [round(total * kept * 1000), round(squared * kept * 1000)]
        numbers += [round(mean * _UNIT), round(squares * _UNIT)]
        keep(self._learning, _SITE + user, numbers)

    @property
    def count(self) -> float:
        """Observations of all users."""
        return sum(self._of(user)[0] for user in self._users())

    @property
    def mean(self) -> float:
        """The mean over users, whatever the number of their observations; 0: there are none."""
        means = [self._of(user)[1] for user in self._users()]
        return sum(means) / max(len(means), 1)

    def users_above(self, limit: float) -> list[str]:
        """Users whose harm is above the bound; their observations are dropped (rule 2)."""
        found = []
        for user in self._users():
            count, mean, _ = self._of(user)
            if count >= MIN and mean - SURE * math.sqrt(self._variance(user) / count) > limit:
                found.append(user)
        for user in found:
            self._learning.known.pop(_SITE + user)
        return found

    def passes(self, limit: float) -> bool:
        """Whether the mean harm passes the bound; observations are then dropped (rules 3, 4)."""
        users = [user for user in self._users() if self._of(user)[0] >= MIN_OF_USER]
        if len(users) < USERS:
            return False
        means = [max(self._of(user)[1], 0.0) for user in users]
        mean = sum(means) / len(means)
        within = sum(self._variance(user) / self._of(user)[0] for user in users) / len(users)
        spread = sum((each - mean) ** 2 for each in means) / (len(users) - 1)
        if mean - SURE * math.sqrt(max(within, spread) / len(users)) <= limit:
            return False
        for user in self._users():
            self._learning.known.pop(_SITE + user)
        return True

    def _users(self) -> list[str]:
        keys = self._learning.known.in_order()
        return [key.removeprefix(_SITE) for key in keys if key.startswith(_SITE)]

    def _sums(self, user: str) -> tuple[float, float, float, float]:
        """Sums of weights and of their squares, means of harm and of its square."""
        numbers = self._learning.known.get(_SITE + user) or []
        if len(numbers) != 4:
            return 0.0, 0.0, 0.0, 0.0
        total, squared = max(numbers[0] / 1000, 0.0), max(numbers[1] / 1000, 0.0)
        return total, squared, numbers[2] / _UNIT, numbers[3] / _UNIT

    def _of(self, user: str) -> tuple[float, float, float]:
        """Effective number of observations, mean and mean of squares."""
        total, squared, mean, squares = self._sums(user)
        count = total * total / squared if squared > 0 else 0.0
        return min(round(count, 3), float(MEMORY)), mean, squares

    def _variance(self, user: str) -> float:
        _, mean, squares = self._of(user)
        return max(squares - mean**2, 0.0)
