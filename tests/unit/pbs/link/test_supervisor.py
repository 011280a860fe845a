# SPDX-License-Identifier: Apache-2.0
"""The supervisor, with processes that are none."""

import pytest

import bridge.pbs.link.supervisor as module
from bridge.pbs.link.settings import LinkSettings
from bridge.pbs.link.supervisor import Supervisor


class FakeProcess:
    def __init__(self, said=()):
        self.code, self.said, self.heard, self.ends = None, list(said), [], []

    def poll(self):
        return self.code

    def end(self):
        self.code = 0
        self.ends.append("end")

    def kill(self):
        self.code = -9
        self.ends.append("kill")

    def lines(self, timeout_s):
        said, self.said = self.said, []
        return said

    def tell(self, word):
        self.heard.append(word)


class Stand:
    def __init__(self):
        self.now, self.links, self.stocks, self.told = 0.0, [], [], []
        self.supervisor = Supervisor(
            LinkSettings(silence_s=5, watchdog_s=10), self.link, self.stock, lambda: self.now,
            self.told.append,
        )  # fmt: skip

    def link(self):
        self.links.append(FakeProcess())
        return self.links[-1]

    def stock(self):
        assert all(stock.code is not None for stock in self.stocks), "two at a time"
        self.stocks.append(FakeProcess())
        return self.stocks[-1]

    def pass_s(self, seconds, *said):
        for _ in range(int(seconds * 2)):
            self.now += 0.5
            if said and self.links:
                self.links[-1].said += said
            self.supervisor.step()

    @property
    def stock_runs(self):
        return bool(self.stocks) and self.stocks[-1].code is None


@pytest.fixture
def stand(monkeypatch):
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    return Stand()


def registered(stand):
    stand.pass_s(1, "alive")
    stand.pass_s(0.5, "ready")
    stand.pass_s(0.5, "registered")
    assert stand.links[-1].heard == ["yours"]


def test_beside_a_registered_link_nothing_else_runs(stand):
    registered(stand)
    stand.pass_s(60, "alive")
    assert (len(stand.links), stand.stocks) == (1, [])


def test_a_link_that_steps_aside_is_replaced_at_once_and_takes_back(stand):
    registered(stand)
    stand.pass_s(1, "aside no answer")
    assert stand.stock_runs
    stand.pass_s(5, "alive")
    assert stand.stock_runs
    stand.links[-1].heard.clear()
    stand.pass_s(0.5, "ready")
    assert not stand.stock_runs
    assert stand.links[-1].heard == ["yours"]
    stand.pass_s(20, "registered")
    assert len(stand.stocks) == 1


def test_a_frozen_link_is_killed_before_anything_takes_over(stand):
    registered(stand)
    stand.pass_s(9)
    assert (stand.links[0].code, stand.stocks) == (None, [])
    stand.pass_s(2)
    assert stand.links[0].ends == ["kill"]
    stand.pass_s(2, "alive")
    assert len(stand.links) == 2


def test_a_link_that_does_not_come_back_is_replaced(stand):
    registered(stand)
    stand.links[-1].code = 1
    stand.pass_s(4, "alive")
    assert not stand.stock_runs
    stand.pass_s(2, "alive")
    assert stand.stock_runs


def test_without_a_server_nothing_takes_over(stand):
    registered(stand)
    stand.pass_s(60, "absent gone")
    assert stand.stocks == []
    stand.pass_s(0.5, "ready")
    stand.pass_s(0.5, "registered")
    assert stand.stocks == []


def test_one_that_took_over_and_ended_is_started_again(stand):
    registered(stand)
    stand.pass_s(1, "aside no answer")
    stand.stocks[-1].code = 1
    stand.pass_s(3, "alive")
    assert stand.stock_runs
    assert len(stand.stocks) == 2
