# SPDX-License-Identifier: Apache-2.0
"""The agent is small: what it does not need is not loaded with it."""

import subprocess
import sys

UNWANTED = ("numpy", "pydantic", "prometheus_client", "bridge.planning", "bridge.core")


def test_the_agent_loads_nothing_of_the_service_that_is_large():
    code = "import sys, bridge.cli.agent; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )  # fmt: skip
    loaded = done.stdout.split()
    assert "grpc" in loaded
    assert [name for name in UNWANTED if name in loaded] == []
