# SPDX-License-Identifier: Apache-2.0
import threading

import pytest

from bridge.planning.conditions import Conditions
from bridge.rpc import nearest
from bridge.rpc.nearest import NearestChanges
from tests.builders import a_job, a_running_job
from tests.unit.rpc.test_explain import NOW_S, published


@pytest.fixture
def searches(monkeypatch):
    """Rows that were searched for; each search takes no time."""
    made = []

    def search(_snapshot, _plan, row, _conditions):
        made.append(row)
        return ()

    monkeypatch.setattr(nearest, "what_if", search)
    return made


def a_cycle(n_jobs=2):
    rows = [(job, NOW_S + 60, [0]) for job in range(n_jobs)]
    running = [a_running_job(nodes=(0,), end_s=NOW_S + 60)]
    return published(*rows, jobs=[a_job() for _ in range(n_jobs)], running=running)


def test_an_answer_is_kept_for_one_cycle_and_job(searches):
    answers, cycle = NearestChanges(Conditions), a_cycle()
    for row in (0, 0, 1, 0):
        assert answers.of(cycle, row) == ()
    assert searches == [0, 1]
    answers.of(a_cycle(), 0)
    assert searches == [0, 1, 0]


def test_another_policy_is_asked_anew(searches):
    under = [Conditions()]
    answers, cycle = NearestChanges(lambda: under[0]), a_cycle()
    answers.of(cycle, 0)
    under[0] = Conditions(horizon_s=60)
    answers.of(cycle, 0)
    assert searches == [0, 0]


def test_kept_answers_are_bounded(searches, monkeypatch):
    monkeypatch.setattr(nearest, "MOST_KEPT", 2)
    answers, cycle = NearestChanges(Conditions), a_cycle(3)
    for row in (0, 1, 2, 0):
        answers.of(cycle, row)
    assert searches == [0, 1, 2, 0]


def test_after_a_search_there_is_a_pause(monkeypatch):
    clock = [100.0]

    def search(*_):
        clock[0] += 2.0
        return ()

    slept = []
    monkeypatch.setattr(nearest, "what_if", search)
    monkeypatch.setattr(nearest.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(nearest.time, "sleep", slept.append)
    answers, cycle = NearestChanges(Conditions, share=0.25), a_cycle(3)
    assert answers.of(cycle, 0) == ()
    assert answers.of(cycle, 1) is None  # busy for 6 s
    assert answers.of(cycle, 0) == ()  # that is known
    clock[0] += 5.5
    assert answers.of(cycle, 1) == ()
    assert slept == [0, 0.5]


def test_who_comes_while_others_search_is_told_so(searches, monkeypatch):
    monkeypatch.setattr(nearest, "WAIT_S", 0.01)
    begun, go_on = threading.Event(), threading.Event()

    def slow(*_):
        begun.set()
        go_on.wait(10)
        return ()

    monkeypatch.setattr(nearest, "what_if", slow)
    answers, cycle = NearestChanges(Conditions), a_cycle()
    other = threading.Thread(target=answers.of, args=(cycle, 0))
    other.start()
    assert begun.wait(10)
    assert answers.of(cycle, 1) is None
    go_on.set()
    other.join()
    assert searches == []


def test_a_bug_denies_nothing_else(monkeypatch, caplog):
    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(nearest, "what_if", broken)
    assert NearestChanges(Conditions).of(a_cycle(), 0) is None
    assert "no changes could be found" in caplog.text
