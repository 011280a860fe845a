# SPDX-License-Identifier: Apache-2.0
"""Policies that reproduce published ones. They are for comparisons, not for production.

They come in by the same door as a package of anybody else's: an entry point of the group
schedbridge.policies names `PACKAGE`. There is one folder for each subject. Imports policies,
planning and core; nothing of these imports it. Start with `dispatch/pcp19.py`.
"""

from typing import Final

from bridge.model.policy import Algorithm, PolicyPackage, preset


def _here(path: str, **parameters: object) -> Algorithm:
    return Algorithm(f"bridge.papers.{path}", parameters)


PACKAGE: Final = PolicyPackage(
    algorithms={
        "order": {"waiting-periods": _here("placement.waiting_periods:WaitingPeriods")},
        "plan": {
            "pcp19": _here("dispatch.pcp19:Pcp19"),
            "hcp19": _here("dispatch.hcp19:Hcp19"),
            "pcp20": _here("dispatch.pcp20:Pcp20"),
            "window": _here("placement.window:WindowPlanner"),
            "in-order": _here("placement.window:WindowPlanner", period_s=0, pass_over=False),
        },
        "place": {
            "contiguous-exact": _here("placement.contiguous:ContiguousExact"),
            "annealing": _here("placement.annealing:Annealing"),
            "neural": _here("placement.neural:Neural"),
        },
        "reshape": {
            "performance": _here("malleable.performance:Performance"),
            "fpsma": _here("malleable.fpsma:Fpsma"),
            "power-corridor": _here("malleable.power_corridor:PowerCorridor"),
        },
        "share": {
            "static-half": _here("sharing.static_half:StaticHalf"),
            "asax": _here("sharing.asax:AsaX"),
        },
    },
    presets=(
        preset("pcp19", "slowdown", "pcp19", "best-fit"),
        preset("hcp19", "slowdown", "hcp19", "best-fit"),
        preset("pcp20", "slowdown", "pcp20", "best-fit"),
        preset("tjap-annealing", "waiting-periods", "window", "annealing"),
        preset("tjap-neural", "waiting-periods", "window", "neural"),
        preset("malleable-performance", "fcfs", "in-order", "sequential", reshape="performance"),
        preset("fpsma", "fcfs", "in-order", "sequential", reshape="fpsma"),
        preset("malleable-power", "fcfs", "in-order", "sequential", reshape="power-corridor"),
        preset("static-half", "fcfs", "easy", "sequential", share="static-half"),
        preset("asax", "fcfs", "easy", "sequential", share="asax"),
    ),
)
