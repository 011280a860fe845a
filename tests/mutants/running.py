# SPDX-License-Identifier: Apache-2.0
"""Runs one suite on a copy of the tree, and builds what a fault in C or C++ needs built."""

import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.mutants import ROOT, Unfit

PATIENCE_S = 900
CORE = "bridge/core/"
_HERE = """import sys
sys.meta_path = [f for f in sys.meta_path if "Redirecting" not in type(f).__name__]
"""
"""The installed package points at the tree it was installed from; the copy has its own."""


@dataclass(frozen=True)
class Ran:
    """What a suite came to.

    Attributes:
        words: what failed first, in short.
    """

    passed: bool
    words: str


class Copy:
    """A copy of what git knows, as it is in this tree, with the compiled core.

    Kept from one run to the next, it need not be compiled again but for what has changed.
    """

    def __init__(self, home: Path) -> None:
        self.root = home / "tree"
        self._build = home / "core"
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, capture_output=True, check=True,
        ).stdout.decode().split("\0")  # fmt: skip
        names = {name for name in listed if name and (ROOT / name).is_file()}
        for name in names:
            self._put(name)
        for path in self.root.rglob("*"):  # what the tree no longer has
            name = str(path.relative_to(self.root))
            if path.is_file() and name not in names and not name.startswith("tests/shim/build/"):
                path.unlink()
        self._sound_core = Path(sys.modules["bridge.core._core"].__file__ or "")
        self.sound_core()
        (self.root / "sitecustomize.py").write_text(_HERE)

    def _put(self, name: str) -> None:
        """Copies a file that is another one; what is built from it must see that."""
        copied = self.root / name
        if copied.is_file() and copied.read_bytes() == (ROOT / name).read_bytes():
            return
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copied)

    def sound_core(self) -> None:
        """Puts the core without a fault back."""
        shutil.copy2(self._sound_core, self.root / CORE / self._sound_core.name)

    def prepare_core(self) -> None:
        """Compiles the whole core, little optimized (minutes, the first time), for this run."""
        nanobind = self._build / "nanobind"
        if not nanobind.is_dir():
            self._must(
                sys.executable, "-m", "pip", "install", "-q", "--target", str(nanobind),
                "nanobind>=2.4",
            )  # fmt: skip
        self._must(
            "cmake", "-S", str(self.root), "-B", str(self._build / "build"),
            f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=None",
            "-DCMAKE_CXX_FLAGS=-O1", f"-Dnanobind_DIR={nanobind / 'nanobind' / 'cmake'}",
            *(("-G", "Ninja") if shutil.which("ninja") else ()),
        )  # fmt: skip
        self.build_core()
        sound = self._build / self._sound_core.name
        shutil.copy2(self.root / CORE / sound.name, sound)
        self._sound_core = sound

    def build_core(self) -> None:
        """Compiles what has changed in the core, and has the copy use it."""
        self._must("cmake", "--build", str(self._build / "build"), "-j", str(os.cpu_count() or 1))
        made = self._build / "build" / self._sound_core.name
        shutil.copy2(made, self.root / CORE / made.name)

    def _must(self, *command: str) -> None:
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unfit(f"{' '.join(command[:4])} failed:\n{(done.stdout + done.stderr)[-2000:]}")

    def run(self, command: list[str]) -> Ran:
        """Runs a suite.

        Raises:
            Unfit: it could not be run, or not be built, which shows nothing.
        """
        is_pytest = command[0] == "pytest"
        if command[0] == "make":  # `run-x` builds x first; that alone must succeed
            self._must(*command[:-1], command[-1].replace("run-", "build/"))
        elif is_pytest:
            command = [sys.executable, "-m", *command, "-p", "no:cacheprovider"]
        else:
            command = [sys.executable, *command[1:]]
        environment = os.environ | {
            "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1", "SCHEDBRIDGE_SEED": "",
        }  # fmt: skip
        try:
            done = subprocess.run(
                command, cwd=self.root, env=environment, capture_output=True, text=True,
                errors="replace", timeout=PATIENCE_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Ran(False, "hangs")
        said = done.stdout + done.stderr
        if is_pytest and done.returncode > 1:
            raise Unfit(f"{' '.join(command)} could not run:\n{said[-2000:]}")
        if done.returncode < 0:
            return Ran(False, signal.Signals(-done.returncode).name)
        return Ran(done.returncode == 0, _first_failure(said))


def _first_failure(said: str) -> str:
    """The test, the rule or the line of C that failed first."""
    for line in said.splitlines():
        if line.startswith(("FAILED tests", "ERROR tests")):
            return line.split()[1].rpartition("::")[2].partition("[")[0]
        if line.startswith("seed ") and " is broken: " in line:
            return "rule " + line.partition(" is broken: ")[2].partition(":")[0]
        if re.match(r"\S+\.[ch]:\d+: ", line):
            return line.strip()
        if "Sanitizer" in line or line.startswith("Fatal Python error"):
            return line.strip()
    lines = [line for line in said.strip().splitlines() if not line.startswith("make")]
    return lines[-1] if lines else ""
