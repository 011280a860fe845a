# SPDX-License-Identifier: Apache-2.0
"""Files that come with schedbridge, named without a folder: a trace, a model of interference."""

from importlib.resources import files
from pathlib import Path


def bundled(path: Path, folder: Path | None = None) -> Path:
    """The file that a user named, or the bundled one of that name.

    A bundled file is meant by a name without a folder for which there is no file, so that a command
    reads the same beside a checkout and beside an installed package.

    Args:
        folder: that it is relative to; None: the working directory.
    """
    named = path if folder is None else folder / path
    if path.name != str(path) or named.exists():
        return named
    inside = Path(str(files("bridge.lab.sim").joinpath("data", path.name)))
    return inside if inside.is_file() else named
