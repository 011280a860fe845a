# SPDX-License-Identifier: Apache-2.0
"""Collects readings of every second into messages, which cost the service more than readings do.

Rules
    1. A message has at most `MAX` readings, and is sent when it has them.
    2. It is sent at once if it is the first, or if its last reading differs much from the one that
       was sent last, as an extension says; but not within `APART_S` of another one.
"""

from collections.abc import Callable
from typing import Final

from bridge.rpc.pb import agent_pb2 as pb

MAX: Final = 5
APART_S: Final = 3.0


class Batches:
    """Readings that have not been sent."""

    def __init__(self, differs: Callable[[pb.Use, pb.Use], bool]) -> None:
        """None yet; `differs`: whether a reading differs much from an earlier one."""
        self._differs = differs
        self._waiting: list[tuple[float, pb.Use]] = []
        self._sent: tuple[float, pb.Use] | None = None

    def add(self, use: pb.Use, now_s: float) -> pb.Uses | None:
        """Takes a reading.

        Args:
            now_s: time of a monotonic clock.

        Returns:
            The message to be sent; None: nothing yet.
        """
        self._waiting = [*self._waiting, (now_s, use)][-MAX:]
        if self._sent is not None and len(self._waiting) < MAX:
            sent_s, before = self._sent
            if now_s - sent_s < APART_S or not self._differs(before, use):
                return None
        message = pb.Uses()
        for read_s, waiting in self._waiting:
            waiting.ago_ms = max(round((now_s - read_s) * 1000), 0)
            message.uses.append(waiting)
        self._waiting, self._sent = [], (now_s, use)
        return message

    def forget(self) -> None:
        """Forgets what was sent, for a new service."""
        self._waiting, self._sent = [], None
