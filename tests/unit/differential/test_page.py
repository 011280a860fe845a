# SPDX-License-Identifier: Apache-2.0
"""The published table: each case beside its own submission."""

import re
from pathlib import Path

from tests.differential import table
from tests.differential.cases import load

PAGE = Path(__file__).parents[3] / "docs" / "results" / "differential.md"


def submissions(page):
    """The submission that a page shows, by topic and name of the case."""
    found, topic = {}, ""
    for line in page.splitlines():
        if line.startswith("## "):
            topic = line[3:]
        elif topic and line.startswith("| ") and not line.startswith(("| case |", "| --- ")):
            name, submitted, *_ = re.split(r"(?<!\\)\|", line.strip("|"))
            found[topic, name.strip()] = submitted.strip()
    return found


def row_of(case):
    """A row with nothing but what the case itself holds."""
    return {
        "topic": case.topic, "name": case.name, "submit": case.lines, "by_design": "",
        "unsupported": "", "stock": "", "bridge": "", "verdict": "same", "told": [], "runs": [],
        "run": "",
    }  # fmt: skip


def test_no_case_is_beside_the_submission_of_another_one():
    """A submission that has changed since the run is not another case's."""
    own = submissions(table.markdown([row_of(case) for case in load()]))
    assert len(own) == len(load())
    shown = submissions(PAGE.read_text(encoding="utf-8"))
    assert len(shown) > 1000
    every = set(own.values())
    mixed = {
        key: line for key, line in shown.items()
        if key in own and line != own[key] and line in every
    }  # fmt: skip
    assert mixed == {}
