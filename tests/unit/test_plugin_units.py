# SPDX-License-Identifier: Apache-2.0
"""The plugins outside slurmctld, built against a mock of it, under sanitizers and a little fuzzing.

`scripts/environment --dev` installs what this needs where it is root; the cluster tests run the
same in the image that the plugins are built in.
"""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

SUITES = Path(__file__).parents[1] / "shim"
HEADERS = "#include <curl/curl.h>\n#include <protobuf-c/protobuf-c.h>\n"
PACKAGES = "gcc make libcurl4-openssl-dev libprotobuf-c-dev protobuf-c-compiler protobuf-compiler"


def missing() -> str:
    """What the suites need and this machine does not have; empty: nothing."""
    for program in ("make", "cc", "protoc-c"):
        if shutil.which(program) is None:
            return program
    tried = subprocess.run(
        ["cc", "-E", "-x", "c", "-", "-o", os.devnull],
        input=HEADERS, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return "" if tried.returncode == 0 else "headers of libcurl or libprotobuf-c"


@pytest.mark.skipif(
    bool(missing()),
    reason=f"{missing()}: not here (apt-get install {PACKAGES}); `scripts/test cluster` runs these",
)
def test_the_plugins_under_sanitizers(tmp_path: Path) -> None:
    """Slow: compiles all suites of the plugins with sanitizers, and runs them."""
    build = SUITES / "build" if os.access(SUITES, os.W_OK) else tmp_path
    with (SUITES / "Makefile").open() as lock:  # one after the other: they share what is built
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            ["make", "-j2", "-C", str(SUITES), f"BUILD={build}"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
