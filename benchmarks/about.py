# SPDX-License-Identifier: Apache-2.0
"""The origin of a results file: commit of the measured code, date, command, machine and load."""

import os
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]


def about() -> dict[str, object]:
    """Call it when the measurement ends, so that the load is that of the last minutes."""
    program = Path(sys.argv[0]).resolve()
    name = program.relative_to(ROOT).as_posix() if program.is_relative_to(ROOT) else program.name
    arguments = [Path(each).name if each.startswith("/") else each for each in sys.argv[1:]]
    return {
        "commit": commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "command": shlex.join([name, *arguments]),
        "machine": {
            "processor": _processor(),
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
            "load_average": [round(load, 2) for load in os.getloadavg()],
        },
    }


def commit() -> str:
    """The last commit that changed the package; with `-dirty` if it has been changed since."""

    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    return git("log", "-1", "--format=%h", "--", "bridge") + "-dirty" * bool(
        git("status", "--porcelain", "--untracked-files=no", "--", "bridge")
    )


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
