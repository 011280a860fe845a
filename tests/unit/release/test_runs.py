# SPDX-License-Identifier: Apache-2.0
"""The table of suites: what is read, kept and written."""

import pytest

from tests.release.runs import (
    BEGIN,
    END,
    FAILED,
    NOT_RUN,
    PASSED,
    Run,
    counted,
    keep,
    read,
    renewed,
    result_of,
)
from tests.release.suites import SUITES, listed
from tests.unit.test_links import ROOT


def a_run(suite="unit", commit="a" * 40, result=PASSED, said="7 passed", seconds=90):
    return Run(suite, commit, result, said, seconds, "2026-11-27")


def test_each_suite_is_a_command_of_scripts_test():
    text = (ROOT / "scripts/test").read_text()
    names = [suite.name for suite in SUITES]
    assert len(set(names)) == len(names)
    for name in names:
        assert f"\n{name}() {{" in text or f"\n    {name})" in text, name
        assert name in listed()


def test_what_was_counted_is_the_last_line_that_counts():
    output = [
        "== 3 failed, 2 passed in 4.20s ==",
        "",
        "====== 12 passed, 1 skipped in 61.20s (0:01:01) ====",
    ]
    assert counted([*output, "some closing words"]) == "12 passed, 1 skipped"
    assert counted(["no number", "the end", ""]) == "the end"
    assert counted([]) == ""


def test_an_exit_code_says_what_became_of_a_suite():
    assert [result_of(code) for code in (0, 1, 77, -9)] == [PASSED, FAILED, NOT_RUN, FAILED]


def test_of_each_suite_and_commit_the_latest_run_stays(tmp_path):
    file = tmp_path / "folder" / "runs.jsonl"
    runs = [
        a_run(result=FAILED), a_run("faults"), a_run(commit="b" * 40), a_run(said="8 passed"),
    ]  # fmt: skip
    for run in runs:
        keep(file, run)
    assert read(file) == runs[1:]


def test_a_line_that_is_no_run_is_named(tmp_path):
    file = tmp_path / "runs.jsonl"
    keep(file, a_run())
    file.write_text(file.read_text() + '{"suite": "unit"}\n')
    with pytest.raises(ValueError, match="line 2 is not a run of a suite"):
        read(file)


def test_the_page_gets_the_latest_run_of_each_suite():
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    text = renewed(
        page,
        [
            a_run(result=FAILED),
            a_run(commit="b" * 40, said="9 | passed"),
            a_run("pbs", result=NOT_RUN),
        ],
    )
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    rows = {line.split(" | ")[0]: line for line in text.splitlines() if line.startswith("| `")}
    assert len(rows) == len(SUITES)
    assert "bbbbbbbbbb, 2026-11-27 | passed | 9 / passed | 1.5 min" in rows["| `unit`"]
    assert "not run" in rows["| `pbs`"]
    assert "no run is recorded" in rows["| `fuzz`"]
    with pytest.raises(ValueError, match="must hold"):
        renewed("no marks", [])


def test_the_page_in_the_documents_is_what_the_runs_say():
    runs = read(ROOT / "docs/results/tests.jsonl")
    page = (ROOT / "docs/results/tests.md").read_text()
    assert page == renewed(page, runs)
