#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the results files with the commit of their measurement and the number of later changes.

benchmarks/results_age.py     # in a checkout with its history

For each file: the commit that it names, or in brackets the one that added it if it names none; and
the later commits that changed the measured code (`MEASURED`).
"""

import argparse
import json
import subprocess

from about import ROOT

MEASURED = (
    "core", "planning", "policies", "check", "cycle.py", "extensions", "lab/sim", "rpc", "shim",
    "sim", "resizing", "elastic",  # where parts of these were
)  # fmt: skip


def git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    print("| file | measured at | date | commits since | load average |\n|---|---|---|---:|---|")
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.json*")):
        text = path.read_text()
        found = json.loads(text if path.suffix == ".json" else text.splitlines()[0])
        added, date = git("log", "-1", "--format=%h %ad", "--date=short", "--", str(path)).split()
        commit = found.get("commit", "") if git("cat-file", "-t", found.get("commit", "")) else ""
        paths = [f"bridge/{name}" for name in MEASURED]
        since = git("rev-list", "--count", f"{commit or added}..HEAD", "--", *paths)
        machine = found.get("machine", {})
        load = machine.get("load_average") if isinstance(machine, dict) else None
        shown = commit or f"({added})"
        print(f"| {path.name} | {shown} | {date} | {since} | {load or 'not recorded'} |")


if __name__ == "__main__":
    main()
