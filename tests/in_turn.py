# SPDX-License-Identifier: Apache-2.0
"""Calls programs of `benchmarks/` one after the other in one process, which imports once."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CALL_ALL = """
import contextlib, io, json, os, runpy, sys, traceback

def called(path, folder, name, arguments):
    sys.path[0], sys.argv = folder, [path, *arguments]
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            runpy.run_path(path, run_name=name)
    except SystemExit as end:
        return out.getvalue(), "" if end.code in (0, None) else f"exit {end.code}"
    except BaseException:
        return out.getvalue(), traceback.format_exc()
    return out.getvalue(), ""

json.dump([called(*each) for each in json.load(sys.stdin)], sys.stdout)
"""


@dataclass(frozen=True)
class Call:
    """A program with its arguments, or a file that is imported."""

    path: Path
    arguments: tuple[str, ...] = ()
    is_imported: bool = False

    def folder(self) -> Path:
        """Where it imports from: its own folder, or that which holds its package."""
        parents = self.path.parents
        return parents[1] if (parents[0] / "__init__.py").exists() else parents[0]


@dataclass(frozen=True)
class Result:
    """What a program printed, and why it failed; empty: it did not."""

    printed: str
    failure: str


def in_turn(calls: list[Call], where: Path) -> list[Result]:
    """Calls them in a folder. What they share is imported once."""
    told = [
        (str(call.path), str(call.folder()), "imported" if call.is_imported else "__main__",
         call.arguments)
        for call in calls
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", CALL_ALL], input=json.dumps(told), cwd=where,
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    return [Result(*each) for each in json.loads(done.stdout)]
