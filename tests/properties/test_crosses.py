# SPDX-License-Identifier: Apache-2.0
"""Crosses of parameters: every pair is tried in every run, and a failure names its case."""

import itertools
import os
import subprocess
import sys
from math import prod
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schedbridge_contracts.crosses import cases, pairwise

ROOT = Path(__file__).parents[2]


def pairs(rows):
    """Of every two columns the values that meet in a row."""
    return {
        (a, row[a], b, row[b])
        for row in rows
        for a, b in itertools.combinations(range(len(row)), 2)
    }


@given(st.lists(st.integers(1, 7), min_size=1, max_size=6))
@example([20, 12, 5, 5])
@example([1, 1, 1])
@example([3, 3, 3, 3])
def test_every_pair_is_there(sizes):
    rows = pairwise(sizes)
    whole = itertools.product(*map(range, sizes))
    assert pairs(rows) == pairs(whole)
    assert len(set(rows)) == len(rows) <= prod(sizes)
    assert {row[0] for row in rows} == set(range(sizes[0]))


@given(st.lists(st.integers(2, 7), min_size=3, max_size=6))
@example([2, 2, 2, 2, 2, 2])
@example([3, 3, 3, 3, 3, 3])
def test_there_are_few_rows(sizes):
    *_, second, first = sorted(sizes)
    assert first * second <= len(pairwise(sizes)) <= 2 * first * second + 3


def test_a_column_without_values_gives_no_rows():
    assert pairwise([3, 0, 2]) == pairwise([]) == []


def test_cases_have_names_and_values():
    assert list(cases({}, f=[len], place={"a b": 7}, seed=range(2))) == [
        ("f=len 'place=a b' seed=0", {"f": len, "place": 7, "seed": 0}),
        ("f=len 'place=a b' seed=1", {"f": len, "place": 7, "seed": 1}),
    ]


def test_wanted_values_are_met_with_all_others():
    three = {"plan": "pqr", "order": "uvwx", "seed": range(4)}
    few = list(cases({"plan": "q", "unknown": "3"}, **three))
    assert {tuple(values.values()) for _, values in few} == set(
        itertools.product("q", "uvwx", range(4))
    )
    assert list(cases({"plan": "none"}, **three)) == []
    (one,) = cases({"plan": "q", "order": "w", "seed": "2"}, **three)
    assert one == ("plan=q order=w seed=2", {"plan": "q", "order": "w", "seed": 2})


def test_a_whole_cross_has_all_cases():
    three = {"plan": "pqr", "order": "uvwx", "seed": range(4)}
    assert len(list(cases({}, whole=True, **three))) == 48
    assert 16 <= len(list(cases({}, whole=False, **three))) < 24


TESTS = """
import pytest
from schedbridge_contracts.crosses import each

@pytest.fixture(scope="module")
def one():
    return 1

class TestSome:
    @pytest.mark.parametrize("plan", ["easy", "none"])
    @each(order=["fcfs", "long one"], seed=range(5))
    def test_it(self, plan, order, seed, one):
        if seed == 4:
            pytest.skip("odd")
        assert (plan, order, seed, one) != ("none", "long one", 3, 1)

@each(seed=range(3))
def test_skipped(seed):
    pytest.skip("all odd")
"""
SHARING = """
import pytest
from schedbridge_contracts.crosses import each

@pytest.fixture(scope="module")
def once():
    return 1

@each(seed=range(3))
def test_same(once, seed):
    ...
"""


def pytest_says(folder, text, wanted=""):
    (folder / "test_some.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    # The warning is of an editable installation, as in pyproject.toml.
    in_place = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
    plugins = ["-p", "no:cacheprovider", "-p", "tests.conftest", "-W", in_place]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, "test_some.py"],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT), "SCHEDBRIDGE_CASE": wanted},
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout + done.stderr


def test_cases_do_not_share_what_is_made_for_one_test(tmp_path):
    """Slow: starts pytest three times."""
    assert "1 passed" in pytest_says(tmp_path, SHARING)
    for scope in ('scope="module"', 'scope="function"'):
        text = SHARING.replace("seed)", "tmp_path, seed)").replace('scope="module"', scope)
        assert "test_some.py::test_same: its cases would share" in pytest_says(tmp_path, text)


@pytest.mark.parametrize(
    ("wanted", "result"),
    [
        ("", "1 failed, 1 passed, 1 skipped"),
        ("order=fcfs", "2 passed, 1 skipped"),
        ("'order=long one' seed=3", "1 failed, 1 passed, 1 skipped"),
        ("seed=9", "3 skipped"),
    ],
)
def test_a_failure_names_its_case_and_the_command_that_repeats_it(tmp_path, wanted, result):
    out = pytest_says(tmp_path, TESTS, wanted)
    assert f"\n{result} in " in out
    if "failed" in result:
        assert "case 'order=long one' seed=3\n" in out
        again = (
            """SCHEDBRIDGE_CASE=''"'"'order=long one'"'"' seed=3' """
            "pytest 'test_some.py::TestSome::test_it[none]'\n"
        )
        assert f"again: {again}" in out
