# SPDX-License-Identifier: Apache-2.0
"""The pipe between a link and its supervisor: one word a line, perhaps with a text.

From the link: `alive`; `ready`: it wants the registration, which nobody may hold then;
`registered`; `aside WHY`: it has none, because the service is silent; `absent WHY`: there is no
server. From the supervisor: `yours`: nobody else is registered.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

ALIVE, READY, ASIDE, ABSENT, REGISTERED, YOURS = (
    "alive", "ready", "aside", "absent", "registered", "yours",
)  # fmt: skip
BEAT_S = 0.5


class Parent(Protocol):
    """The supervisor, as the link sees it."""

    def tell(self, word: str, text: str = "") -> None:
        """Sends a line."""

    def may_register(self) -> bool:
        """Whether `yours` has come since the last `ready`; sends `ready` only once."""


@dataclass
class Heartbeat:
    """Signs of life to the supervisor, at most one in `BEAT_S`: each wakes another process.

    Attributes:
        clock: monotonic, s.
    """

    parent: Parent
    clock: Callable[[], float] = time.monotonic
    _due_s: float = 0.0

    def beat(self) -> None:
        """Shows that the link goes on, if that is due."""
        now = self.clock()
        if now >= self._due_s:
            self.parent.tell(ALIVE)
            self._due_s = now + BEAT_S


class Pipe:
    """The supervisor behind two descriptors."""

    def __init__(self, read_from: int, write_to: int) -> None:
        """Begins to listen; the process ends with its supervisor."""
        self._write_to = write_to
        self._yours = threading.Event()
        threading.Thread(target=self._listen, args=(read_from,), daemon=True).start()

    def _listen(self, read_from: int) -> None:
        with contextlib.suppress(OSError), os.fdopen(read_from, encoding="utf-8") as lines:
            for line in lines:
                if line.split() == [YOURS]:
                    self._yours.set()
        os._exit(0)

    def tell(self, word: str, text: str = "") -> None:
        """Sends a line."""
        line = " ".join(f"{word} {text}".split())[:400] + "\n"
        with contextlib.suppress(OSError):
            os.write(self._write_to, line.encode())

    def may_register(self) -> bool:
        """Whether `yours` has come."""
        if not self._yours.is_set():
            return False
        self._yours.clear()
        return True
