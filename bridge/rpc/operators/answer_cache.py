# SPDX-License-Identifier: Apache-2.0
"""Encoded answers by question and version of the view: equal questions are computed once.

The oldest are dropped beyond a number and a total size. Answers that failed are not kept.
"""

import asyncio
from collections import OrderedDict
from typing import Any

_MAX_KEPT = 10_000
_MAX_KEPT_BYTES = 64 << 20


class AnswerCache:
    def __init__(self) -> None:
        self._answers: OrderedDict[Any, asyncio.Future[bytes]] = OrderedDict()
        self._sizes: dict[Any, int] = {}
        self._bytes = 0

    def get(self, key: Any) -> "asyncio.Future[bytes] | None":
        """The answer that is cached or being computed; None: there is none, or it failed."""
        found = self._answers.get(key)
        if found is not None and found.done() and (found.cancelled() or found.exception()):
            return None
        return found

    def put(self, key: Any, answer: "asyncio.Future[bytes]") -> None:
        """Caches an answer, also one that is being computed."""
        self._drop(key)
        self._answers[key] = answer
        answer.add_done_callback(lambda done: self._made(key, done))
        while len(self._answers) > _MAX_KEPT or self._bytes > _MAX_KEPT_BYTES:
            self._drop(next(iter(self._answers)))

    def _made(self, key: Any, done: "asyncio.Future[bytes]") -> None:
        if self._answers.get(key) is not done:
            return
        if done.cancelled() or done.exception() is not None:
            self._drop(key)
            return
        self._sizes[key] = len(done.result())
        self._bytes += self._sizes[key]
        while self._bytes > _MAX_KEPT_BYTES and len(self._answers) > 1:
            self._drop(next(iter(self._answers)))

    def _drop(self, key: Any) -> None:
        if self._answers.pop(key, None) is not None:
            self._bytes -= self._sizes.pop(key, 0)
