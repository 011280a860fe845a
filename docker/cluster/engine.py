# SPDX-License-Identifier: Apache-2.0
"""The docker command, as the rest of the package calls it.

A failure that its user can mend is `Trouble`: one line, or one line and the logs that explain it.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""


class Trouble(Exception):
    """What went wrong, in one line; `detail` holds what a person would look at next."""

    def __init__(self, line: str, detail: str = "") -> None:
        super().__init__(line)
        self.detail = detail


def call(
    *arguments: str, stdin: bytes | None = None, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Runs docker and returns what it said.

    Raises:
        Trouble: it failed, and `check`.
    """
    done = subprocess.run(
        ["docker", *arguments], input=stdin or b"", capture_output=True, check=False
    )
    out, err = (stream.decode(errors="replace") for stream in (done.stdout, done.stderr))
    if check and done.returncode != 0:
        errors = [line for line in err.splitlines() if line.strip()] or ["no reason given"]
        raise Trouble(f"docker {arguments[0]} failed: {errors[-1]}", "\n".join(errors[:-1]))
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def need_engine(*, start: bool) -> None:
    """Makes sure that an engine answers.

    Args:
        start: as root, one is started if none answers, and installed if there is none.

    Raises:
        Trouble: none answers.
    """
    installed = shutil.which("docker") is not None
    if installed and not call("version", "--format", "{{.Server.Version}}", check=False).returncode:
        return
    if start and os.geteuid() == 0:
        say("no Docker engine answers: starting one (scripts/docker-engine)")
        if subprocess.run([str(ROOT / "scripts" / "docker-engine")], check=False).returncode == 0:
            return
        raise Trouble("the Docker engine could not be started")
    lacks = "no Docker engine answers" if installed else "docker is not installed"
    raise Trouble(f"{lacks}: run scripts/docker-engine as root")


def become(*arguments: str) -> NoReturn:
    """Replaces this process by docker, so that input, output and exit code are its own."""
    os.execvp("docker", ["docker", *arguments])


def wait_for(fact: Callable[[], bool], timeout_s: float, pause_s: float = 0.1) -> bool:
    """Waits until a fact is true; false if it is not in time."""
    deadline = time.monotonic() + timeout_s
    while not fact():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause_s)
    return True


def say(text: str) -> None:
    """Tells the user what goes on, beside what the command prints."""
    print(f"cluster: {text}", file=sys.stderr, flush=True)
