# SPDX-License-Identifier: Apache-2.0
"""Runs blocks on this machine: in a folder like a checkout, or in the checkout itself."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.documents.marks import Run
from tests.documents.pages import ROOT, Block

SAMPLES = Path(__file__).parent / "samples"
COPIED = ("examples", "slurm_conf")
"""Folders into which commands of the pages write."""
LINKED = ("benchmarks", "bridge", "docs", "scripts", ".venv")
TIMEOUT_S = 900


def folder_like_checkout(folder: Path) -> Path:
    """Fills a folder so that the paths of the pages lead somewhere, and nothing is written here."""
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("results*"))
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    return folder


def files_of(files: Mapping[str, str] | Sequence[str]) -> dict[str, bytes]:
    """The files that a mark names, by name."""
    if isinstance(files, Mapping):
        return {name: (ROOT / path).read_bytes() for name, path in files.items()}
    return {name: (SAMPLES / name).read_bytes() for name in files}


def shell(
    script: str, folder: Path, environment: Mapping[str, str], timeout_s: float = TIMEOUT_S
) -> subprocess.CompletedProcess[str]:
    """Runs a script in bash; its standard error is part of its output."""
    path = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=folder, text=True, check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "PATH": path, **environment}, timeout=timeout_s,
    )  # fmt: skip


class Host:
    """Runs the blocks of one page on this machine.

    Attributes:
        folder: the one that is like a checkout.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder_like_checkout(folder)
        self.environment = dict(environment or {})

    def run(self, script: str, mark: Run) -> subprocess.CompletedProcess[str]:
        """Runs a script where the mark says."""
        place = ROOT if mark.run == "checkout" else self.folder
        return shell(script, place, self.environment)

    def put(self, mark: Run) -> None:
        """Puts the files that the mark names where its block looks for them."""
        for name, content in files_of(mark.files).items():
            target = self.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)


def cited(block: Block) -> str:
    """The block, for a message."""
    return f"{block.place}\n{block.text}"
