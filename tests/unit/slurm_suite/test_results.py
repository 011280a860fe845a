# SPDX-License-Identifier: Apache-2.0
"""What Slurm's tests print is read as it is meant, and compared."""

import pytest

from tests.slurm_suite.choice import Test, load
from tests.slurm_suite.run import Result, Row, Status, Verdict, compare, of_expect, of_junit
from tests.slurm_suite.site import Layout, site
from tests.slurm_suite.table import counts, markdown, summary

PASSED, FAILED = Result(Status.PASSED), Result(Status.FAILED, "too late")
SKIPPED, HUNG = Result(Status.SKIPPED), Result(Status.HUNG)
NOT_RUN = Result(Status.NOT_RUN, "nodes are not idle")
PRINTED = """
[2026-01-01 00:00:00.000] Error   Subtest  2 failed  : it should run (State=PENDING)
[2026-01-01 00:00:01.000] Pass    Subtest  3 passed  : it should end
FAILURE             : test1.2
  Subtests failed   :   1 ( 50%)
  Subtest  2 failed  : it should run (State=PENDING)
"""
JUNIT = """<testsuites><testsuite>
<testcase name="one"/>
<testcase name="two"><failure message="AssertionError: too late&#10;more">...</failure></testcase>
<testcase name="three"><skipped type="pytest.skip" message="no GPU"/></testcase>
<testcase name="four"><skipped type="pytest.xfail" message="known"/></testcase>
</testsuite></testsuites>"""


def test_a_failed_subtest_of_expect():
    result = of_expect(1, PRINTED)
    assert result.status is Status.FAILED
    assert result.why == "it should run (State=PENDING)"
    assert result.bad == {"Subtest 2"}


@pytest.mark.parametrize(("code", "status"), [(0, Status.PASSED), (255, Status.SKIPPED)])
def test_the_exit_codes_of_expect(code, status):
    assert of_expect(code, "SKIPPED: no GPU\n").status is status


@pytest.mark.parametrize("before", ["", "Subtest  7 skipped : "])
def test_why_a_test_is_skipped(before):
    text = f"[2026-01-01 00:00:00.000] Warning {before}no GPU (skip@globals:4,test1.2:3)\nSKIPPED\n"
    assert of_expect(255, text).why == "no GPU"


def test_a_test_that_skips_only_a_part():
    text = "Warning Subtest  7 skipped : no GPU\nSKIPPED\n  Subtests passed   :   9 ( 90%)\n"
    result = of_expect(255, text)
    assert (result.status, result.skipped) == (Status.PASSED, {"no GPU"})
    assert compare(PASSED, result) is Verdict.BRIDGE_ONLY
    assert compare(result, result) is compare(result, PASSED) is Verdict.SAME


def test_the_words_of_a_fatal_end():
    text = "\x1b[31m[2026-01-01 00:00:00.000] Fatal   srun not responding (fail@globals:1)\x1b[0m\n"
    assert of_expect(1, text).why == "srun not responding"
    assert of_expect(1, "expect: spawn id not open\n").why == "expect: spawn id not open"


def test_a_report_of_python():
    result = of_junit(JUNIT)
    assert result.status is Status.FAILED
    assert result.why == "two: AssertionError: too late"
    assert result.parts == {
        "one": Status.PASSED, "two": Status.FAILED, "three": Status.SKIPPED, "four": Status.PASSED
    }  # fmt: skip


def test_a_report_of_nothing_but_skips():
    assert of_junit(JUNIT.replace("one", "two")).status is Status.FAILED
    skips = '<testsuite><testcase name="a"><skipped message="no GPU"/></testcase></testsuite>'
    assert (of_junit(skips).status, of_junit(skips).why) == (Status.SKIPPED, "a: no GPU")
    assert of_junit("<testsuite/>").status is Status.SKIPPED


@pytest.mark.parametrize(
    ("stock", "bridge", "verdict"),
    [
        (PASSED, PASSED, Verdict.SAME),
        (FAILED, FAILED, Verdict.BOTH_FAIL),
        (HUNG, HUNG, Verdict.BOTH_FAIL),
        (SKIPPED, SKIPPED, Verdict.SKIPPED),
        (PASSED, NOT_RUN, Verdict.NOT_RUN),
        (NOT_RUN, PASSED, Verdict.NOT_RUN),
        (NOT_RUN, NOT_RUN, Verdict.NOT_RUN),
        (PASSED, FAILED, Verdict.BRIDGE_ONLY),
        (PASSED, SKIPPED, Verdict.BRIDGE_ONLY),
        (FAILED, HUNG, Verdict.BRIDGE_ONLY),
        (HUNG, PASSED, Verdict.STOCK_ONLY),
    ],
)
def test_verdicts(stock, bridge, verdict):
    assert compare(stock, bridge) is verdict
    expected = Verdict.UNSUPPORTED if verdict is Verdict.BRIDGE_ONLY else verdict
    assert compare(stock, bridge, unsupported="preemption") is expected


def test_both_fail_but_not_in_the_same_part():
    def failing(*parts):
        return Result(Status.FAILED, "", dict.fromkeys(parts, Status.FAILED))

    assert compare(failing("a"), failing("a", "b")) is Verdict.BRIDGE_ONLY
    assert compare(failing("a", "b"), failing("a")) is Verdict.STOCK_ONLY
    assert compare(failing("a"), failing("a")) is Verdict.BOTH_FAIL


@pytest.mark.parametrize(
    ("bad", "verdict"),
    [
        (("filter_het[1]",), Verdict.UNSUPPORTED),
        (("filter_het[1]", "filter[1]"), Verdict.BRIDGE_ONLY),
        ((), Verdict.BRIDGE_ONLY),
    ],
)
def test_only_some_parts_are_unsupported(bad, verdict):
    bridge = Result(Status.FAILED, "", dict.fromkeys(bad, Status.FAILED))
    assert compare(PASSED, bridge, unsupported="heterogeneous jobs", parts="_het") is verdict


def test_the_page_counts_and_says_why():
    test = Test("expect", "Sizes", "1.2", "many | tasks", 60)
    rows = [Row(test, ((PASSED, FAILED),)).as_dict(), Row(test, ((PASSED, PASSED),)).as_dict()]
    rows[0]["run"] = "2026-01-02 at commit abc"
    assert counts(rows) == {"same": 1, "bridge only": 1, "total": 2}
    page = markdown(rows, load())
    assert "| `test1.2` | many \\| tasks | passed | failed | bridge only | too late |" in page
    assert "| bridge | 1 | 1 | 0 | 0 | 0 | 2 |" in page
    lines = page.splitlines()
    head = next(line for line in lines if line.startswith("| | passed"))
    rule = lines[lines.index(head) + 1]
    assert head.count("|") == rule.count("|")
    assert "Run: 1 tests 2026-01-02 at commit abc; 1 tests at a time not kept." in page


def test_what_does_not_pass_on_both_is_named():
    rows = [
        Row(Test("expect", "Sizes", f"1.{number}", "", 60), (pair,)).as_dict()
        for number, pair in enumerate([
            (PASSED, PASSED), (PASSED, NOT_RUN), (NOT_RUN, PASSED), (FAILED, FAILED),
            (PASSED, FAILED),
        ])
    ]  # fmt: skip
    assert summary(rows) == [
        "not run: test1.1, test1.2", "both fail: test1.3", "bridge only: test1.4",
        "1 same, 2 not run, 1 both fail, 1 bridge only, 5 tests",
    ]  # fmt: skip
    assert "| not run | stock: nodes are not idle |" in markdown(rows, load())


@pytest.mark.parametrize("layout", list(Layout))
def test_the_two_clusters_differ_in_who_schedules(layout):
    stock, bridge = (
        site("one", bridged=bridged, layout=layout).files() for bridged in (False, True)
    )
    told = {
        line.partition("=")[0]
        for line in set(stock["slurm.conf"].splitlines()) ^ set(bridge["slurm.conf"].splitlines())
    }
    assert told == {"SchedulerType", "SchedulerParameters"}
    assert "Include" not in stock["slurm.conf"] + bridge["slurm.conf"]
    assert {name for name in stock if stock[name] != bridge[name]} == {
        "slurm.conf", "scheduler.conf"
    }  # fmt: skip
    assert set(bridge) - set(stock) == {"plugstack.conf"}
