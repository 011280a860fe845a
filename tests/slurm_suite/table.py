# SPDX-License-Identifier: Apache-2.0
"""The page docs/results/slurm-suite.md, and the counts."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests import ran
from tests.slurm_suite.changes import CHANGES
from tests.slurm_suite.choice import SUITES, Choice, LeftOut
from tests.slurm_suite.run import Status, Verdict

Row = dict[str, Any]
"""What run.Row.as_dict makes."""

_HEAD = """# Slurm's own test suite

The scheduling tests of Slurm's own test suite (folder `testsuite` of the source package of the same
version), run on two clusters with the same image and configuration. Slurm's backfill schedules one
of them, once a second; the bridge schedules the other, with the policy `slurm-like`.
`scripts/test slurm-suite --table docs/results/slurm-suite.md` writes this page.
`tests/slurm_suite/chosen.yaml` lists the tests, and those left out with the reason;
`tests/slurm_suite/site.py` describes the clusters.

A test that fails on one cluster only is run again on both, and the second run counts. *skipped*:
the test found that it cannot run here; *hung*: it reached its time limit.

Tests that cannot run on a cluster with accounting are run on one without (`layout: bare` in
chosen.yaml). The suite is changed as follows, on both clusters alike:

"""
_MEANING = {
    Verdict.SAME: "passes on both",
    Verdict.NOT_RUN: "a cluster did not come up, or the service was not in charge: as failed",
    Verdict.BOTH_FAIL: "fails on both, and says nothing of the bridge",
    Verdict.SKIPPED: "finds on both that it cannot run here",
    Verdict.STOCK_ONLY: "fails with stock Slurm only",
    Verdict.UNSUPPORTED: "a feature that the bridge does not support (see [ADMIN.md](../ADMIN.md))",
    Verdict.BRIDGE_ONLY: "a defect of the bridge",
}


def counts(rows: Sequence[Row]) -> dict[str, int]:
    """Counts the tests by verdict."""
    found = Counter(row["verdict"] for row in rows)
    return {verdict: found[verdict] for verdict in _MEANING if found[verdict]} | {
        "total": len(rows)
    }


def summary(rows: Sequence[Row]) -> list[str]:
    """Names the tests that do not pass on both; the last line counts all."""
    lines = []
    for verdict in _MEANING:
        names = [row["name"] for row in rows if row["verdict"] == verdict]
        if names and verdict is not Verdict.SAME:
            lines.append(f"{verdict}: {', '.join(names)}")
    told = [f"{count} {verdict}" for verdict, count in counts(rows).items() if verdict != "total"]
    return [*lines, ", ".join([*told, f"{len(rows)} tests"])]


def markdown(rows: Sequence[Row], choice: Choice) -> str:
    """Returns the page."""
    lines = [
        "| | " + " | ".join(Status) + " | total |",
        "| --- " + "| ---: " * (len(Status) + 1) + "|",
    ]
    for who in ("stock", "bridge"):
        found = Counter(row[who]["status"] for row in rows)
        lines.append(f"| {who} | " + " | ".join(str(found[one]) for one in Status)
                     + f" | {len(rows)} |")  # fmt: skip
    lines += ["", "| verdict | tests | meaning |", "| --- | ---: | --- |"]
    of = counts(rows)
    lines += [f"| {name} | {of.get(name, 0)} | {text} |" for name, text in _MEANING.items()]
    wanting = len(choice.tests) - len(rows)
    if wanting:
        lines += ["", f"{wanting} tests have not been run yet."]
    lines += ["", ran.told(rows, "tests")]
    for suite in SUITES:
        chosen = [row for row in rows if row["suite"] == suite]
        for topic in dict.fromkeys(row["topic"] for row in chosen):
            lines += ["", f"## {topic} ({suite})", "",
                      "| test | about | stock | bridge | verdict | why |",
                      "| --- | --- | --- | --- | --- | --- |"]  # fmt: skip
            lines += [_line(row) for row in chosen if row["topic"] == topic]
    lines += ["", "## Left out", "", "| suite | tests | why |", "| --- | --- | --- |"]
    lines += [_left_out(group) for group in choice.left_out]
    changes = "".join(f"- {change.tests} {change.why}.\n" for change in CHANGES)
    return _HEAD + changes + "\n" + "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    why = ""
    if row["verdict"] == Verdict.UNSUPPORTED:
        why = row["unsupported"]
    elif row["bridge"]["status"] != Status.PASSED:
        why = row["bridge"]["why"]
    elif row["stock"]["status"] != Status.PASSED:
        why = f"stock: {row['stock']['why']}"
    cells = [f"`{row['name']}`", row["what"], _outcome(row["stock"]), _outcome(row["bridge"]),
             row["verdict"], why]  # fmt: skip
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _outcome(result: Row) -> str:
    """E.g. `failed, 2 of 12 parts`: a test in Python has parts that pass alone."""
    parts = Counter(result["parts"].values())
    if result["status"] == Status.FAILED and parts[Status.PASSED]:
        return f"failed, {parts[Status.FAILED]} of {sum(parts.values())} parts"
    return str(result["status"])


def _left_out(group: LeftOut) -> str:
    names = " ".join(group.numbers)
    return f"| {group.suite} | {len(group.numbers)}: {names} | {_cell(group.why)} |"


def _cell(text: str, maximum: int = 200) -> str:
    text = " ".join(text.split()).replace("|", "\\|")
    return text if len(text) <= maximum else text[: maximum - 3] + "..."
