# SPDX-License-Identifier: Apache-2.0
"""The agent is small: what it does not need is not loaded with it."""

import subprocess
import sys

from bridge.agent.privileges import (
    CAP_DAC_OVERRIDE,
    CAP_DAC_READ_SEARCH,
    CAP_SYS_NICE,
    CAP_SYS_PTRACE,
    needed,
)

UNWANTED = ("numpy", "pydantic", "prometheus_client", "bridge.planning", "bridge.core")


def test_the_agent_loads_nothing_of_the_service_that_is_large():
    """With the parts that extensions have in it."""
    code = (
        "import sys, bridge.cli.agent; from importlib.metadata import entry_points;"
        "[point.load() for point in entry_points(group='schedbridge.agents')]; print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )  # fmt: skip
    loaded = done.stdout.split()
    assert "grpc" in loaded
    assert "bridge.extensions.power.on_nodes.node_service" in loaded
    assert [name for name in UNWANTED if name in loaded] == []


def test_of_its_capabilities_it_keeps_what_it_needs():
    ptrace, read, override, nice = (
        1 << capability
        for capability in (
            CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE, CAP_SYS_NICE
        )
    )  # fmt: skip
    assert needed((1 << 41) - 1) == ptrace | read | nice
    assert needed(0xA88C25FB | ptrace) == ptrace | override | 0xA88C25FB & nice  # in a container
    assert needed(0) == 0
