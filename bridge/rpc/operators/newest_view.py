# SPDX-License-Identifier: Apache-2.0
"""The newest view of the service's process, which makes one only when it is requested.

Rules
    1. A view is renewed on demand when it is old, at a bounded share of the service's time.
    2. Callers who wait at the same time wait for the same request.
    3. After `expire`, no caller gets a view that was requested before.
"""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bridge.rpc.operators.view import View, unpack
from bridge.rpc.transport.private_channel import Asker, MessageKind

MIN_AGE_S = 0.1
"""Shortest interval between requests for a view."""
SHARE = 0.1
"""Largest share of the service's process time for making views."""
SERVICE_S = 10.0
"""How long the service's process may take for a view."""


@dataclass(frozen=True)
class TimedView:
    """A view, and when it was requested.

    Attributes:
        cycle: changes with every cycle, policy and rule.
        count: changes with every view.
    """

    view: View
    cycle: tuple[int, int]
    count: int
    requested_at: float
    good_for_s: float


class Views:
    """The newest view, renewed at a bounded cost."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self._seen: TimedView | None = None
        self._under_way: asyncio.Task[TimedView] | None = None
        self._not_before = float("-inf")
        self._known = (0, -1)
        # A large view takes a while to unpack; meanwhile the last one is used.
        self._unpacking = ThreadPoolExecutor(1, thread_name_prefix="view")

    def expire(self) -> None:
        """Marks a change: views requested before now do not include it."""
        self._not_before = time.monotonic()

    async def current(self) -> TimedView:
        """The view to answer from."""
        while True:
            seen, now = self._seen, time.monotonic()
            if (
                seen is not None
                and seen.requested_at >= self._not_before
                and now - seen.requested_at <= seen.good_for_s
            ):
                return seen
            task = self._under_way
            if task is None:
                task = self._under_way = asyncio.create_task(self._ask(now))
                task.add_done_callback(self._arrived)
            found = await asyncio.shield(task)
            if found.requested_at >= self._not_before:
                return found

    def _arrived(self, task: "asyncio.Task[TimedView]") -> None:
        self._under_way = None
        if not task.cancelled() and task.exception() is None:
            self._seen = task.result()

    async def _ask(self, now: float) -> TimedView:
        known = [str(number).encode() for number in self._known]
        async with asyncio.timeout(SERVICE_S):
            parts = await self._asker.answer(MessageKind.VIEW, known)
        loop = asyncio.get_running_loop()
        serial, changes, cost_s, live, in_force = unpack(parts[:1])
        if len(parts) > 1:
            published = await loop.run_in_executor(self._unpacking, unpack, parts[1:])
        else:
            published = None if self._seen is None else self._seen.view.published
        if in_force is None and self._seen is not None:
            in_force = self._seen.view.in_force
        self._known = (serial, changes)
        return TimedView(
            View(live, in_force, published),
            self._known,
            0 if self._seen is None else self._seen.count + 1,
            now,
            max(MIN_AGE_S, cost_s / SHARE),
        )
