# SPDX-License-Identifier: Apache-2.0
"""Calls of the library that may never return, with a deadline."""

import threading
from collections.abc import Callable


def within(limit_s: float, call: Callable[[], int]) -> int | None:
    """Returns the result of a call; None: it has not returned in time, and goes on.

    Args:
        call: made by a thread of its own; it must raise nothing.
    """
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(call()), name="slow call", daemon=True)
    thread.start()
    thread.join(limit_s)
    return found[0] if found else None
