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

The tests on scheduling in the test suite of the very Slurm (folder `testsuite` of its source
package), each on two clusters of the same image and configuration: one scheduled by Slurm's own
backfill, looking every second, one by the bridge (`slurm-like`). Made by
`scripts/test slurm-suite --table docs/results/slurm-suite.md`; which tests, and why not the others,
is in `tests/slurm_suite/chosen.yaml`, the clusters are in `tests/slurm_suite/site.py`.

A test that one of them alone fails is run a second time on both, and that run counts. *skipped*:
the test finds that it cannot be run here; *hung*: it was ended by its time limit.

Some tests cannot be run on a cluster with accounting and are run on one without (`layout: bare` in
chosen.yaml). These changes are made to the suite, on both clusters alike:

"""
_MEANING = {
    Verdict.SAME: "the same with both, be it a failure",
    Verdict.STOCK_ONLY: "passes with the bridge, not with stock Slurm",
    Verdict.CLOSED: "what the bridge does without (see [ADMIN.md](../ADMIN.md))",
    Verdict.BRIDGE_ONLY: "to be mended",
}


def counts(rows: Sequence[Row]) -> dict[str, int]:
    """How many tests of each verdict."""
    found = Counter(row["verdict"] for row in rows)
    return {verdict: found[verdict] for verdict in _MEANING if found[verdict]} | {
        "in all": len(rows)
    }


def markdown(rows: Sequence[Row], choice: Choice) -> str:
    """The whole page."""
    lines = ["| | " + " | ".join(Status) + " | in all |", "| --- " + "| ---: " * 5 + "|"]
    for who in ("stock", "bridge"):
        found = Counter(row[who]["status"] for row in rows)
        lines.append(f"| {who} | " + " | ".join(str(found[one]) for one in Status)
                     + f" | {len(rows)} |")  # fmt: skip
    lines += ["", "| verdict | tests | meaning |", "| --- | ---: | --- |"]
    of = counts(rows)
    lines += [f"| {name} | {of.get(name, 0)} | {text} |" for name, text in _MEANING.items()]
    wanting = len(choice.tests) - len(rows)
    if wanting:
        lines += ["", f"{wanting} of the tests chosen are not in this table: not run yet."]
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
    if row["verdict"] == Verdict.CLOSED:
        why = f"closed list: {row['closed']}"
    elif row["verdict"] == Verdict.STOCK_ONLY:
        why = f"stock: {row['stock']['why']}"
    elif row["bridge"]["status"] != Status.PASSED:
        why = row["bridge"]["why"]
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


def _cell(text: str, most: int = 200) -> str:
    text = " ".join(text.split()).replace("|", "\\|")
    return text if len(text) <= most else text[: most - 3] + "..."
