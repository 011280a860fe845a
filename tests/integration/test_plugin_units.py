# SPDX-License-Identifier: Apache-2.0
"""The plugins' parts that need no slurmctld, sanitized, in the image they are built in."""

import os
import subprocess

from tests.integration.slurm import ROOT


def test_the_plugins_parts_under_sanitizers() -> None:
    done = subprocess.run(
        ["docker", "run", "--rm", "--network", "none", "-v", f"{ROOT}:/checkout:ro",
         f"{os.environ.get('SCHEDBRIDGE_IMAGES', 'schedbridge')}/build", "sh", "-c",
         "mkdir -p /work/bridge /work/tests && cd /checkout && cp -r proto /work/"
         " && cp -r bridge/shim /work/bridge/ && cp -r tests/shim /work/tests/"
         " && rm -rf /work/bridge/shim/build /work/tests/shim/build"
         " && make -C /work/tests/shim"],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
