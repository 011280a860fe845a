# SPDX-License-Identifier: Apache-2.0
"""Logs the failures of policies without flooding the log."""

import logging
import traceback
from typing import Final

_log = logging.getLogger(__name__)
_MAX_PLACES: Final = 100


class FailureLog:
    """Writes the traceback of the first failure at a place in the code, and a line for the others.

    A policy that fails does so in every cycle, which would be a traceback every second.
    """

    def __init__(self) -> None:
        self._places: set[tuple[str, str, int | None, str]] = set()

    def write(self, policy: str, what: str, error: BaseException) -> None:
        """Logs one failure.

        Args:
            what: happened to it: `failed`.
            error: the reason, with its traceback.
        """
        frames = traceback.extract_tb(error.__traceback__)
        file, line = (frames[-1].filename, frames[-1].lineno) if frames else ("", None)
        place = policy, file, line, type(error).__name__
        if place in self._places:
            _log.error("policy %s %s again: %s: %s", policy, what, type(error).__name__, error)
            return
        if len(self._places) >= _MAX_PLACES:
            self._places.clear()
        self._places.add(place)
        _log.error("policy %s %s", policy, what, exc_info=error)
