# SPDX-License-Identifier: Apache-2.0
"""Statistics of a link."""

from dataclasses import dataclass

from bridge.rpc.pb import scheduler_pb2 as pb


@dataclass
class Figures:
    """Statistics of a link since its start.

    Attributes:
        fallbacks: times the registration was given back because the service was silent.
        fallback_s: time spent so, without the present one.
        fallback_since: when the present fallback began, monotonic, s; 0: there is none.
        read_ms, call_ms, send_ms: time of the last reading of the tables, call, sending of starts.
    """

    turns: int = 0
    calls: int = 0
    starts: int = 0
    fallbacks: int = 0
    fallback_s: float = 0.0
    fallback_since: float = 0.0
    fallback_reason: str = ""
    read_ms: float = 0.0
    call_ms: float = 0.0
    send_ms: float = 0.0

    def fell_back(self, why: str, now: float) -> None:
        """The registration was given back."""
        self.fallbacks += 1
        self.fallback_reason, self.fallback_since = why, now

    def registered(self, now: float) -> None:
        """The link is the server's scheduler again."""
        if self.fallback_since:
            self.fallback_s += now - self.fallback_since
            self.fallback_since = 0.0

    def status(self, now: float) -> pb.ControllerStatus:
        """Returns what the service shows of them."""
        since = self.fallback_since
        return pb.ControllerStatus(
            fallbacks=self.fallbacks,
            fallback_s=self.fallback_s + (now - since if since else 0.0),
            fallback_reason=self.fallback_reason,
            round_trip_ms=self.call_ms,
        )
