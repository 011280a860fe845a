# SPDX-License-Identifier: Apache-2.0
"""Rejected connections of a gate, and other repeated events, in log and metrics."""

import logging
import math
from collections import Counter
from collections.abc import Callable, Hashable

_log = logging.getLogger(__name__)


_TOLD_S = 60.0

_MAX_OWNERS_TOLD = 16

OnRefused = Callable[[str, str], None]
"""Called for every rejection: the gate's key, and "user", "connections", "descriptors",
"greeting", "stalled" or "age"."""


def nobody(_key: str, _reason: str) -> None:
    """Ignores it."""


class Complaints:
    """Reports rejections to log and metrics; at a limited rate to the log."""

    def __init__(self, key: str, refused: OnRefused, *, verb: str = "refused") -> None:
        """Starts without any.

        Args:
            refused: called for each.
        """
        self._key, self._verb = key, verb
        self._refused = refused
        self._told: set[tuple[str, Hashable]] = set()
        self._more: Counter[tuple[str, Hashable]] = Counter()
        self._summed = -math.inf

    @property
    def owes(self) -> bool:
        """Whether there is something to summarise."""
        return bool(self._told)

    def complain(
        self, reason: str, owner: Hashable, now: float, why: str = "", *,
        level: int = logging.WARNING,
    ) -> None:  # fmt: skip
        """Records a rejection."""
        self._refused(self._key, reason)
        if not self._told:
            self._summed = now
        about = (reason, owner)
        if about in self._told or len(self._told) >= _MAX_OWNERS_TOLD:
            self._more[about if about in self._told else (reason, "others")] += 1
            return
        self._told.add(about)
        _log.log(level, "%s: %s %s (%s)", self._key, self._verb, _shown(owner), why or reason)

    def sum_up(self, now: float) -> None:
        """Logs the unreported rejections, once a minute."""
        if not self._told or now - self._summed < _TOLD_S:
            return
        for (reason, owner), count in self._more.items():
            _log.warning(
                "%s: %s %s %d more times within a minute (%s)",
                self._key, self._verb, _shown(owner), count, reason,
            )  # fmt: skip
        self._told = set(self._more) if self._more else set()
        self._more.clear()
        self._summed = now


def _shown(owner: Hashable) -> str:
    if owner is None:
        return "a connection"
    return f"user {owner}" if isinstance(owner, int) else str(owner)
