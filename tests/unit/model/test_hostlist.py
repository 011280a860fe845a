# SPDX-License-Identifier: Apache-2.0
"""Lists of names: what Slurm reads is read, all else is refused before it costs anything."""

from pathlib import Path

import pytest

from bridge.errors import RequestError
from bridge.model.hostlist import MAX_NAMES, expand, items
from schedbridge_contracts.crosses import each

CASES = [
    [part.strip() for part in line.split(";")]
    for line in (Path(__file__).parents[2] / "shim" / "hostlists.cases").read_text().splitlines()
    if line and not line.startswith("#")
]


@each(case=CASES)
def test_the_table_that_the_plugin_is_tested_with(case: list[str]) -> None:
    text, names = case
    if names == "!":
        with pytest.raises(RequestError):
            list(items(text))
        with pytest.raises(ValueError, match=r"."):
            expand(text)
        return
    assert [name for item in items(text) for name in item] == names.split()
    assert sum(item.count for item in items(text)) == len(names.split())
    assert sorted(expand(text)) == sorted(set(names.split()))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ["n1"]),
        ("n[08-11],big1", ["big1", "n08", "n09", "n10", "n11"]),
        ("n[1-2,4],n4", ["n1", "n2", "n4"]),
        ("r[1-2]-n[1-2].x_y", ["r1-n1.x_y", "r1-n2.x_y", "r2-n1.x_y", "r2-n2.x_y"]),
        ("", []),
    ],
)
def test_slurms_lists(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize("text", ["@all", "n[1-4]&n2", "n[1-8/2]", "n1!n2", "n*", "n1 n2", "n[1-"])
def test_what_only_clustershell_reads_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no place|do not match"):
        expand(text)


@pytest.mark.parametrize(
    "text",
    [
        "n[0-99999999999]",
        f"n[0-{MAX_NAMES}]",
        "r[0-1999]n[0-1999]",
        "r[0-999999999999999999]n[0-999999999999999999]",
        "n[0-600000],m[0-600000]",
    ],
)
def test_too_many_names_are_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match="more than"):
        expand(text)


def test_a_number_of_more_digits_than_64_bits_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="not a range of numbers"):
        expand("n[0-999999999999999999999999999]")
