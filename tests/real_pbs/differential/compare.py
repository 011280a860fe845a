# SPDX-License-Identifier: Apache-2.0
"""Compares two results of `run.py`: kind | pbs_sched | the service.

Usage: python -m tests.real_pbs.differential.compare PBS_SCHED.json BRIDGE.json

Verdicts: `same`; `other vnodes`, with the same chunks in the same states; `better`, if more jobs
run; `worse`, if fewer do, or chunks differ; `policy`,
if the table of cases says why. The exit code is 1 if a kind is worse or has no result.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.real_pbs.differential.cases import BY_POLICY, CASES


def verdict(stock: Mapping[str, Any], bridge: Mapping[str, Any]) -> str:
    """Compares what the jobs of one kind came to."""
    if "error" in stock or "error" in bridge:
        return "error"
    if stock == bridge:
        return "same"
    ran = [_running(each) for each in (stock, bridge)]
    if ran[0] != ran[1]:
        return "better" if ran[1] > ran[0] else "worse"
    if _without_vnodes(stock) == _without_vnodes(bridge):
        return "other vnodes"
    return "worse"


def _running(jobs: Mapping[str, Any]) -> int:
    return sum(
        job.get("R", 0) if "state" not in job else job["state"] == "R"
        for job in jobs.values()
        if isinstance(job, dict)
    )


def _without_vnodes(jobs: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {key: value for key, value in job.items() if key not in ("on", "vnodes")}
        if isinstance(job, dict)
        else job
        for name, job in jobs.items()
    }


def shown(jobs: Mapping[str, Any]) -> str:
    """Writes what the jobs of one kind came to."""
    words = []
    for name, job in sorted(jobs.items()):
        if not isinstance(job, dict):
            words.append(f"{name} {job}")
        elif "state" in job:
            where = f" on {', '.join(job['on'])}" if job.get("on") else ""
            words.append(f"{name} {job['state']}{where}")
        else:
            words.append(f"{name} {', '.join(f'{n} {state}' for state, n in job.items())}")
    return "; ".join(words)


def main(stock_file: str, bridge_file: str) -> int:
    """Prints the table."""
    stock, bridge = (json.loads(Path(file).read_text()) for file in (stock_file, bridge_file))
    counts: dict[str, int] = {}
    print("| kind | pbs_sched | schedbridge | |\n|---|---|---|---|")
    for kind in CASES:
        if kind in stock and kind in bridge:
            found = verdict(stock[kind], bridge[kind])
            if found == "worse" and kind in BY_POLICY:
                found = "policy"
            print(f"| {kind} | {shown(stock[kind])} | {shown(bridge[kind])} | {found} |")
        else:
            found = "not run"
        counts[found] = counts.get(found, 0) + 1
    print("\n" + ", ".join(f"{number} {word}" for word, number in sorted(counts.items())))
    return int(any(counts.get(word) for word in ("worse", "error", "not run")))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
