# SPDX-License-Identifier: Apache-2.0
"""Reservations by operators, through a real service, carried out by the simulated controller."""

import threading

import pytest

from bridge.errors import ControllerError
from bridge.lab.sim.cluster.controller import Controller
from bridge.lab.sim.workloads.system import pool_of
from bridge.rpc.clients.operator_client import OperatorClient
from bridge.rpc.clients.remote_decider import RemoteDecider
from bridge.rpc.pb import operator_pb2 as pb
from schedbridge_contracts.workloads import a_workload
from tests.simulation.services import a_home, a_service, controller_of, operator_of


@pytest.fixture
def home():
    with a_home() as made:
        yield made


class World:
    """A simulated controller that calls the service until it is told to stop."""

    def __init__(self, home, jobs, nodes=4, can_reserve=True):
        self.controller = Controller(a_workload(jobs, nodes), pool_of(nodes))
        for job in range(len(jobs)):
            self.controller.submit(job)
        self.remote = RemoteDecider(
            controller_of(home), reserving=self.controller.reservations if can_reserve else None
        )
        self.now_s = 10

    def cycle(self, after_s=0):
        self.now_s += after_s
        plan = self.remote.decide(self.controller.snapshot(self.now_s))
        self.controller.plans.apply(plan, self.now_s)
        return plan

    def asking(self, ask):
        """Calls the service until `ask` is answered; returns its answer or its error."""
        found = []

        def body():
            try:
                found.append(ask())
            except ControllerError as error:
                found.append(error)

        thread = threading.Thread(target=body)
        thread.start()
        while thread.is_alive():
            self.cycle()
            thread.join(0.02)
        return found[0]


def a_request(**settings):
    base = {"name": "exam", "start_s": 100, "duration_s": 50, "nodes": 2, "users": ["alice"]}
    return pb.ReserveRequest(**(base | settings))


def test_a_reservation_is_made_planned_around_and_removed(home):
    with a_service(home, policy="openccs"), OperatorClient(operator_of(home)) as operator:
        world = World(home, [(1, 60, 60, 4), (2, 80, 80, 4)])
        with world.remote:
            world.cycle()
            reply = world.asking(lambda: operator.reserve(a_request(displace=True)))
            assert (reply.made, reply.node_count, reply.start_s, reply.end_s) == (True, 2, 100, 150)
            assert [job.job_id for job in reply.jobs] == ["2"]
            assert [item.name for item in world.controller.reservations] == ["exam"]
            plan = world.cycle(after_s=2)  # moved starts are announced once a second
            assert plan.start_s[plan.planned].tolist() == [150]
            again = world.asking(lambda: operator.reserve(a_request()))
            assert "there is one called exam already" in str(again)
            world.asking(lambda: operator.unreserve("exam"))
            assert not list(world.controller.reservations)
            plan = world.cycle(after_s=2)
            assert plan.start_s[plan.planned].tolist() == [70]
            gone = world.asking(lambda: operator.unreserve("exam"))
            assert "the controller refuses: Requested reservation is invalid" in str(gone)


def test_without_room_nothing_is_done(home):
    with a_service(home, policy="openccs"), OperatorClient(operator_of(home)) as operator:
        world = World(home, [(1, 60, 60, 4), (2, 80, 80, 4)])
        with world.remote:
            world.cycle()
            world.cycle()
            reply = operator.reserve(a_request(nodes=4))
            assert (reply.made, reply.nodes, reply.next_start_s) == (False, "", 150)
            assert [job.job_id for job in reply.jobs] == ["2"]
            reply = operator.reserve(a_request(start_s=20, displace=True))
            assert (reply.next_start_s, [job.running for job in reply.jobs]) == (70, [True])
            assert not list(world.controller.reservations)


def test_a_dry_run_tells_slurms_own_command(home):
    with a_service(home, policy="openccs"), OperatorClient(operator_of(home)) as operator:
        world = World(home, [(1, 60, 60, 1)], can_reserve=False)
        with world.remote:
            world.cycle()
            reply = operator.reserve(a_request(dry_run=True, accounts=["x"]))
            assert not reply.made
            assert reply.command.startswith("scontrol create reservation ReservationName=exam ")
            assert reply.command.endswith(f" Nodes={reply.nodes} Users=alice Accounts=x")
            with pytest.raises(ControllerError, match="is older"):
                operator.reserve(a_request())


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"name": "a b"}, "its name must be"),
        ({"users": []}, "state who may use it"),
        ({"users": ["a;b"]}, "is not a name in users"),
        ({"duration_s": 0}, "duration"),
        ({"nodes": 0}, "either the number of nodes or the chunks"),
        ({"chunks": "1:ncpus=1"}, "either the number of nodes or the chunks"),
        ({"nodes": 0, "chunks": "1:ncpu=1"}, "character"),
        ({"partition": "moon"}, "no partition 'moon'"),
        ({"start_s": 5}, "must not lie in the past"),
        ({"nodes": 9}, "not enough usable nodes"),
        ({"licences": ["matlab:1"]}, "there is no licence 'matlab'"),
    ],
)
def test_what_makes_no_sense(home, settings, problem):
    with a_service(home, policy="openccs"), OperatorClient(operator_of(home)) as operator:
        world = World(home, [])
        with world.remote:
            world.cycle()
            with pytest.raises(ControllerError, match=problem):
                operator.reserve(a_request(**settings))
