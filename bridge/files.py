# SPDX-License-Identifier: Apache-2.0
"""Reads files that users name: regular files of bounded size only. Errors of writing name the file.

Devices, pipes and directories raise an OSError with a clear message, as a missing file does.

A bound on the text of a file is no bound on memory: packed text grows a thousandfold, and `[]` of
two bytes becomes an object of 56. Readers of files from others therefore count what they hold, in a
`MemoryBudget`, before they make it. Histories of jobs may be as large as the machine allows
(`history_bytes`); all other files have fixed bounds.
"""

import errno
import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

MIB: Final = 1 << 20
MAX_TEXT: Final = MIB
"""Largest size of files written by hand: configurations, policies, certificates. Bytes."""
HISTORY_MIN_BYTES: Final = 4 << 30
"""What a history may need on any machine: the records of some two million jobs."""

_PIECE: Final = 1 << 24


def opened(path: Path | str) -> io.FileIO:
    """Opens a plain file for reading.

    Raises:
        OSError: there is none, it cannot be read, or it is a device, a pipe or a directory.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    file = io.FileIO(handle)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return file
    file.close()
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "Is not a regular file", str(path))


def read_bytes(path: Path | str, maximum: int = MAX_TEXT) -> bytes:
    """Reads a plain file.

    Raises:
        OSError: there is none, it cannot be read, it is longer than `maximum` bytes, or it is a
            device, a pipe or a directory.
    """
    with opened(path) as file:
        pieces, left = [], maximum + 1
        while left and (piece := file.read(min(left, _PIECE))):
            pieces.append(piece)
            left -= len(piece)
        if not left:
            raise OSError(errno.EFBIG, f"Is longer than {size(maximum)}", str(path))
        return b"".join(pieces)


def read_text(path: Path | str, maximum: int = MAX_TEXT) -> str:
    """Reads a plain text file.

    Raises:
        OSError: as `read_bytes`.
        UnicodeDecodeError: it is not UTF-8.
    """
    return read_bytes(path, maximum).decode("utf-8")


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Gives errors of writing the file's name: that of a full disk has none.

    Raises:
        OSError: that of the block, with the name.
    """
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


def size(count: int) -> str:
    """A number of bytes, for display."""
    return f"{count // MIB} MiB" if count >= MIB else f"{count} bytes"


@dataclass
class MemoryBudget:
    """The memory that reading may hold: a running total.

    Attributes:
        limit: bytes that may be held.
        held: bytes that are held.
        advice: what to do if that is not enough; empty: nothing can be done.
    """

    limit: int
    held: int = 0
    advice: str = ""

    def take(self, count: int) -> None:
        """Counts memory before it is used.

        Raises:
            OSError: it would be more than the limit.
        """
        self.held += count
        if self.held > self.limit:
            advice = self.advice and f": {self.advice}"
            raise OSError(errno.EFBIG, f"Needs more than {size(self.limit)} of memory{advice}")


def physical_bytes() -> int:
    """The memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


HISTORY_ADVICE: Final = "split it into shorter spans of time, or use a machine with more memory"


def history_bytes() -> int:
    """The bound on a history of jobs, in memory and as text: half of this machine's memory."""
    return max(physical_bytes() // 2, HISTORY_MIN_BYTES)


def history_budget() -> MemoryBudget:
    """The budget of the records of a history."""
    return MemoryBudget(history_bytes(), advice=HISTORY_ADVICE)


def held_bytes(value: Any) -> int:
    """The memory of plain data: what it contains counts each time that it occurs."""
    inner: Any = ()
    if isinstance(value, dict):
        inner = (*value, *value.values())
    elif isinstance(value, list | tuple):
        inner = value
    return sys.getsizeof(value) + sum(held_bytes(each) for each in inner)
