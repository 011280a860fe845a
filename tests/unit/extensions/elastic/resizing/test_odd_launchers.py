# SPDX-License-Identifier: Apache-2.0
"""Launchers that lie, nodes that go away, clocks set back: the job keeps what it has."""

from dataclasses import replace
from itertools import count

import pytest

from bridge.errors import ControllerError
from bridge.extensions.elastic.resizing.launchers import (
    Absent,
    ChangeResult,
    GrowOrder,
    LauncherReport,
    ShrinkOrder,
    WithdrawOrder,
)
from bridge.extensions.elastic.resizing.runtime import Runtime
from bridge.extensions.elastic.resizing.states import Deadlines, ResizeState
from bridge.extensions.elastic.resizing.world import World
from schedbridge_contracts.builders import a_running_job, a_snapshot

WAITS = Deadlines()


class Planted:
    """Launchers and agents that say what a test lets them say."""

    def __init__(self, nodes=None, **others):
        self.said = LauncherReport(serial=1, nodes=nodes, engine="join", **others)
        self.came, self.orders, self.is_vacant, self.breaks = [], [], True, False
        self.alone, self.is_lost = (), False

    def attached(self, job_id, user):
        return self.said

    def mtct(self, job_id, user, *, estimate=False):
        return -1.0

    def results(self):
        came, self.came = self.came, []
        return came

    def order(self, job_id, user, order):
        if self.breaks:
            raise ValueError("planted")
        self.orders.append(order)

    def vacant(self, job_id, user, nodes, *, unused=False):
        return self.is_vacant or (unused and self.is_lost)

    def unattended(self, nodes):
        return self.alone

    def answers(self, change_id, nodes=None, *, done=True):
        self.came.append(ChangeResult("m", "ann", change_id, done, "", nodes))


def a_world(nodes=(0, 1, 2), now_s=1000, version=1, head=-1, user="ann"):
    job = a_running_job(nodes, id="m", user=user, min_nodes=1, max_nodes=6, version=version,
                        end_s=100_000, head=head)  # fmt: skip
    return a_snapshot(nodes=6, now_s=now_s, running=[job])()


def a_runtime(launchers):
    numbers = count(1)
    return Runtime(launchers, lambda job: f"{job}-{next(numbers)}")


def begun(launchers, wanted, world=None):
    world = world or a_world()
    runtime = a_runtime(launchers)
    runtime.see(world)
    runtime.begin(World(world), "m", wanted, by_s=0, end_s=0, reason="")
    return runtime


def asked_to_give_back(runtime, snapshot):
    return [send.nodes for send in runtime.sends(World(snapshot))]


def test_a_launcher_that_says_done_and_stays_keeps_its_nodes():
    launchers = Planted()
    runtime = begun(launchers, ("n1",))
    launchers.answers("m-1", ("n1", "n2", "n3"))
    runtime.see(a_world())
    assert not runtime.changes
    assert asked_to_give_back(runtime, a_world()) == []


def test_one_that_refuses_and_grows_keeps_its_nodes():
    launchers = Planted()
    runtime = begun(launchers, ("n1", "n2", "n3", "n4"))
    grown = a_world((0, 1, 2, 3), version=2)
    runtime.see(grown)
    launchers.answers("m-1", ("n1", "n2", "n3", "n4"), done=False)
    runtime.see(grown)
    assert asked_to_give_back(runtime, grown) == []


@pytest.mark.parametrize("nodes", [("n1", "n9"), ("n1", "n2", "n3", "n4"), ("n2", "n3"), ("x",)])
def test_one_on_other_nodes_than_the_job_holds_is_not_resized(nodes):
    runtime = a_runtime(Planted(nodes))
    runtime.see(a_world())
    assert not runtime.changes
    assert runtime.overlay(a_world()).running.max_nodes.tolist() == [0]


@pytest.mark.parametrize("aim", [("n2", "n3"), ("n2",)])
def test_one_that_would_leave_the_first_node_is_not_taken_up(aim):
    runtime = a_runtime(Planted(("n1", "n2", "n3"), pending="x", pending_nodes=aim))
    runtime.see(a_world())
    assert not runtime.changes


def test_a_result_of_another_change_hides_none():
    launchers = Planted()
    runtime = begun(launchers, ("n1",))
    launchers.answers("m-1", ("n1",))
    launchers.answers("junk", ("n1",), done=False)
    launchers.is_vacant = False
    runtime.see(a_world())
    assert [change.state for change in runtime.changes] == [ResizeState.VACATING]


@pytest.mark.parametrize("bounds", [(100, 0), (100, 100), (0, 0)])
def test_bounds_outside_of_the_jobs_make_it_rigid(bounds):
    minimum, maximum = bounds
    runtime = a_runtime(Planted(min_nodes=minimum, max_nodes=maximum))
    runtime.see(a_world())
    expected = 0 if minimum else 6
    assert runtime.overlay(a_world()).running.max_nodes.tolist() == [expected]


def test_a_release_names_no_node_that_the_job_has_lost():
    launchers = Planted()
    runtime = begun(launchers, ("n1", "n2"))
    launchers.answers("m-1", ("n1", "n2"))
    runtime.see(a_world((0, 2), version=2))  # n2 is lost, n3 not released yet
    assert asked_to_give_back(runtime, a_world((0, 2), version=2)) == []
    assert not runtime.changes


def test_a_grow_is_not_sent_for_a_job_that_has_lost_a_node():
    runtime = begun(Planted(), ("n1", "n2", "n3", "n4"))
    runtime.see(a_world((0, 1), version=2))
    assert asked_to_give_back(runtime, a_world((0, 1), version=2)) == []


def test_a_change_that_cannot_be_ordered_stops_nothing():
    launchers = Planted()
    launchers.breaks = True
    runtime = begun(launchers, ("n1",))
    assert not runtime.changes
    assert runtime.overlay(a_world()).running.max_nodes.tolist() == [0]  # for a while


def test_a_job_has_one_change_at_a_time():
    launchers = Planted()
    runtime = begun(launchers, ("n1",))
    runtime.begin(World(a_world()), "m", ("n1", "n2"), by_s=0, end_s=0, reason="")
    assert [order.id for order in launchers.orders] == ["m-1"]
    assert [change.id for change in runtime.changes] == ["m-1"]


def test_a_clock_that_is_set_back_leaves_no_state_without_a_deadline():
    launchers = Planted()
    runtime = begun(launchers, ("n1",))
    runtime.see(a_world(now_s=500))
    runtime.see(a_world(now_s=500 + WAITS.grace_s + 1))
    assert isinstance(launchers.orders[-1], WithdrawOrder)
    runtime.see(a_world(now_s=500 + WAITS.grace_s + WAITS.withdraw_s + 2))
    assert not runtime.changes


def test_a_clock_that_is_set_back_does_not_silence_a_release():
    launchers = Planted()
    runtime = begun(launchers, ("n1",))
    launchers.answers("m-1", ("n1",))
    runtime.see(a_world())
    assert asked_to_give_back(runtime, a_world()) == [("n1",)]
    runtime.see(a_world(now_s=500))
    runtime.see(a_world(now_s=515))
    assert asked_to_give_back(runtime, a_world(now_s=515)) == [("n1",)]


@pytest.mark.parametrize("job_id", ["", "m ", "n", "m\n", "x" * 10_000])
def test_orders_for_no_job_are_refused_in_few_words(job_id):
    runtime = a_runtime(Planted())
    runtime.see(a_world())
    runtime.overlay(a_world())
    with pytest.raises(ControllerError) as refused:
        runtime.ask(job_id, "", width=2)
    assert len(str(refused.value)) < 200


def test_nobody_orders_for_anothers_job():
    runtime = a_runtime(Planted())
    runtime.see(a_world())
    runtime.overlay(a_world())
    for what in ({"hold": True}, {"width": 2}, {"hold": False}):
        for other in ("eve", "an", "anna", "nn", "Ann"):
            with pytest.raises(ControllerError, match="ann's"):
                runtime.ask("m", other, uid="1001", **what)
    assert not runtime.held
    assert not runtime.wishes


def test_the_controller_looks_in_often_enough_for_orders_while_a_launcher_is_there():
    runtime = a_runtime(Planted())
    assert runtime.wake_ms() == 0
    runtime.see(a_world())
    runtime.overlay(a_world())
    assert 0 < runtime.wake_ms() <= 1000
    alone = a_runtime(Absent())
    alone.see(a_world())
    alone.overlay(a_world())
    assert alone.wake_ms() == 0


def test_without_accounting_users_are_known_by_their_numbers():
    runtime = a_runtime(Planted())
    runtime.see(a_world(user="1000"))
    runtime.overlay(a_world(user="1000"))
    runtime.ask("m", "ann", uid="1000", hold=True)
    assert runtime.held == {"m"}
    for other in ("1001", "100", "10000", "000"):
        with pytest.raises(ControllerError, match="1000's"):
            runtime.ask("m", "eve", uid=other, hold=False)


def test_the_order_names_the_jobs_first_node_first():
    launchers = Planted()
    runtime = begun(launchers, ("n1", "n3", "n4"), a_world((2, 3), head=2))
    runtime.see(a_world((0, 2, 3), version=2, head=2))
    (order,) = launchers.orders
    assert isinstance(order, GrowOrder)
    assert order.nodes[0] == "n3"
    assert not isinstance(order, ShrinkOrder)


def test_a_job_does_not_grow_to_a_node_that_it_could_not_give_back():
    launchers = Planted(nodes=("n1", "n2", "n3"))
    launchers.alone = ("n5",)
    runtime = begun(launchers, ("n1", "n2", "n3", "n4", "n5"))
    assert not runtime.changes
    assert not launchers.orders
    runtime.overlay(a_world())
    assert runtime.shown[0].reason == "node n5 has no agent"


def test_a_launcher_that_starts_anew_on_nodes_that_were_to_go_keeps_them():
    launchers = Planted(nodes=("n1", "n2", "n3"))
    runtime = begun(launchers, ("n1", "n2"))
    launchers.is_vacant = False
    launchers.said = replace(launchers.said, nodes=("n1", "n2"))
    launchers.answers(launchers.orders[-1].id, ("n1", "n2"))
    runtime.see(a_world(now_s=1001))
    assert runtime.changes[0].state is ResizeState.VACATING
    launchers.said = replace(launchers.said, nodes=("n1", "n2", "n3"), serial=2)
    runtime.see(a_world(now_s=1002))
    assert not runtime.changes
    assert asked_to_give_back(runtime, a_world(now_s=1002)) == []


def test_a_job_that_is_suspended_stays_held():
    runtime = a_runtime(Planted())
    runtime.see(a_world())
    runtime.held.add("m")
    suspended = a_snapshot(nodes=6, now_s=1001, running=[a_running_job((0, 1, 2), id="m")])()
    runtime.see(suspended)
    assert runtime.held == {"m"}
    runtime.see(a_snapshot(nodes=6, now_s=1002)())
    assert not runtime.held


@pytest.mark.parametrize("ran_there", [False, True])
def test_a_lost_node_goes_back_though_the_launcher_answered_too_late(ran_there):
    launchers = Planted()
    launchers.is_vacant, launchers.is_lost = False, True
    runtime = begun(launchers, ("n1", "n2", "n3", "n4"))
    grown = [a_world((0, 1, 2, 3), now_s, 2) for now_s in (1001, 1130, 1170, 1300, 1301)]
    for at, world in enumerate(grown):
        runtime.see(world)
        if at == 2:
            assert not runtime.changes  # nobody has answered
            launchers.said = replace(
                launchers.said, nodes=("n1", "n2", "n3", "n4")[: 3 + ran_there]
            )
    if ran_there:
        launchers.said = replace(launchers.said, nodes=("n1", "n2", "n3"))
        runtime.see(a_world((0, 1, 2, 3), 1302, 2))
    expected = [] if ran_there else [("n1", "n2", "n3")]
    assert asked_to_give_back(runtime, grown[-1]) == expected


def test_nodes_that_nobody_knows_of_need_their_agents():
    launchers = Planted(("n1", "n2"))
    launchers.is_vacant, launchers.is_lost = False, True
    runtime = a_runtime(launchers)
    runtime.see(a_world())
    assert [change.state for change in runtime.changes] == [ResizeState.VACATING]
    assert asked_to_give_back(runtime, a_world()) == []


def test_a_launcher_that_begins_anew_before_a_release_is_carried_out_keeps_the_nodes():
    launchers = Planted(("n1", "n2", "n3"))
    runtime = begun(launchers, ("n1", "n2"))
    launchers.answers(runtime.changes[0].id, ("n1", "n2"))
    launchers.said = replace(launchers.said, nodes=("n1", "n2"))
    runtime.see(a_world())
    [change] = runtime.changes
    assert change.state is ResizeState.RELEASING
    [send] = runtime.sends(World(a_world()))
    send.change.decision = 5
    runtime.answered(5, 1000, applied=False, text="the job is suspended")
    launchers.said = LauncherReport(serial=2, nodes=("n1", "n2", "n3"), engine="join")
    runtime.see(a_world(now_s=1005))
    assert asked_to_give_back(runtime, a_world(now_s=1005)) == []
    assert runtime.changes == ()
