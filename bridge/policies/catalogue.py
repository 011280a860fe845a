# SPDX-License-Identifier: Apache-2.0
"""The names of the algorithms in this folder, and the presets made of them."""

from typing import Final

from bridge.model.policy import Algorithm, PolicyPackage, preset

DEFAULT: Final = "slurm-like"
"""The preset of a service whose configuration names no policy."""


def _here(path: str, **parameters: object) -> Algorithm:
    return Algorithm(f"bridge.policies.{path}", parameters)


PACKAGE: Final = PolicyPackage(
    algorithms={
        "order": {
            "fcfs": _here("order.fcfs:Fcfs"),
            "slurm": _here("order.slurm:SlurmPriority"),
            "pbs": _here("order.pbs:PbsOrder"),
            "shortest": _here("order.shortest:Shortest"),
            "slowdown": _here("order.slowdown:Slowdown"),
        },
        "plan": {
            "easy": _here("plan.backfill:Backfill", depth=1),
            "conservative": _here("plan.backfill:Backfill", depth=None),
            "openccs": _here("plan.openccs:OpenCcs"),
            "search": _here("plan.search:Search"),
        },
        "place": {
            "sequential": _here("place.sequential:Sequential"),
            "best-fit": _here("place.best_fit:BestFit"),
            "weighted": _here("place.weighted:Weighted"),
            "compact": _here("place.compact:Compact"),
        },
        "predict": {
            "time-limit": _here("predict.time_limit:TimeLimit"),
            "last-two": _here("predict.last_two:LastTwo"),
            "name-history": _here("predict.name_history:NameHistory"),
            "oracle": _here("predict.oracle:Oracle"),
        },
        "reshape": {
            "none": _here("reshape.none:NoReshape"),
            "malleable": _here("reshape.malleable:LentNodes"),
        },
        "share": {"none": Algorithm("bridge.ports:NoStage")},
    },
    presets=(
        preset(DEFAULT, "slurm", "conservative", "best-fit"),
        preset("easy", "fcfs", "easy", "sequential"),
        preset("conservative", "fcfs", "conservative", "sequential"),
        preset("pbs", "pbs", "conservative", "weighted"),
        preset("openccs", "slurm", "openccs", "weighted"),
        preset("responsive", "slowdown", "easy", "best-fit", "last-two"),
        preset("search", "slurm", "search", "best-fit"),
        preset(
            "recommended",
            "slurm",
            "search",
            "compact",
            objective="wait",
            power=2,
            ageing_s=None,
            class_factor=0.9,
            longest_factor=1,
        ),
        preset("malleable", "fcfs", "conservative", "sequential", reshape="malleable"),
    ),
    summaries={
        DEFAULT: "Slurm's priorities; every job has a planned start",
        "easy": "first come, first served; only the first waiting job has a reserved start",
        "conservative": "first come, first served; every job has a planned start",
        "pbs": "PBS's order and node_sort_key; every job has a planned start",
        "openccs": "Slurm's priorities; announced starts only move earlier",
        "responsive": "short waits for short jobs; run times are predicted",
        "search": "least mean slowdown; long and wide jobs may wait longer",
        "recommended": "short mean waits; no class of jobs should wait much longer than under easy",
        "malleable": "as conservative; running malleable jobs lend nodes to waiting jobs",
    },
)
