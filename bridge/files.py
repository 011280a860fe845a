# SPDX-License-Identifier: Apache-2.0
"""Reads files that users name: regular files of bounded size only. Errors of writing name the file.

Devices, pipes and directories raise an OSError with a clear message, as a missing file does.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

MIB: Final = 1 << 20
TEXT_MOST: Final = MIB
"""Largest size of files written by hand: configurations, policies, certificates. Bytes."""

_PIECE: Final = 1 << 24


def read_bytes(path: Path | str, most: int = TEXT_MOST) -> bytes:
    """Reads a plain file.

    Raises:
        OSError: there is none, it cannot be read, it is longer than `most` bytes, or it is a
            device, a pipe or a directory.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor has no path
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "Is not a regular file", str(path))
        pieces, left = [], most + 1
        while left and (piece := file.read(min(left, _PIECE))):
            pieces.append(piece)
            left -= len(piece)
        if not left:
            raise OSError(errno.EFBIG, f"Is longer than {size(most)}", str(path))
        return b"".join(pieces)


def read_text(path: Path | str, most: int = TEXT_MOST) -> str:
    """Reads a plain text file.

    Raises:
        OSError: as `read_bytes`.
        UnicodeDecodeError: it is not UTF-8.
    """
    return read_bytes(path, most).decode("utf-8")


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Gives errors of writing the file's name: that of a full disk has none.

    Raises:
        OSError: of the block, with the name.
    """
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


def size(count: int) -> str:
    """A number of bytes, for display."""
    return f"{count // MIB} MiB" if count >= MIB else f"{count} bytes"
