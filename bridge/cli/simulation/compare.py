# SPDX-License-Identifier: Apache-2.0
"""`schedbridge lab compare`: policies and their budgets on the same recorded cycles.

A site that has recorded its own cycles sees what each policy would have planned, and how long it
takes: by this it chooses a budget.
"""

import json
from pathlib import Path
from typing import Annotated

import typer

from bridge.cli.operators.asking import console
from bridge.cli.simulation import comparison
from bridge.errors import ConfigError


def compare(
    *,
    instances: Annotated[
        Path | None,
        typer.Option(
            help="Directory of recordings ('schedbridge lab record'); default: the bundled ones."
        ),
    ] = None,
    policies: Annotated[
        str,
        typer.Option(
            help="Presets or YAML files, separated by commas; @50 after one: a budget of 50 ms."
        ),
    ] = "easy,conservative",
    budget_ms: Annotated[
        int, typer.Option(min=1, help="Budget in ms of policies that state none of their own.")
    ] = 1000,
    objective: Annotated[
        str, typer.Option(help="slowdown, bounded-slowdown, wait, priority or delay.")
    ] = "slowdown",
    min_queue: Annotated[
        int, typer.Option(min=0, help="Only instances with at least this many waiting jobs.")
    ] = 1,
    by_work: Annotated[
        bool, typer.Option("--work", help="Measure budgets in counted work, not in time.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compare policies on the same recorded cycles: objective and time."""
    if objective not in comparison.MEASURES:
        known = ", ".join(comparison.MEASURES)
        raise ConfigError("objective", f"there is no '{objective}'; there are {known}")
    entries = comparison.entries(policies, budget_ms, by_work=by_work)
    cycles, groups = comparison.load_instances(instances or comparison.bundled(), min_queue)
    before = comparison.machine()
    results = comparison.compare(cycles, groups, entries, seed, by_work=by_work)
    figures = comparison.summary(results, entries, objective)
    figures["machine"] = {"before": before, "after": comparison.machine()}
    if as_json:
        print(json.dumps(figures))
        return
    screen = console()
    for group in figures["groups"]:
        screen.print(comparison.table(figures, group))
        screen.print()
    print(
        f"{figures['instances']} instances; mean {objective}, less is better; relative to the best"
    )
