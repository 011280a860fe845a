# SPDX-License-Identifier: Apache-2.0
"""How this project starts Python: the one place, so that no child imports from its directory.

`python -c` and `python -m` put the working directory first on the path of imports. A service may be
started anywhere, and a job in any folder of its user: a file `json.py` there would be executed
instead of Python's own. Without that entry (`-P`) a child finds what its parent finds.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Final

SAFE_PATH: Final = "PYTHONSAFEPATH"
"""The variable that has the effect of `-P`, also on children of children."""


def python(*words: str) -> list[str]:
    """The command that runs this interpreter, as in `python("-m", "bridge.cli.main", "status")`."""
    return [sys.executable, "-P", *words]


@contextlib.contextmanager
def safe_children() -> Iterator[None]:
    """Meanwhile, interpreters that libraries start import nothing from the directory, either."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before
