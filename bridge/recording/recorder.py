# SPDX-License-Identifier: Apache-2.0
"""Takes recordings while cycles run, in a simulation or in the service.

Rules
    1. A recorded cycle is decided like any other; the state before it is never changed.
    2. Recording never delays a cycle: the caller writes the file.
    3. Nothing is copied unless a recording is requested.
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from bridge.errors import ControllerError
from bridge.model.plan import Plan
from bridge.model.policy import PolicySpec
from bridge.model.snapshot import Snapshot
from bridge.recording.recordings import Recording
from bridge.safe_cycle.decider import Decider

Wanted = Callable[[Snapshot], bool]
Keep = Callable[[Recording], None]
ReadSettings = Callable[[], tuple[PolicySpec, Mapping[str, object]]]
"""The policy, and the site's rules in the form of the section `planning`."""


class Recorder:
    """Decides like its decider, and passes on the requested cycles."""

    def __init__(
        self, decider: Decider, in_force: ReadSettings, *, wanted: Wanted, keep: Keep
    ) -> None:
        """Starts recording.

        Args:
            in_force: returns the policy in force and the rules of the site.
            wanted: called before each cycle; returns whether to keep it.
            keep: called with the recording after it.
        """
        self._decider = decider
        self._in_force = in_force
        self._wanted = wanted
        self._keep = keep

    def decide(self, snapshot: Snapshot) -> Plan:
        """Plans one snapshot; see `Decider.decide`."""
        decider = self._decider
        if not self._wanted(snapshot):
            return decider.decide(snapshot)
        before, (spec, planning) = decider.state, self._in_force()
        plan = decider.decide(snapshot)
        self._keep(Recording(snapshot, before, spec, decider.seed, plan, planning=planning))
        return plan


class Tap:
    """Lets one caller at a time wait for a cycle; `wanted` and `keep` are a recorder's."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._pending: tuple[int, Future[Recording | None]] | None = None
        self._closed = False

    def wanted(self, snapshot: Snapshot) -> bool:
        """Whether a caller waits for a cycle with such a queue."""
        pending = self._pending
        return pending is not None and len(snapshot.jobs) >= pending[0]

    def keep(self, recording: Recording | None) -> None:
        """Gives the cycle to the waiting caller."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending[1].set_result(recording)

    def next(self, min_queue: int, wait_s: float) -> Recording | None:
        """Waits for a cycle.

        Args:
            min_queue: minimum number of rows of waiting jobs.
            wait_s: maximum wait, s.

        Returns:
            None: there was none in time, or the tap was closed.

        Raises:
            ControllerError: another caller is waiting already.
        """
        if not self._turn.acquire(blocking=False):
            raise ControllerError("another client is recording: try again later")
        try:
            found: Future[Recording | None] = Future()
            self._pending = (min_queue, found)
            return None if self._closed else found.result(wait_s)
        except TimeoutError:
            return None
        finally:
            self._pending = None
            self._turn.release()

    def close(self) -> None:
        """Releases the waiting caller."""
        self._closed = True
        self.keep(None)
