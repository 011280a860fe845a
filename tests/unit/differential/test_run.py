# SPDX-License-Identifier: Apache-2.0
"""A case during which a slurmctld ends by itself."""

import pytest

from tests.differential import run
from tests.differential.cases import Case
from tests.differential.run import Row


class Controller:
    """A slurmctld that has ended before these inquiries."""

    def __init__(self, *gone):
        self.gone = list(gone)

    def revive(self):
        return self.gone.pop(0)


@pytest.fixture
def ends(monkeypatch):
    """How each run of the case ends, in turn; an empty text: it was compared."""
    texts = []

    def one(case, *_others):
        return Row(case, (), (), texts.pop(0))

    monkeypatch.setattr(run, "_run", one)
    return texts


def outcome(stock, bridge, once=False):
    return run.run(Case("name", "topic", ()), stock, bridge, None, once=once).broken


def test_a_case_in_which_a_slurmctld_ended_is_run_again(ends):
    for stock, bridge in ((True, False), (False, True)):
        ends[:] = ["no answer", ""]
        assert not outcome(Controller(stock, False), Controller(bridge, False))
        assert not ends


def test_a_case_is_run_again_once(ends):
    ends[:] = ["no answer", "no answer", ""]
    assert outcome(Controller(True, True), Controller(False, False)) == "no answer"
    assert ends == [""]


def test_a_case_that_breaks_while_both_live_is_not_run_again(ends):
    ends[:] = ["it cannot be prepared", ""]
    assert outcome(Controller(False), Controller(False)) == "it cannot be prepared"


def test_a_case_that_is_wanted_once_is_run_once(ends):
    ends[:] = ["no answer", ""]
    assert outcome(Controller(True), Controller(False), once=True) == "no answer"


def test_a_case_that_stops_a_slurmctld_itself_is_not_run_again(ends):
    ends[:] = ["", ""]
    assert not outcome(Controller(True), Controller(True))
    assert ends == [""]
