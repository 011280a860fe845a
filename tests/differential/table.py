# SPDX-License-Identifier: Apache-2.0
"""The table for docs/results/differential.md, and the counts."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.ran import told

Row = dict[str, Any]
"""What run.Row.as_dict makes."""

_HEAD = """# Comparison with stock Slurm

Each case submits the same jobs to two clusters of 16 nodes with the same image and `slurm.conf`.
Slurm's backfill schedules one of them, once a second; the bridge schedules the other, with the
policy `slurm-like`. Cases under titles with `CR_CPU`, `select/linear` or a FreePool are run on two
clusters each that are configured so (`tests/differential/variants.py`). `scripts/test differential
--table docs/results/differential.md` writes this page. The cases are in `tests/differential/cases`,
the nodes and partitions in `tests/differential/site.py`.

A case compares the output of the submission, whether and when each job starts, its number of nodes,
CPUs, memory and devices, and its exit state. Node names are compared where only one choice is
right, and pending reasons where Slurm has a specific one. If the outcomes differ, the case is run
again with longer time limits and the second run counts (unless `--once` is given).

In the tables, `=` means the same text as stock; *why* explains a difference.

"""
_MEANING = {
    "same": "no difference that matters",
    "by design": "an intended difference",
    "unsupported": "a feature that the bridge does not support (see ADMIN.md)",
    "worse": "a defect of the bridge",
    "broken": "the case could not be run",
}


def counts(rows: Sequence[Row]) -> dict[str, int]:
    """Counts the rows by verdict."""
    found = Counter(row["verdict"] for row in rows)
    return {verdict: found[verdict] for verdict in _MEANING if found[verdict]} | {
        "total": len(rows)
    }


def markdown(rows: Sequence[Row], *, wanting: int = 0) -> str:
    """Returns the page; `wanting` is the number of cases that have not been run."""
    lines = ["| verdict | cases | meaning |", "| --- | ---: | --- |"]
    found = counts(rows)
    lines += [f"| {name} | {found.get(name, 0)} | {text} |" for name, text in _MEANING.items()]
    lines.append(f"| total | {len(rows)} | |")
    once = sum(row["verdict"] == "worse" and len(row["runs"]) == 1 for row in rows)
    if once:
        lines += ["", f"{once} of the worse cases were run only once."]
    if wanting:
        lines += ["", f"{wanting} cases have not been run yet."]
    lines += ["", told(rows, "cases")]
    for topic in dict.fromkeys(row["topic"] for row in rows):
        lines += ["", f"## {topic[:1].upper()}{topic[1:]}", "",
                  "| case | submitted | stock | bridge | verdict | why |",
                  "| --- | --- | --- | --- | --- | --- |"]  # fmt: skip
        lines += [_line(row) for row in rows if row["topic"] == topic]
    return _HEAD + "\n".join(lines) + "\n"


def differences(rows: Sequence[Row]) -> str:
    """Returns the defects as text: case, submission, both outcomes."""
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
    why = row["unsupported"] or row["by_design"]
    if row["verdict"] in ("worse", "broken"):
        why = "; ".join(dict.fromkeys(row["told"]))
    alike = row["stock"] == row["bridge"]
    cells = [row["name"], f"`{_short(submitted)}`", row["stock"], "=" if alike else row["bridge"],
             row["verdict"], why if row["verdict"] != "same" else ""]  # fmt: skip
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _short(text: str, maximum: int = 160) -> str:
    return text if len(text) <= maximum else text[: maximum - 3] + "..."


def _cell(text: str) -> str:
    return _short(" ".join(text.split()), 240).replace("|", "\\|")
