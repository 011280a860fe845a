# SPDX-License-Identifier: Apache-2.0
"""When the service is called, and how long it may be silent.

Rules
    1. It is called when something has changed that it decides on, when it asked to be, and every
       `tick_s`. That jobs run as it has decided is reported with the next change, at the latest
       after `CONFIRM_S`: one call for a job that is submitted, and one when it ends.
    2. Calls are spaced under load (`pace.py`).
    3. After a call that failed the next one follows soon; later if the link is not registered, or
       another controller is accepted.
    4. A registered link waits for the service until `silence_s` after the first call that failed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bridge.errors import BridgeError, StaleSnapshot
from bridge.pbs.link.pace import Pace
from bridge.pbs.link.settings import LinkSettings
from bridge.pbs.link.stream import News, Reported, Stream
from bridge.rpc.pb import scheduler_pb2 as pb

CONFIRM_S = 0.5
RETRY_S, UNREGISTERED_RETRY_S, FENCED_RETRY_S = 0.25, 1.0, 5.0
_MIN_S = 0.01
_MAX_WAKE_S = 3600.0


@dataclass
class CallTimes:
    """The times of calls; all are monotonic, s, and 0 means never.

    Attributes:
        silent_since: begin of the first call that failed since the last answer.
    """

    settings: LinkSettings
    pace: Pace = field(default_factory=Pace)
    silent_since: float = 0.0
    _tick: float = 0.0
    _retry: float = 0.0
    _wake: float = 0.0
    _confirm: float = 0.0

    def call_soon(self) -> None:
        """Makes a call due: the link has been registered."""
        self._tick = self._retry = 0.0

    def wait(self, now: float, delay_s: float) -> None:
        """Makes no call for a while."""
        self._retry = now + delay_s

    def may_call(self, now: float) -> bool:
        """Tells whether a call may go out after one that failed (rule 3)."""
        return now >= self._retry

    def is_due(
        self, now: float, stream: Stream, report: Reported, ended: Sequence[pb.EndedJob]
    ) -> bool:
        """Tells whether the service is to be called now (rule 1)."""
        if now >= self._tick or (self._wake and now >= self._wake) or ended:
            return True
        news = stream.news(report)
        if news is News.RUNS:
            self._confirm = self._confirm or now + CONFIRM_S
        return news is News.CHANGES or (news is News.RUNS and now >= self._confirm)

    def next_turn_s(self, now: float, *, starting: bool) -> float:
        """Returns after how many seconds the link has to look again, at the latest.

        Args:
            now: the clock.
            starting: starts are under way.
        """
        if self.silent_since:
            return max(self._retry - now, RETRY_S / 2)
        due = [now + self.settings.poll_s, self._tick]
        due += [at for at in (self._wake, self._confirm) if at]
        if starting:
            due.append(now + self.settings.poll_s / 4)
        return max(min(due) - now, _MIN_S)

    def timeout_s(self, now: float, *, registered: bool) -> float:
        """Returns how long the next call may take (rule 4)."""
        silence_s = self.settings.silence_s
        if not self.silent_since or not registered:
            return silence_s
        return max(silence_s - (now - self.silent_since), RETRY_S)

    def called(self, now: float) -> None:
        """A call goes out."""
        self.pace.pay(now)
        self._tick, self._wake, self._confirm = now + self.settings.tick_s, 0.0, 0.0

    def answered(self, now: float, reply: pb.CycleReply) -> None:
        """The service has answered."""
        self.silent_since = self._retry = 0.0
        if reply.wake_after_s:
            self._wake = now + reply.wake_after_s
        if reply.wake_after_ms:
            self._wake = min(self._wake or now + _MAX_WAKE_S, now + reply.wake_after_ms / 1e3)

    def failed(self, began: float, now: float, error: BridgeError, *, registered: bool) -> bool:
        """A call failed; returns whether the service has been silent for too long."""
        self.silent_since = self.silent_since or began
        delay_s = RETRY_S if registered else UNREGISTERED_RETRY_S
        self.wait(now, FENCED_RETRY_S if isinstance(error, StaleSnapshot) else delay_s)
        return now - self.silent_since >= self.settings.silence_s - RETRY_S
