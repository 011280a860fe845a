# SPDX-License-Identifier: Apache-2.0
"""What a test leaves behind fails a test of its own file, not the one that happens to run."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
IN_PLACE = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
"""Of an editable installation, as in pyproject.toml."""
LEAVES = """
import socket

class Open:
    def __init__(self):
        self.itself = self  # nobody but the collector of garbage destroys it

    def __del__(self):
        raise OSError("not closed")

def test_leaves_something():
    Open()
"""
COLLECTS = """
import gc

def test_another():
    gc.collect()
"""


def test_what_was_not_closed_fails_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(LEAVES)
    (tmp_path / "test_b.py").write_text(COLLECTS)
    ini = "[pytest]\nfilterwarnings = error::pytest.PytestUnraisableExceptionWarning\n"
    (tmp_path / "pytest.ini").write_text(ini)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rEf", "-p", "tests.conftest", "-p",
         "no:cacheprovider", "-W", IN_PLACE],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert "ERROR test_a.py::test_leaves_something" in done.stdout
    assert "test_b.py::test_another" not in done.stdout
    assert "2 passed, 1 error" in done.stdout
    assert "run twice: none" in done.stdout
