# SPDX-License-Identifier: Apache-2.0
"""Decides which controller is accepted: the newest one that is alive.

Terms
    epoch       one life of a controller; the larger, the newer. Only a hint, as clocks may be set
                back and a number may be invalid.
    holder      the accepted controller.
    lease       how long a silent holder keeps its place against an older epoch.

Rules
    1. A hello with a newer epoch takes over at once.
    2. A hello with an older epoch takes over when the holder has been silent for its lease. Before
       that it is refused, and the answer says when to retry. So a dead holder, or an invalid epoch,
       delays others by one lease, and of two live controllers the older one is never accepted.
    3. The lease is `LEASE_S`, some ticks of a controller. It is `FIRST_LEASE_S` from the hello on
       for a holder without an accepted report; a further hello does not renew it.
    4. A holder that lost its place by silence and returns was alive all the time: from then on its
       lease is `TIMES` the length of that silence.
    5. A holder that lost its place without an accepted report counts as an older one.
    6. A repeated hello changes nothing.

The clock is a parameter and must be monotonic.
"""

from collections.abc import Callable
from dataclasses import dataclass

from bridge.errors import StaleSnapshot

LEASE_S = 60.0
"""A controller calls every `bridge_tick_s` (10 s) at the least."""

FIRST_LEASE_S = 15.0
"""Longer than a full report takes that follows its hello."""

LONGEST_LEASE_S = 3 * 3600.0
"""Three times the largest `bridge_tick_s`."""

TIMES = 3
MAX_REMEMBERED = 64


@dataclass
class _Life:
    """An epoch seen so far.

    Attributes:
        began: its hello, as the holder.
        called: its last call.
        silenced: it lost its place to an older one.
    """

    began: float
    called: float
    lease_s: float = LEASE_S
    reported: bool = False
    silenced: bool = False


class Fence:
    """Accepts one controller at a time.

    Attributes:
        epoch: the epoch of the holder; 0: there is none.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.epoch = 0
        self._clock = clock
        self._holder = _Life(0.0, 0.0)
        self._past: dict[int, _Life] = {}

    def take(self, epoch: int) -> None:
        """Handles a hello.

        Raises:
            StaleSnapshot: another controller is accepted.
        """
        now = self._clock()
        if epoch == self.epoch:
            self._holder.called = now
            return
        past = self._past.get(epoch)
        if not self._is_newer(epoch) and self._left_s(now) > 0:
            self._refuse(epoch, now)
        life = _Life(began=now, called=now)
        if past is not None:
            kept_s = TIMES * (now - past.called) if past.silenced else 0.0
            life.lease_s = min(max(past.lease_s, kept_s), LONGEST_LEASE_S)
            del self._past[epoch]
        if self.epoch:
            while len(self._past) >= MAX_REMEMBERED:
                del self._past[next(iter(self._past))]
            self._holder.silenced = epoch < self.epoch
            self._past[self.epoch] = self._holder
        self.epoch, self._holder = epoch, life

    def admit(self, epoch: int) -> bool:
        """Handles a report.

        Returns:
            False if its controller has not said hello.

        Raises:
            StaleSnapshot: another controller is accepted.
        """
        now = self._clock()
        if epoch == self.epoch:
            self._holder.called = now
            return True
        if not self._is_newer(epoch):
            self._refuse(epoch, now)
        if self.epoch:  # if a full report were requested, it would never send its hello
            raise StaleSnapshot(
                f"epoch {epoch} was silent and another controller (epoch {self.epoch}) has taken "
                "over: say hello again"
            )
        return False

    def reported(self) -> None:
        """A report of the holder was accepted."""
        self._holder.reported = True
        self._holder.called = self._clock()

    def _is_newer(self, epoch: int) -> bool:
        past = self._past.get(epoch)
        return epoch > self.epoch and (past is None or past.reported)

    def _left_s(self, now: float) -> float:
        """How long a silent holder keeps its place."""
        holder = self._holder
        if not self.epoch:
            return 0.0
        if not holder.reported:
            return holder.began + FIRST_LEASE_S - now
        return holder.called + holder.lease_s - now

    def _refuse(self, epoch: int, now: float) -> None:
        left_s = self._left_s(now)
        when = f"in {left_s:.0f} s, if that one is silent" if left_s > 0 else "now"
        raise StaleSnapshot(
            f"epoch {epoch} is over: a newer controller (epoch {self.epoch}) has taken over; say "
            f"hello again {when}"
        )
