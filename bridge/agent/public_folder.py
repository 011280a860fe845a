# SPDX-License-Identifier: Apache-2.0
"""Directories in which every user may make files for the agent, as in /tmp."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path


def make_public(folder: Path) -> bool:
    """Makes a directory in which every user can make files, but remove only their own.

    Returns:
        False: it cannot be made, or belongs to another user; then nothing in it may be read.
    """
    try:
        folder.mkdir(exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            return False
        folder.chmod(0o1777)
    except OSError:
        return False
    return True


def entries(folder: Path) -> "Iterator[os.DirEntry[str]]":
    """What is in a directory; nothing if it cannot be read."""
    try:
        with os.scandir(folder) as found:
            yield from found
    except OSError:
        return
