# SPDX-License-Identifier: Apache-2.0
"""Benchmarks that run strategies on a real cluster, one after the other: command line and loop."""

import argparse
import json
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import results_file
from about import about
from progress import say

from cluster_bench.stand import BenchError

Figures = dict[str, Any]


def parser(description: str | None, epilog: str) -> argparse.ArgumentParser:
    """With the options that all such benchmarks have."""
    found = argparse.ArgumentParser(
        description=(description or "").split("\n\n", maxsplit=1)[0], epilog=epilog
    )
    add = found.add_argument
    add("--show", type=Path, help="only print the tables of this file")
    add("--plot", type=Path, help="only draw this file, as .svg beside it")
    add("--again", type=Path, help="only simulate the runs of this file again")
    add("--json", type=Path, help="write all figures to this file")
    add("--add", action="store_true", help="keep the other runs in FILE")
    return found


def checked(parser: argparse.ArgumentParser, strategies: Sequence[str]) -> argparse.Namespace:
    """The arguments, with a list of strategies; ends the program if one is impossible."""
    given = parser.parse_args()
    given.strategies = given.strategies.split(",")
    if unknown := set(given.strategies) - set(strategies):
        parser.error(f"'{min(unknown)}' is none of {', '.join(strategies)}")
    if given.add and not given.json:
        parser.error("--add needs --json FILE")
    if not 2 <= given.nodes <= 64:
        parser.error("--nodes: 2 to 64")
    return given


def measure(
    given: argparse.Namespace,
    keys: Sequence[str],
    label: Callable[[str], Figures],
    *,
    on_cluster: Callable[[str], Figures],
    simulated: Callable[[str, Mapping[str, float]], Figures],
    table: Any,
) -> int:
    """Runs each strategy on the cluster and in the simulator; writes the file after each.

    Args:
        given: the arguments.
        keys: what tells runs apart; a run takes the place of its like in the file.
        label: of a strategy's run.
        on_cluster: runs a strategy.
        simulated: the same jobs at the measured costs.
        table: the module that shows the figures.

    Returns:
        The exit code: whether a run failed or a job had a wrong result.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    found: list[Figures] = []
    if given.add and given.json.exists():
        found = json.loads(given.json.read_text())["runs"]
    for strategy in given.strategies:
        head = {"strategy": strategy, **label(strategy)}
        say(f"{strategy}: {given.jobs} jobs, {given.compression:g} to 1")
        try:
            result = on_cluster(strategy)
        except (BenchError, OSError, ValueError, TimeoutError) as error:
            say(f"  failed: {error}")
            found.append({**head, **about(), "error": str(error)})
            continue
        entry = {**head, **about(), **result, "simulated": simulated(strategy, result["costs"])}
        found = [one for one in found if any(one.get(k) != entry.get(k) for k in keys)] + [entry]
        say("  " + table.in_short(entry))
        if given.json:
            results_file.write(given.json, {**about(), "runs": found})
    print("\n".join(table.lines({"runs": found})))
    return int(any("error" in one or one["right"] != one["count"] for one in found))
