# SPDX-License-Identifier: Apache-2.0
"""The mean harm to the hosts of each user and of the whole site; if too large, it ends sharing.

Rules
    1. An observation counts for the host's user, cut to `MOST_HARM` in both directions. The mean
       covers about the user's last `MEMORY` observations.
    2. A user's jobs are no longer hosts when the mean of at least `LEAST` observations of the user
       exceeds the limit by its confidence interval.
    3. Sharing ends on the whole site when the mean over users exceeds the limit by its confidence
       interval: over at least `USERS` users with `LEAST_OF_USER` observations or more. Each counts
       once, so no single user can end sharing for all. A user whose hosts were faster with guests
       counts as not harmed, so none can mask the harm to others.
    4. The error of the mean over users is that of their observations, or that of their spread if
       larger.
"""

import math
from typing import Final

from bridge.model.learnt import Learning
from bridge.planning.sharing.kept_keys import APART, keep
from bridge.planning.sharing.slowdown import SURE

LEAST: Final = 10
LEAST_OF_USER: Final = 3
USERS: Final = 3
MEMORY: Final = 100
MOST_HARM: Final = 0.25
_SITE: Final = "site" + APART
_UNIT: Final = 1_000_000


class SiteHarm:
    """Mean and variance of the observations of each user."""

    def __init__(self, learning: Learning) -> None:
        """Begins with what is known."""
        self._learning = learning

    def add(self, user: str, harm: float) -> None:
        """One more observation of a host of this user (rule 1)."""
        harm = min(max(harm, -MOST_HARM), MOST_HARM)
        count, mean, squares = self._of(user)
        count = min(count + 1, MEMORY)
        mean += (harm - mean) / count
        squares += (harm * harm - squares) / count
        numbers = [round(count * 1000), round(mean * _UNIT), round(squares * _UNIT)]
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
        """Rule 2; the observations of these users are dropped."""
        found = []
        for user in self._users():
            count, mean, _ = self._of(user)
            if count >= LEAST and mean - SURE * math.sqrt(self._variance(user) / count) > limit:
                found.append(user)
        for user in found:
            self._learning.known.pop(_SITE + user)
        return found

    def passes(self, limit: float) -> bool:
        """Rules 3 and 4; then all observations are dropped."""
        users = [user for user in self._users() if self._of(user)[0] >= LEAST_OF_USER]
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

    def _of(self, user: str) -> tuple[float, float, float]:
        """Observations, mean and mean of squares."""
        numbers = self._learning.known.get(_SITE + user) or [0, 0, 0]
        count = min(max(numbers[0] / 1000, 0.0), float(MEMORY))
        return count, numbers[1] / _UNIT, numbers[2] / _UNIT

    def _variance(self, user: str) -> float:
        _, mean, squares = self._of(user)
        return max(squares - mean**2, 0.0)
