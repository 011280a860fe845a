# SPDX-License-Identifier: Apache-2.0
"""The table of the paper's formulas and examples names tests that are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "design" / "0004-planning.md"
SHORT = {
    "vector": "unit/planning/site_rules/test_usage_vector.py",
    "book": "properties/test_book.py",
    "paper": "unit/policies/test_paper_openccs.py",
    "rules": "unit/planning/site_rules/test_rules.py",
    "policy": "unit/policies/test_openccs.py",
}


def named() -> list[tuple[str, str]]:
    """File and name of each test that the document names; names may end in a star."""
    section = DOCUMENT.read_text().split("## Tests of the paper's statements")[1]
    found, file = [], ""
    for line in section.splitlines():
        for words in re.findall(r"`([^`]+)`", line):
            path, _, name = words.rpartition("::")
            path = path.split("::")[0]
            if path in SHORT or path.endswith(".py"):
                file = SHORT.get(path, path)
            elif path not in ("", "..."):
                continue
            if name.startswith("_"):  # `test_a_first`, `_second`
                name = f"test_paper_example_2{name}"
            if re.fullmatch(r"test_\w+\*?", name):
                found.append((file, name))
    return found


def is_there(file: str, name: str) -> bool:
    text = (ROOT / "tests" / ("integration/" + file if "/" not in file else file)).read_text()
    wanted = rf"def {name[:-1]}\w*\(" if name.endswith("*") else rf"def {name}\("
    return bool(re.search(wanted, text))


def test_each_is_there() -> None:
    assert [(file, name) for file, name in named() if not is_there(file, name)] == []


def test_all_are_found() -> None:
    assert len(named()) >= 50
