# SPDX-License-Identifier: Apache-2.0
"""The table for docs/results/differential.md, and the counts."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.ran import told

Row = dict[str, Any]
"""What run.Row.as_dict makes."""

_HEAD = """# Beside stock Slurm

The same jobs on two clusters of 16 nodes, from the same image and `slurm.conf`: one scheduled by
the bridge (`slurm-like`), one by Slurm's own backfill, looking every second. Made by
`scripts/test differential --table docs/results/differential.md`; the cases are in
`tests/differential/cases`, the nodes and partitions in `tests/differential/site.py`.

Compared are what the submission says, whether and how soon each job starts, its nodes, CPUs, memory
and devices, its nodes by name where they are determined, Slurm's word for a wait where it has
one, and how the job ended. A case that differs is run a second time, with more patience, and that
run counts (but with `--once`).

"""
_MEANING = {
    "same": "as stock",
    "on purpose": "differs, and the last column says why",
    "closed list": "what the bridge does without (see ADMIN.md)",
    "worse": "to be mended",
    "broken": "the case itself failed",
}


def counts(rows: Sequence[Row]) -> dict[str, int]:
    """How many rows of each verdict."""
    found = Counter(row["verdict"] for row in rows)
    return {verdict: found[verdict] for verdict in _MEANING if found[verdict]} | {
        "in all": len(rows)
    }


def markdown(rows: Sequence[Row], *, wanting: int = 0) -> str:
    """The whole page; `wanting`: how many of the cases have not been run."""
    lines = ["| verdict | kinds | meaning |", "| --- | ---: | --- |"]
    found = counts(rows)
    lines += [f"| {name} | {found.get(name, 0)} | {text} |" for name, text in _MEANING.items()]
    lines.append(f"| in all | {len(rows)} | |")
    once = sum(row["verdict"] == "worse" and len(row["runs"]) == 1 for row in rows)
    if once:
        lines += ["", f"{once} of those that are worse were run once only."]
    if wanting:
        lines += ["", f"{wanting} of the cases are not in this table: not run yet."]
    lines += ["", told(rows, "cases")]
    for topic in dict.fromkeys(row["topic"] for row in rows):
        lines += ["", f"## {topic[:1].upper()}{topic[1:]}", "",
                  "| case | submitted | stock | bridge | verdict | why |",
                  "| --- | --- | --- | --- | --- | --- |"]  # fmt: skip
        lines += [_line(row) for row in rows if row["topic"] == topic]
    return _HEAD + "\n".join(lines) + "\n"


def differences(rows: Sequence[Row]) -> str:
    """Everything that is to be mended, as text: case, submission, both outcomes."""
    parts = []
    for row in rows:
        if row["verdict"] in ("worse", "broken"):
            parts.append(
                f"{row['topic']}: {row['name']}   [{row['verdict']}]\n"
                f"  submit  {row['submit']}\n"
                + "".join(f"  {key:<7} {' ; '.join(row[key].splitlines())}\n"
                          for key in ("prepare", "then") if row[key])
                + f"  stock   {row['stock']}\n  bridge  {row['bridge']}\n"
                + "".join(f"  why     {line}\n" for line in dict.fromkeys(row["told"]))
            )  # fmt: skip
    return "\n".join(parts)


def _line(row: Row) -> str:
    submitted = row["submit"].replace(" --wrap 'sleep 300'", "")
    why = row["closed"] or row["differs"]
    if row["verdict"] in ("worse", "broken"):
        why = "; ".join(dict.fromkeys(row["told"]))
    alike = row["stock"] == row["bridge"]
    cells = [row["name"], f"`{_short(submitted)}`", row["stock"], "=" if alike else row["bridge"],
             row["verdict"], why if row["verdict"] != "same" else ""]  # fmt: skip
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _short(text: str, most: int = 160) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _cell(text: str) -> str:
    return _short(" ".join(text.split()), 240).replace("|", "\\|")
