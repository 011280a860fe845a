#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the duration of a change of width, by number of nodes, to measurements of real changes.

usage: benchmarks/change_costs.py [FILE]           prints a table of the coefficients
       benchmarks/change_costs.py --python [FILE]  prints them as
       `bridge.lab.sim.workloads.change_costs` has them

FILE is a result of `benchmarks/adaptation.py` (results/adaptation.json). Each change that was
carried out is split into parts, with the terms of `bridge/lab/sim/workloads/change_costs.py`:

    part      growing                                   shrinking
    goes on   granting + starting + asked               asked
    still     going, under relaunch parked + restarting the same
    after     the rest, until the service sees it over  the rest: processes end, nodes are free

A part is fitted by least squares as a + b n, a, b >= 0; n is the larger number of nodes. Intervals
are 95 %: percentile bootstrap, `RESAMPLES` resamples of the changes. The time between the decision
and the first step is not included, because a change decided by a policy begins with its plan.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

RESULTS = Path(__file__).resolve().parent / "results" / "adaptation.json"
RESAMPLES = 2000
PARTS = ("goes on", "still", "after")
DIRECTIONS = ("growing", "shrinking")
DEFAULT = "yes"
"""The simulator has the coefficients of the program that redistributes data."""
Key = tuple[str, str, str]


def parts_of(step: Mapping[str, Any]) -> tuple[float, float, float] | None:
    """Seconds of each of `PARTS`; None: the launcher did not report all of them."""
    told = step["launcher"]
    still = [told[name] for name in ("going", "parked", "restarting") if name in told]
    if not step["done"] or not still or "asked" not in told:
        return None
    goes_on = told["asked"]
    if step["to"] > step["from"]:
        goes_on += step.get("granting_s", 0.0) + told.get("starting", 0.0)
    whole = step["total_s"] - step["asked_s"]
    return goes_on, sum(still), max(whole - goes_on - sum(still), 0.0)


def samples(data: Mapping[str, Any]) -> dict[Key, NDArray[np.float64]]:
    """(n, 1 + parts) nodes and seconds of each part, by engine, redistribution and direction."""
    found: dict[Key, list[tuple[float, ...]]] = {}
    for run in data["runs"]:
        for step in run.get("steps", ()):
            if (parts := parts_of(step)) is None:
                continue
            direction = DIRECTIONS[step["to"] < step["from"]]
            key = run["engine"], run["redistribution"], direction
            found.setdefault(key, []).append((max(step["from"], step["to"]), *parts))
    return {key: np.array(rows, dtype=np.float64) for key, rows in found.items()}


def fitted(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """(parts, 2) a and b of each part, neither less than 0."""
    nodes = rows[:, 0]
    lines = np.stack([np.ones(len(rows)), nodes], axis=1)
    found: NDArray[np.float64] = np.linalg.lstsq(lines, rows[:, 1:], rcond=None)[0].T
    for line, part_s in zip(found, rows[:, 1:].T, strict=True):
        if line[0] < 0:
            line[:] = 0, nodes @ part_s / (nodes @ nodes)
        elif line[1] < 0:
            line[:] = part_s.mean(), 0
    return found


def intervals(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """(2, parts, 2) lower and upper bounds of `fitted`."""
    rng = np.random.default_rng(0)
    drawn = [fitted(rows[rng.integers(0, len(rows), len(rows))]) for _ in range(RESAMPLES)]
    found: NDArray[np.float64] = np.percentile(np.stack(drawn), [2.5, 97.5], axis=0)
    return found


def table(found: Mapping[Key, NDArray[np.float64]]) -> list[str]:
    """Markdown: a line for each part."""
    lines = [
        "| engine | redistribution | direction | changes | part | a, s | b, ms per node "
        "| on 4 nodes, s | on 32 nodes, s | left over, s |",
        "|---|---|---|---:|---|---:|---:|---:|---:|---:|",
    ]
    for (engine, moves, direction), rows in found.items():
        best, (low, high) = fitted(rows), intervals(rows)
        for at, part in enumerate(PARTS):
            (a, b), left = best[at], rows[:, at + 1] - best[at, 0] - best[at, 1] * rows[:, 0]
            cells = [engine, moves, direction, str(len(rows)), part]
            cells.append(f"{a:.3f} [{low[at, 0]:.3f}, {high[at, 0]:.3f}]")
            cells.append(f"{1e3 * b:.1f} [{1e3 * low[at, 1]:.1f}, {1e3 * high[at, 1]:.1f}]")
            cells += [f"{a + b * nodes:.2f}" for nodes in (4, 32)]
            cells.append(f"{left.std():.2f}")
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def coefficients(
    found: Mapping[Key, NDArray[np.float64]],
) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Coefficients of each part, by engine and direction, as in the simulator, rounded to ms."""
    return {
        (engine, direction): [(round(a, 3), round(b, 4)) for a, b in fitted(rows).tolist()]
        for (engine, moves, direction), rows in found.items()
        if moves == DEFAULT
    }


def python(found: Mapping[Key, NDArray[np.float64]]) -> Iterable[str]:
    """The constants of `bridge.lab.sim.workloads.change_costs`."""
    by = coefficients(found)
    for engine in dict.fromkeys(engine for engine, _ in by):
        yield f"{engine.upper()}: Final = ChangeCosts("
        for direction in DIRECTIONS:
            lines = ", ".join(f"Line({a}, {b})" for a, b in by[engine, direction])
            yield f"    Times({lines}),"
        yield ")"


def main() -> None:
    """Fits and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("file", nargs="?", type=Path, default=RESULTS, metavar="FILE")
    parser.add_argument("--python", action="store_true", help="print the simulator's constants")
    given = parser.parse_args()
    try:
        found = samples(json.loads(given.file.read_text()))
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"{given.file}: is no result of benchmarks/adaptation.py: {error!r}")
    few = [" ".join(key) for key, rows in found.items() if len({*rows[:, 0]}) < 3]
    if few or not found:
        sys.exit(f"{given.file}: too few widths for a line: {', '.join(few) or 'no changes'}")
    print("\n".join(python(found) if given.python else table(found)))


if __name__ == "__main__":
    main()
