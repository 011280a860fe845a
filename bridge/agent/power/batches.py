# SPDX-License-Identifier: Apache-2.0
"""Collects readings of every second into messages, which cost the service more than readings do.

Rules
    1. A message has at most `MAX` readings, and is sent when it has them.
    2. It is sent at once if it is the first, if a node's power differs from the last sent value by
       more than `CHANGE` of it, or if a value of a node has appeared or disappeared since; but not
       within `APART_S` of another one.
"""

from typing import Final

from bridge.rpc.pb import agent_pb2 as pb

MAX: Final = 5
CHANGE: Final = 0.1
APART_S: Final = 3.0

_Powers = dict[str, float | None]


class Batches:
    """Readings that have not been sent."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, pb.Use]] = []
        self._sent: tuple[float, _Powers] | None = None

    def add(self, use: pb.Use, now_s: float) -> pb.Uses | None:
        """Takes a reading.

        Args:
            now_s: time of a monotonic clock.

        Returns:
            The message to be sent; None: nothing yet.
        """
        self._waiting = [*self._waiting, (now_s, use)][-MAX:]
        powers: _Powers = {
            node.node: node.watts if node.HasField("watts") else None for node in use.nodes
        }
        if self._sent is not None and len(self._waiting) < MAX:
            sent_s, before = self._sent
            if now_s - sent_s < APART_S or not _differs(before, powers):
                return None
        message = pb.Uses()
        for read_s, waiting in self._waiting:
            waiting.ago_ms = max(round((now_s - read_s) * 1000), 0)
            message.uses.append(waiting)
        self._waiting, self._sent = [], (now_s, powers)
        return message

    def forget(self) -> None:
        """Forgets what was sent, for a new service."""
        self._waiting, self._sent = [], None


def _differs(before: _Powers, now: _Powers) -> bool:
    if before.keys() != now.keys():
        return True
    for node, watts in now.items():
        then = before[node]
        if watts is None or then is None:
            if watts is not then:
                return True
        elif abs(watts - then) > CHANGE * abs(then):
            return True
    return False
