# SPDX-License-Identifier: Apache-2.0
"""Lines of progress on standard error."""

import sys
import time

_begin_s = time.monotonic()


def say(text: str) -> None:
    """Prints a line with the minutes and seconds since the program began."""
    minutes, seconds = divmod(int(time.monotonic() - _begin_s), 60)
    print(f"[{minutes:2}:{seconds:02}] {text}", file=sys.stderr, flush=True)
