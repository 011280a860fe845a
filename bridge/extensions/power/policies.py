# SPDX-License-Identifier: Apache-2.0
"""The policy of the extension, at an entry point of the group `schedbridge.policies`."""

from typing import Final

from bridge.model.policy import Algorithm, PolicyPackage, preset

PACKAGE: Final = PolicyPackage(
    algorithms={
        "reshape": {
            "power-plan": Algorithm("bridge.extensions.power.planning.power_plan:PowerPlan")
        }
    },
    presets=(preset("power-plan", "fcfs", "conservative", "sequential", reshape="power-plan"),),
    summaries={"power-plan": "as malleable, within a power corridor"},
)
