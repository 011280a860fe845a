# SPDX-License-Identifier: Apache-2.0
"""A queue of work for a few threads that serves users in turn, so that one cannot delay others.

All methods are called in the event loop.
"""

import asyncio
import functools
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


class FairQueue:
    """Runs functions in threads, one of each user's in turn."""

    def __init__(self, workers: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix=name)
        self._free = workers
        self._waiting: dict[Hashable, deque[tuple[asyncio.Future[Any], Callable[[], Any]]]] = {}
        self._running: set[asyncio.Future[Any]] = set()

    def put(self, user: Hashable, work: Callable[[], Any]) -> "asyncio.Future[Any]":
        """Queues a function; the result comes later."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user, deque()).append((done, work))
        self._begin()
        return done

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        while self._free and self._waiting:
            user = next(iter(self._waiting))
            theirs = self._waiting.pop(user)
            done, work = theirs.popleft()
            if theirs:
                self._waiting[user] = theirs  # the others come before the next of this one
            if done.done():  # its caller no longer waits
                continue
            self._free -= 1
            running = loop.run_in_executor(self._pool, work)
            self._running.add(running)
            running.add_done_callback(functools.partial(self._ended, done))

    def _ended(self, done: "asyncio.Future[Any]", ended: "asyncio.Future[Any]") -> None:
        self._running.discard(ended)
        self._free += 1
        error = ended.exception()
        if not done.done():
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(ended.result())
        self._begin()
