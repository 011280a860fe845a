# SPDX-License-Identifier: Apache-2.0
"""Where a result comes from: the program, the command, the machine and its load.

Words
    version   of the installed package
    commit    the last one that changed the package, with `-dirty-HASH` if it has been changed
              since; without Git, `sources-HASH`
    sources   hash of the Python files that run: two installations with the same one compute the
              same results
"""

import hashlib
import importlib.metadata
import os
import platform
import shlex
import subprocess
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import bridge
from bridge import files
from bridge.units import format_instant

PACKAGE: Final = Path(bridge.__file__).parent
_DIGITS: Final = 12
_VERSIONS: Final = ("numpy", "ortools")


def provenance(arguments: Sequence[str]) -> dict[str, Any]:
    """Where a result comes from that this process computes now.

    Args:
        arguments: arguments of the command `schedbridge`.
    """
    return {
        "version": version(),
        "commit": commit(),
        "sources": sources(),
        "command": shlex.join(["schedbridge", *arguments]),
        "arguments": list(arguments),
        "date": format_instant(int(time.time()), "%Y-%m-%dT%H:%M:%S%z"),
        **surroundings(),
    }


def surroundings() -> dict[str, Any]:
    """The machine, its load and the versions of what computes here."""
    return {
        "machine": {
            "processor": _processor(),
            "cpus": os.cpu_count(),
            "memory_mib": files.physical_bytes() // files.MIB,
        },
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "versions": {"python": platform.python_version(), **_versions()},
    }


def version() -> str:
    """The installed version; empty if the package is not installed."""
    try:
        return importlib.metadata.version("schedbridge")
    except importlib.metadata.PackageNotFoundError:
        return ""


@cache
def sources() -> str:
    """The hash of the package's Python files."""
    found = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        found.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0")
        found.update(path.read_bytes() + b"\0")
    return found.hexdigest()[:_DIGITS]


@cache
def commit() -> str:
    """The commit of the package that runs."""
    last = _git("log", "-1", "--format=%H", "--", ".")
    # A folder in somebody else's repository is not this project's.
    if not last or _git("ls-files", "__init__.py") != b"__init__.py":
        return f"sources-{sources()}"
    changes = _git("diff", "HEAD", "--", ".")
    new = _git("ls-files", "--others", "--exclude-standard", "--", ".") or b""
    name = last.decode()[:_DIGITS]
    if not (changes or new):
        return name
    digest = hashlib.sha256((changes or b"") + b"\0" + new)
    digest.update(sources().encode())
    return f"{name}-dirty-{digest.hexdigest()[:_DIGITS]}"


def sha256_of(path: Path | str) -> str:
    """The SHA-256 of a file, hexadecimal.

    Raises:
        OSError: it cannot be read.
    """
    with files.opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _git(*arguments: str) -> bytes | None:
    """What Git says about the package's folder; None: there is no Git, or no repository."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=PACKAGE, capture_output=True, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _versions() -> dict[str, str]:
    found = {}
    for name in _VERSIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = ""
    return found
