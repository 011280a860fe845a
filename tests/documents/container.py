# SPDX-License-Identifier: Apache-2.0
"""Runs the steps of an installation in a fresh Debian, as root, in a copy of the checkout."""

import subprocess
from pathlib import Path

from tests.documents.host import files_of
from tests.documents.marks import Run
from tests.documents.pages import ROOT

IMAGE = "debian:trixie-slim"
SOURCE = "/src"
WHEELS = ROOT / "docker" / "cache" / "wheels"
"""What `scripts/cluster build` fetched: pip needs no index in the container."""


class Container:
    """A container for one page; remove it when done."""

    def __init__(self, name: str) -> None:
        self.name = name

    def up(self) -> None:
        """Starts it, with the tracked files of the checkout."""
        self.down()
        offline = ("--env", "PIP_NO_INDEX=1", "--env", "PIP_FIND_LINKS=/wheels")
        # The images of clusters are compiled with optimisation: here it would take twice the time.
        fast = ("--env", "SKBUILD_CMAKE_BUILD_TYPE=Debug")
        _docker(
            "run", "--detach", "--network", "host", "--name", self.name, *offline, *fast,
            "--env", "DEBIAN_FRONTEND=noninteractive", "--volume", f"{WHEELS}:/wheels:ro",
            "--workdir", SOURCE, IMAGE, "sleep", "infinity",
        )  # fmt: skip
        listed = _call("git", "ls-files", "-z").stdout
        packed = _call("tar", "-c", "--null", "-T", "-", stdin=listed).stdout
        _docker("exec", "-i", self.name, "tar", "-x", "-C", SOURCE, stdin=packed)

    def down(self) -> None:
        """Removes it."""
        subprocess.run(["docker", "rm", "-f", self.name], capture_output=True, check=False)

    def run(self, script: str, mark: Run) -> subprocess.CompletedProcess[str]:
        """Runs a script in it."""
        return subprocess.run(
            ["docker", "exec", self.name, "bash", "-euo", "pipefail", "-c", f"exec 2>&1\n{script}"],
            capture_output=True, text=True, timeout=1800, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def put(self, mark: Run) -> None:
        """Puts the files that the mark names where it works, or at the path that they have."""
        for name, content in files_of(mark.files).items():
            command = ["sh", "-c", f'mkdir -p "$(dirname {name})" && cat > {name}']
            _docker("exec", "-i", self.name, *command, stdin=content)


def _docker(*words: str, stdin: bytes = b"") -> None:
    _call("docker", *words, stdin=stdin)


def _call(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(words, cwd=Path(ROOT), input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, f"{words}: {done.stderr.decode(errors='replace')}"
    return done
