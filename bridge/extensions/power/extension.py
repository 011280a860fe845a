# SPDX-License-Identifier: Apache-2.0
"""What the entry point `power` of the group schedbridge.extensions names."""

from typing import Final

from bridge.extensions.port import Extension, Face
from bridge.extensions.power.changes import PowerChanges
from bridge.extensions.power.columns import NAME, PowerSaving
from bridge.extensions.power.rules import PowerRules

EXTENSION: Final = Extension(
    NAME,
    after=("elastic", "topology", "sharing"),
    nodes=PowerSaving,
    plan=PowerChanges,
    site=PowerRules,
    stages=Face("bridge.extensions.power.stages:PowerStages"),
    check=Face("bridge.extensions.power.check:PowerCheck"),
    rules=Face("bridge.extensions.power.section:PowerSiteRules"),
    agents=Face("bridge.extensions.power.power_use:PowerReaders"),
    memory=Face("bridge.extensions.power.memory:PowerMemories"),
    service=Face("bridge.extensions.power.service_part:PowerParts"),
    methods=Face("bridge.extensions.power.operators.methods:PowerMethods"),
    gauges=Face("bridge.extensions.power.gauges:PowerGauges"),
    wire=Face("bridge.extensions.power.wire:PowerWire"),
)
