# SPDX-License-Identifier: Apache-2.0
"""A folder whose files have the names of modules that programs of this project import."""

from pathlib import Path

_TEXT = """
open(__file__ + ".imported", "w").close()
raise RuntimeError("imported from the working directory")
"""


def shadows(folder: Path) -> None:
    """Puts `bridge` and modules of Python's library there; importing one leaves a file."""
    for name in ("bridge/__init__.py", "json.py", "struct.py", "socket.py"):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(_TEXT)


def imported(folder: Path) -> list[str]:
    """The names of those that were imported."""
    return sorted(path.name for path in folder.rglob("*.imported"))
