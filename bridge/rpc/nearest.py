# SPDX-License-Identifier: Apache-2.0
"""Answers what would let a job start earlier, without slowing cycles down.

Rules
    1. A search reads what was published and takes no lock that a cycle takes.
    2. One search at a time; after each a pause, so that all of them together have a bounded share
       of the time. Who cannot be served within `WAIT_S` is told so.
    3. An answer holds for one cycle and one job, and is kept until the next cycle.
"""

import logging
import threading
import time
import weakref
from collections.abc import Callable

from bridge.planning.changes import Change
from bridge.planning.conditions import Conditions
from bridge.planning.what_if import what_if
from bridge.rpc.cycles import Published

_log = logging.getLogger(__name__)

WAIT_S = 1.0
MOST_KEPT = 10_000
"""Answers of one cycle."""


class NearestChanges:
    """Searches, kept and paced."""

    def __init__(self, conditions: Callable[[], Conditions], *, share: float = 1.0) -> None:
        """Begins without answers.

        Args:
            conditions: of the policy in force.
            share: of the time that searches may take together, above 0 to 1.
        """
        self._conditions = conditions
        self._pause = 1 / share - 1
        self._lock = threading.Lock()
        self._not_before = 0.0
        self._published: Callable[[], Published | None] = lambda: None
        self._under: Conditions | None = None
        self._kept: dict[int, tuple[Change, ...]] = {}

    def of(self, published: Published, row: int) -> tuple[Change, ...] | None:
        """What would let a row of the plan start earlier.

        Returns:
            Best first; empty: nothing helps. None: it was not looked for, too many are asking.
        """
        until = time.monotonic() + WAIT_S
        if not self._lock.acquire(timeout=WAIT_S):
            return None
        try:
            return self._answer(published, row, until)
        except Exception:  # a bug here must not deny the rest of the explanation
            _log.exception("no changes could be found for a job")
            return None
        finally:
            self._lock.release()

    def _answer(self, published: Published, row: int, until: float) -> tuple[Change, ...] | None:
        conditions, job = self._conditions(), int(published.plan.job[row])
        if self._published() is not published or self._under != conditions:
            self._published, self._under = weakref.ref(published), conditions
            self._kept.clear()
        found = self._kept.get(job)
        if found is not None:
            return found
        if self._not_before > until:
            return None
        time.sleep(max(self._not_before - time.monotonic(), 0))
        began = time.monotonic()
        found = what_if(published.snapshot, published.plan, row, conditions)
        ended = time.monotonic()
        self._not_before = ended + (ended - began) * self._pause
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[job] = found
        return found
