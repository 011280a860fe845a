#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All dispatchers on the same instances in one run, as JSON and as a Markdown table.

`compare.py [--instances DIR] [--policies LIST] [--json FILE]`; without a list: the paper's three at
a second, two of them with a better order to begin with, `search` at 50 ms and at a second, and the
greedy ones. `--table FILE` only shows a file.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
POLICIES = (
    "easy",
    "conservative",
    str(HERE / "shortest-first.yaml"),
    "pcp19@1000",
    "hcp19@1000",
    "pcp20@1000",
    f"{HERE / 'hcp19-shortest.yaml'}@1000",
    f"{HERE / 'pcp20-shortest.yaml'}@1000",
    "search@50",
    "search@1000",
)


def main() -> None:
    """Runs the comparison, or shows one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=Path)
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--objective", default="slowdown")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    if options.table:
        print(markdown(json.loads(options.table.read_text())))
        return
    command = ["schedbridge", "bench", "dispatch", "--json", "--policies", options.policies]
    command += ["--objective", options.objective]
    command += ["--instances", str(options.instances)] if options.instances else []
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    found = json.loads(done.stdout)
    if options.json:
        options.json.write_text(compact(found))
    print(markdown(found))


def compact(found: dict[str, Any]) -> str:
    """The result as JSON, a line for each of its many parts."""
    parts = []
    for key, value in found.items():
        if isinstance(value, list):
            lines = ",\n ".join(json.dumps(one) for one in value)
            parts.append(f"{json.dumps(key)}: [\n {lines}\n]")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def markdown(found: dict[str, Any]) -> str:
    """One table a group of instances."""
    lines = []
    for group, policies in found["groups"].items():
        count = len({r["instance"] for r in found["results"] if group in ("all", r["group"])})
        lines += [f"{group}, {count} instances", ""]
        lines += [
            f"| policy | {found['objective']} | relative | best of | mean, ms | p90 | max | |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for name, one in policies.items():
            times = one["decision_ms"]
            greedy = ", ".join(f"{n} {why}" for why, n in one["fallbacks"].items())
            failed = f"{one['failed']} failed" if one["failed"] else ""
            lines.append(
                f"| {name} | {one['mean']:.2f} | {one['relative']:.3f} | {one['best_of']} | "
                f"{times['mean']:.0f} | {times['p90']:.0f} | {times['max']:.0f} | "
                f"{', '.join(part for part in (failed, greedy) if part)} |"
            )
        lines.append("")
    machine = found["machine"]
    before, after = (machine[when]["load_average"][0] for when in ("before", "after"))
    lines.append(f"{machine['before']['cpus']} CPUs, load average {before} before, {after} after.")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
