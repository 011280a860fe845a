# SPDX-License-Identifier: Apache-2.0
"""What the entry point `sharing` of the group schedbridge.extensions names."""

from typing import Final

from bridge.extensions.port import Extension, Face
from bridge.extensions.sharing.part import SharedNodes
from bridge.extensions.sharing.rules import NAME, SharingRules

EXTENSION: Final = Extension(
    NAME,
    after=("elastic", "topology"),
    plan=SharedNodes,
    site=SharingRules,
    stage="share",
    marks=("host_id", "extended_s"),
    stages=Face("bridge.extensions.sharing.stages:SharingStages"),
    counting=Face("bridge.extensions.sharing.counting:GuestCounting"),
    fallback=Face("bridge.extensions.sharing.fallback:GuestsAtFloor"),
    keeps=("coscheduling",),  # `bridge.extensions.sharing.switch`
    check=Face("bridge.extensions.sharing.check:SharingCheck"),
    wire=Face("bridge.extensions.sharing.wire:SharingWire"),
    service=Face("bridge.extensions.sharing.service_part:SharingParts"),
    methods=Face("bridge.extensions.sharing.methods:SharingMethods"),
    agents=Face("bridge.extensions.sharing.agents:SharingAgentReaders"),
    memory=Face("bridge.extensions.sharing.agents:SharingMemories"),
    meter=Face("bridge.extensions.sharing.meter:SharingMeters"),
    rules=Face("bridge.extensions.sharing.section:SharingSiteRules"),
)
