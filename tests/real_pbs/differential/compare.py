# SPDX-License-Identifier: Apache-2.0
"""Compares two results of `run.py`: kind | pbs_sched | the service.

Usage: python -m tests.real_pbs.differential.compare PBS_SCHED.json BRIDGE.json [COMMIT]
           > docs/results/pbs-differential.md

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


_HEAD = """# Comparison with pbs_sched

Each kind of job is submitted to a real OpenPBS 23.06.06 server with four hosts of one vnode and one
host of two, once with pbs_sched (its `sched_config` as installed, with the resources of the cases
in its line `resources:`) and once with `schedbridge pbs-link` and the policy `pbs`. The cases are
in `tests/real_pbs/differential`, which writes this page.

Compared are each job's state once nothing changes any more, the chunks that it got, and on how many
vnodes. `R`: it runs; `Q`: it waits; `H`, `W`, `S`: it is held, waits for its time, is suspended.

| verdict | kinds | meaning |
| --- | ---: | --- |"""
_MEANINGS = {
    "same": "the same states, chunks and vnodes",
    "other vnodes": "the same states and chunks, on other vnodes",
    "better": "more jobs run",
    "policy": "the policy decides otherwise",
    "worse": "fewer jobs run, or others",
    "error": "the case could not be carried out",
    "not run": "",
}


def main(stock_file: str, bridge_file: str, commit: str = "") -> int:
    """Prints the page."""
    stock, bridge = (json.loads(Path(file).read_text()) for file in (stock_file, bridge_file))
    counts = dict.fromkeys(_MEANINGS, 0)
    rows = []
    for kind in CASES:
        found = "not run"
        if kind in stock and kind in bridge:
            found = verdict(stock[kind], bridge[kind])
            if found == "worse" and kind in BY_POLICY:
                found = "policy"
            why = BY_POLICY.get(kind, "") if found == "policy" else ""
            cells = (kind, shown(stock[kind]), shown(bridge[kind]), found, why)
            rows.append(f"| {' | '.join(cells)} |")
        counts[found] += 1
    print(_HEAD)
    for word, number in counts.items():
        if number or word == "worse":
            print(f"| {word} | {number} | {_MEANINGS[word]} |")
    print(f"| total | {len(CASES)} | |\n")
    if commit:
        print(f"Run: {len(rows)} kinds at commit {commit}.\n")
    print("| kind | pbs_sched | schedbridge | verdict | why |\n| --- | --- | --- | --- | --- |")
    print("\n".join(rows))
    return int(any(counts[word] for word in ("worse", "error", "not run")))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
