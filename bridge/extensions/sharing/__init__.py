# SPDX-License-Identifier: Apache-2.0
"""Jobs that share nodes: guests on the CPUs of hosts.

`EXTENSION` is what the entry point names. The cycle still imports which guests go with a plan
(`shared_plan.py`); docs/design/0012-extensions.md says what comes here next. Imports the port,
planning and the model. Start with `section.py`.
"""

from typing import Final

from bridge.extensions.port import Extension, Face
from bridge.model.rules.coscheduling import NAME, SharingRules

EXTENSION: Final = Extension(
    NAME,
    after=("elastic", "topology"),
    site=SharingRules,
    fallback=Face("bridge.extensions.sharing.fallback:GuestsAtFloor"),
    keeps=("coscheduling",),  # `bridge.planning.sharing.switch`
    meter=Face("bridge.extensions.sharing.meter:SharingMeters"),
    rules=Face("bridge.extensions.sharing.section:SharingSiteRules"),
)
