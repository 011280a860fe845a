# SPDX-License-Identifier: Apache-2.0
"""Resizes against a world in which everything can die at every step.

The fake controller, launcher and agents below do what docs/design/0009 says of the real ones. What
must hold whatever happens: no node is taken from a job while processes of it are there; a job
without a launcher is not resized; and once everything lives and answers, the job's processes run on
exactly the nodes that it holds, with nothing under way.
"""

from itertools import count

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from bridge.extensions.elastic.resizing.launchers import (
    ChangeResult,
    GrowOrder,
    LauncherReport,
    ShrinkOrder,
    WithdrawOrder,
)
from bridge.extensions.elastic.resizing.runtime import Runtime
from bridge.extensions.elastic.resizing.world import World
from schedbridge_contracts.builders import a_running_job, a_snapshot

NAMES = tuple(f"n{number}" for number in range(1, 7))


class Launcher:
    """Launcher, application and agents of one job."""

    def __init__(self, nodes):
        self.ranks = list(nodes)
        self.is_there = True
        self.serial = 0
        self.order_ = None
        self.told = {}
        self.said = []
        self.heard = []

    # the port
    def attached(self, job_id, user):
        if not self.is_there:
            return None
        # What was sent is pending, whether or not the launcher has read it, as in the hub.
        sent = [order for order in self.heard if not isinstance(order, WithdrawOrder)]
        order = self.order_ or (sent[-1] if sent else None)
        return LauncherReport(
            serial=self.serial,
            nodes=tuple(self.ranks),
            pending=order.id if order else "",
            pending_nodes=order.nodes if order else (),
        )

    def results(self):
        said, self.said = self.said, []
        return said

    def order(self, job_id, user, order):
        if self.is_there:
            self.heard.append(order)

    def vacant(self, job_id, user, nodes, *, unused=False):
        return not set(nodes) & set(self.ranks)

    def unattended(self, nodes):
        return ()

    def mtct(self, job_id, user, *, estimate=False):
        return -1.0

    # the world
    def answer(self, change_id, done, reason=""):
        self.told[change_id] = ChangeResult("m", "ann", change_id, done, reason, tuple(self.ranks))
        self.order_ = None
        if self.is_there:
            self.said.append(self.told[change_id])

    def take(self):
        """Takes one order in."""
        if not (self.is_there and self.heard):
            return
        order = self.heard.pop(0)
        if order.id in self.told:
            self.said.append(self.told[order.id])
        elif isinstance(order, WithdrawOrder):
            self.answer(order.id, False, "withdrawn")
        elif self.order_ is not None and self.order_.id != order.id:
            self.said.append(ChangeResult("m", "ann", order.id, False, "busy"))
        else:
            self.order_ = order

    def work(self, willing=True):
        """The application reaches its next probe."""
        order = self.order_
        if not self.is_there or order is None:
            return
        if willing:
            assert self.ranks[0] == order.nodes[0]
            assert isinstance(order, GrowOrder) == (len(order.nodes) > len(self.ranks))
            self.ranks = list(order.nodes)
        self.answer(order.id, willing, "" if willing else "the application will not")

    def die(self):
        """The launcher ends; the application goes on."""
        self.is_there, self.heard, self.said = False, [], []

    def come_back(self):
        """It attaches again and knows from its file what it was at."""
        if not self.is_there:
            self.is_there, self.serial = True, self.serial + 1


class Cluster:
    """A controller with one malleable job, and the service."""

    def __init__(self):
        self.held, self.version, self.now_s = [NAMES[0], NAMES[1]], 1, 1000
        self.launcher = Launcher(self.held)
        self.numbers = count(1)
        self.start_service()
        self.mood = "applies"
        self.sent = []

    def start_service(self):
        self.runtime = Runtime(self.launcher, lambda job: f"{job}-{next(self.numbers)}")
        self.launcher.serial += 1

    def snapshot(self):
        nodes = [NAMES.index(name) for name in self.held]
        return a_snapshot(
            nodes=6, now_s=self.now_s,
            running=[a_running_job(nodes, id="m", user="ann", min_nodes=1, max_nodes=6,
                                   version=self.version, end_s=100_000)],
        )()  # fmt: skip

    def cycle(self, want=None):
        snapshot = self.snapshot()
        self.runtime.see(snapshot)
        shown = self.runtime.overlay(snapshot).running
        resizable = shown.max_nodes[0] > 0 and not shown.adapting[0]
        assert self.launcher.is_there or not resizable
        world = World(snapshot)
        if want and resizable and set(want) != set(self.held):
            self.runtime.begin(world, "m", want, by_s=self.now_s, end_s=0, reason="")
        for send in self.runtime.sends(world):
            send.change.decision = next(self.numbers)
            self.carry_out(send)
        self.now_s += 1

    def carry_out(self, send):
        if self.mood in ("applies", "says nothing"):
            assert send.version == self.version
            taken = set(self.held) - set(send.nodes)
            assert not taken & set(self.launcher.ranks), "processes would be killed"
            assert send.nodes[0] == self.held[0]
            if set(self.held) != set(send.nodes):
                self.version += 1
            self.held = sorted(send.nodes)
        if self.mood in ("applies", "refuses"):
            self.runtime.answered(
                send.change.decision, self.now_s, applied=self.mood == "applies", text="planted"
            )


@pytest.fixture(scope="session", autouse=True)
def _names():
    assert a_snapshot(nodes=6)().nodes.names[0] == NAMES[0], "the builder names nodes otherwise"


WANTS = st.integers(1, 6).map(lambda width: NAMES[:width])
EVENTS = st.one_of(
    st.tuples(st.just("cycle"), st.none()),
    st.tuples(st.just("decide"), WANTS),
    st.tuples(
        st.just("controller"), st.sampled_from(["applies", "refuses", "says nothing", "deaf"])
    ),
    st.tuples(st.just("controller restarts"), st.none()),
    st.tuples(st.just("service restarts"), st.none()),
    st.tuples(st.just("launcher dies"), st.none()),
    st.tuples(st.just("launcher comes back"), st.none()),
    st.tuples(st.just("order arrives"), st.none()),
    st.tuples(st.just("application"), st.booleans()),
    st.tuples(st.just("time passes"), st.sampled_from([5, 31, 61, 121])),
)


def play(cluster, name, value):
    launcher = cluster.launcher
    match name:
        case "cycle":
            cluster.cycle()
        case "decide":
            cluster.cycle(value)
        case "controller":
            cluster.mood = value
        case "controller restarts":
            cluster.runtime.reset()
        case "service restarts":
            cluster.start_service()
        case "launcher dies":
            launcher.die()
        case "launcher comes back":
            launcher.come_back()
        case "order arrives":
            launcher.take()
        case "application":
            launcher.work(value)
        case "time passes":
            cluster.now_s += value


@given(st.lists(EVENTS, max_size=40))
def test_nothing_is_lost_whatever_dies(events):
    cluster = Cluster()
    for name, value in events:
        play(cluster, name, value)
        assert set(cluster.launcher.ranks) <= set(cluster.held)
    for change in cluster.runtime.changes:
        event(change.state)
    # Everything lives again, and answers.
    cluster.mood = "applies"
    cluster.launcher.come_back()
    for _ in range(700):
        cluster.cycle()
        cluster.launcher.take()
        cluster.launcher.work()
        if not cluster.runtime.changes and cluster.held == sorted(cluster.launcher.ranks):
            break
    cluster.cycle()
    assert not cluster.runtime.changes
    assert sorted(cluster.held) == sorted(cluster.launcher.ranks)


def test_a_grow_and_a_shrink_without_trouble():
    cluster = Cluster()
    for want in (NAMES[:5], NAMES[:1], NAMES[:6], NAMES[:3]):
        cluster.cycle(want)
        for _ in range(4):
            cluster.cycle()
            cluster.launcher.take()
            cluster.launcher.work()
            cluster.cycle()
        assert cluster.held == list(want) == cluster.launcher.ranks
        assert not cluster.runtime.changes


def test_an_application_that_never_answers_keeps_its_nodes():
    cluster = Cluster()
    cluster.cycle(NAMES[:1])
    for _ in range(300):
        cluster.cycle()
    assert cluster.held == list(NAMES[:2])
    assert any(isinstance(order, ShrinkOrder) for order in cluster.launcher.heard)
    assert any(isinstance(order, WithdrawOrder) for order in cluster.launcher.heard)


def test_growth_that_the_application_refuses_is_given_back():
    cluster = Cluster()
    cluster.cycle(NAMES[:4])
    cluster.cycle()
    assert cluster.held == list(NAMES[:4])
    cluster.launcher.take()
    cluster.launcher.work(willing=False)
    cluster.cycle()
    cluster.cycle()
    assert cluster.held == list(NAMES[:2])
    assert np.all(cluster.runtime.overlay(cluster.snapshot()).running.max_nodes == 0)
