# SPDX-License-Identifier: Apache-2.0
"""The policy of the extension, at an entry point of the group `schedbridge.policies`."""

from typing import Final

from bridge.model.policy import Algorithm, PolicyPackage, preset

PACKAGE: Final = PolicyPackage(
    algorithms={"share": {"pairs": Algorithm("bridge.extensions.sharing.pairs:Pairs")}},
    presets=(preset("pairs", "fcfs", "easy", "sequential", share="pairs"),),
    summaries={
        "pairs": "as easy; jobs that consent share nodes, within a bound on their slowdown",
    },
)
