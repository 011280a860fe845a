# SPDX-License-Identifier: Apache-2.0
"""No test of Slurm's, and no cluster that does not do what it is told, stops another test."""

import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.differential.stand import StandError
from tests.slurm_suite import run as suite
from tests.slurm_suite.choice import Test
from tests.slurm_suite.run import Status, Verdict

TESTS = (Test("expect", "Sizes", "1.2", "", 60), Test("python", "Arrays", "122_1", "", 60))
JUNIT = '<testsuite><testcase name="one"/></testsuite>'


class Stand:
    """A cluster on which every test passes, until it is told otherwise."""

    container = "none"

    def __init__(self, *, bridged):
        self.name = "bridge" if bridged else "stock"
        self.bridged, self.started, self.alive, self.junit = bridged, 0, False, JUNIT
        self.log = "bridge: schedbridge 0.1.0 decides, policy slurm-like"
        self.troubles = {}

    def _do(self, verb):
        if self.troubles.get(verb):
            raise self.troubles[verb].pop(0)

    def up(self):
        self._do("up")
        self.started += 1
        self.alive = True

    def down(self):
        self.alive = False
        self._do("down")

    def is_up(self):
        return self.alive

    def lay_out(self, layout, *, again=False):
        self._do("lay_out")

    def pristine(self):
        return True

    def ask(self, verb):
        self._do("ask")
        return []

    def run(self, line, output, bound_s):
        output.write_text("")
        self._do("run")
        return 0

    def root(self, script, *, check=True):
        return ""

    def fetch(self, path, to):
        if path.endswith(".log"):
            to.write_text(self.log)
        elif self.junit:
            to.write_text(self.junit)


@pytest.fixture
def both():
    stands = Stand(bridged=False), Stand(bridged=True)
    for stand in stands:
        stand.up()
    return stands


@pytest.fixture
def runs(both, tmp_path):
    def of(*tests):
        with ThreadPoolExecutor(2) as pool:
            return [suite.run(test, both, pool, tmp_path) for test in tests]

    return of


HANG = subprocess.TimeoutExpired("docker", 60)


@pytest.mark.parametrize("who", [0, 1])
@pytest.mark.parametrize(
    ("verb", "trouble"),
    [
        ("lay_out", suite.Trouble("nodes are not idle")),
        ("run", HANG),
        ("run", OSError("no docker")),
        ("lay_out", StandError("the agent is gone")),
    ],
)
def test_a_cluster_that_fails_for_good_is_named_and_stops_no_other_test(
    both, runs, who, verb, trouble
):
    both[who].troubles = {verb: [trouble, trouble], "down": [suite.Trouble("it cannot be removed")]}
    poisoned, next_one = runs(*TESTS)
    assert poisoned.verdict is Verdict.NOT_RUN
    assert poisoned.results[-1][who].status is Status.NOT_RUN
    assert poisoned.results[-1][who].why == str(trouble)
    assert next_one.verdict is Verdict.SAME
    assert both[who].started == 3
    assert both[1 - who].started == 1


@pytest.mark.parametrize("who", [0, 1])
def test_a_cluster_that_fails_once_is_made_anew_and_the_test_is_run_again(both, runs, who):
    both[who].troubles = {"run": [HANG]}
    (row,) = runs(TESTS[0])
    assert [len(row.results), row.verdict] == [2, Verdict.SAME]
    assert both[who].started == 2


def test_a_cluster_that_does_not_come_up_is_tried_for_each_test(both, runs):
    both[0].alive = False
    both[0].troubles = {"up": [suite.Trouble("no munge")] * 3}
    rows = runs(TESTS[0], TESTS[1])
    assert [row.verdict for row in rows] == [Verdict.NOT_RUN, Verdict.SAME]


def test_a_test_during_which_the_service_ends_has_not_passed(both, runs, monkeypatch):
    def killing(line, output, bound_s):
        output.write_text("")
        both[1].alive = False
        return 0

    monkeypatch.setattr(both[1], "run", killing)
    (row,) = runs(TESTS[0])
    assert row.verdict is Verdict.NOT_RUN
    assert "ended during the test" in row.results[-1][1].why


def test_a_test_that_slurms_own_backfill_decided_says_nothing_of_the_bridge(both, runs):
    fell_back = "error: bridge: falling back to Slurm's own backfill until the service answers; ..."
    both[0].log = fell_back
    assert [row.verdict for row in runs(*TESTS)] == [Verdict.SAME, Verdict.SAME]
    both[1].log = fell_back
    rows = runs(*TESTS)
    assert [row.verdict for row in rows] == [Verdict.NOT_RUN, Verdict.NOT_RUN]
    assert "the service was silent" in rows[0].results[-1][1].why


def test_the_report_of_a_former_run_is_not_read_again(both, runs):
    assert runs(TESTS[1])[0].verdict is Verdict.SAME
    both[0].junit = both[1].junit = ""
    assert runs(TESTS[1])[0].verdict is Verdict.BOTH_FAIL


def test_a_report_that_cannot_be_read_is_no_result(both, runs):
    both[1].junit = "<testsuite>"
    rows = runs(TESTS[1], TESTS[0])
    assert [row.verdict for row in rows] == [Verdict.NOT_RUN, Verdict.SAME]
