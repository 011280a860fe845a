# SPDX-License-Identifier: Apache-2.0
"""Where reservations find slot, and who is in their way."""

import dataclasses

import numpy as np
import pytest

from bridge.errors import ConfigError, RequestError
from bridge.model.snapshot import Reservation
from bridge.model.topology import Topology
from bridge.planning.requests.chunks import parse_request
from bridge.planning.scheduler.advance_reservation import ReservationRequest, find_slot
from bridge.registry import build, parse_policy
from bridge.units import NEVER
from schedbridge_contracts.builders import (
    a_job,
    a_node,
    a_partition,
    a_reservation,
    a_running_job,
    a_snapshot,
)
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import Memory, run
from schedbridge_contracts.worlds import random_world


def planned(snapshot):
    policy = {"order": "fcfs", "plan": "openccs", "place": "sequential"}
    return run(snapshot, Memory(), build(parse_policy(policy)), np.random.default_rng(0))


def slot(snapshot, start_s=0, duration_s=100, **requested):
    return find_slot(
        snapshot, planned(snapshot), ReservationRequest(start_s, duration_s, **requested)
    )


def test_free_nodes_are_taken():
    found = slot(a_snapshot(nodes=4)(), nodes=3)
    assert (found.nodes.tolist(), found.planned, found.running) == ([0, 1, 2], (), ())


def test_a_reservation_may_lie_across_fabrics():
    apart = Topology(tuple("ab"), np.array([-1, -1], np.int32), np.array([0, 1, -1], np.int32))
    snapshot = dataclasses.replace(a_snapshot(nodes=3)(), topology=apart)
    assert slot(snapshot, nodes=3).nodes.tolist() == [0, 1, 2]


def test_running_jobs_stay_and_are_named_with_the_next_room():
    running = [a_running_job((0,), end_s=50), a_running_job((1,), end_s=80)]
    snapshot = a_snapshot(nodes=2, running=running)()
    found = slot(snapshot, start_s=20, nodes=2)
    assert len(found.nodes) == 0
    assert (found.running, found.next_start_s) == ((1, 0), 80)
    assert slot(snapshot, start_s=80, nodes=2).nodes.tolist() == [0, 1]
    assert slot(snapshot, start_s=50, nodes=1).nodes.tolist() == [0]


def test_planned_jobs_are_in_the_way_unless_they_may_be_displaced():
    running = [a_running_job((0, 1), end_s=50)]
    snapshot = a_snapshot(nodes=2, running=running, jobs=[a_job(2, limit_s=100, id="later")])()
    found = slot(snapshot, start_s=60, nodes=1)
    assert (found.nodes.tolist(), found.planned, found.next_start_s) == ([], (0,), 150)
    found = slot(snapshot, start_s=60, nodes=1, displace=True)
    assert (len(found.nodes), found.planned) == (1, (0,))


def test_the_fewest_planned_jobs_are_displaced():
    running = [a_running_job((0, 1, 2), end_s=50)]
    jobs = [a_job(1, limit_s=200, required=(0,)), a_job(1, limit_s=200, required=(1,))]
    snapshot = a_snapshot(nodes=3, running=running, jobs=jobs)()
    found = slot(snapshot, start_s=60, nodes=1, displace=True)
    assert (found.nodes.tolist(), found.planned) == ([2], ())


def test_what_starts_now_is_not_displaced():
    snapshot = a_snapshot(nodes=1, jobs=[a_job(1, limit_s=100)])()
    found = slot(snapshot, start_s=10, nodes=1, displace=True)
    assert (len(found.nodes), found.next_start_s) == (0, 100)


def test_other_reservations_and_unusable_nodes_are_left_alone():
    nodes = [a_node(), a_node(usable=False), a_node()]
    snapshot = a_snapshot(nodes=nodes, reservations=[a_reservation([0], 50, 200)])()
    assert slot(snapshot, nodes=1).nodes.tolist() == [2]
    assert slot(snapshot, nodes=2).next_start_s == 200
    assert slot(snapshot, nodes=1, duration_s=50).nodes.tolist() == [0]
    assert slot(snapshot, nodes=3).next_start_s == NEVER


def test_a_partition_bounds_where_but_not_how_long():
    parts = [a_partition("a", [0]), a_partition("b", [1], max_time_s=10, max_nodes=1, up=False)]
    snapshot = a_snapshot(nodes=2, partitions=parts)()
    assert slot(snapshot, nodes=1, partition=1, duration_s=10**6).nodes.tolist() == [1]


@pytest.mark.parametrize(
    ("chunks", "nodes"),
    [
        ("4:ncpus=2", [0, 1]),
        ("2:ncpus=4", [0, 1]),
        ("2:ncpus=1,place=scatter", [0, 1]),
        ("1:ncpus=1:ngpus=1", [2]),
        ("1:ncpus=2:host=n2", [1]),
    ],
)
def test_the_nodes_that_hold_chunks(chunks, nodes):
    snapshot = a_snapshot(nodes=[a_node(), a_node(), a_node(gpus=1, weight=9)])()
    assert slot(snapshot, chunks=parse_request(chunks)).nodes.tolist() == nodes


def test_shared_use_keeps_a_node_from_being_whole():
    running = [a_running_job((0,), end_s=50, shared=True, cpus=1)]
    snapshot = a_snapshot(nodes=2, running=running)()
    assert slot(snapshot, chunks=parse_request("1:ncpus=1")).nodes.tolist() == [1]


def test_what_the_cluster_does_not_have():
    snapshot = a_snapshot(nodes=2)()
    with pytest.raises(ConfigError, match="no node 'n9'"):
        slot(snapshot, chunks=parse_request("1:ncpus=1:host=n9"))
    with pytest.raises(RequestError):
        slot(snapshot, chunks=parse_request("1:ncpus=1:moon=true"))
    assert slot(snapshot, chunks=parse_request("1:ncpus=64")).next_start_s == NEVER


@each(seed=range(40))
def test_found_nodes_are_free_for_the_whole_time(seed):
    """Second by second, by hand: nobody who stays is on the nodes."""
    snapshot = random_world(seed)
    plan = planned(snapshot)
    rng = np.random.default_rng(seed)
    requested = ReservationRequest(
        snapshot.now_s + int(rng.integers(0, 200)), int(rng.integers(1, 200)),
        nodes=int(rng.integers(1, 4)), displace=bool(rng.integers(2)),
    )  # fmt: skip
    found = find_slot(snapshot, plan, requested)
    start_s = requested.start_s if len(found.nodes) else found.next_start_s
    if start_s == NEVER:
        return
    if not len(found.nodes):
        later = find_slot(
            snapshot,
            plan,
            ReservationRequest(
                start_s, requested.duration_s, requested.nodes, displace=requested.displace
            ),
        )
        assert len(later.nodes) == requested.nodes
        return
    end_s, running = requested.start_s + requested.duration_s, snapshot.running
    assert len(found.nodes) == requested.nodes
    for job in range(len(running)):
        held = running.nodes[running.indptr[job] : running.indptr[job + 1]]
        if running.end_s[job] > start_s:
            assert not np.isin(held, found.nodes).any()
    for row in range(len(plan)):
        meets = 0 <= plan.start_s[row] < end_s and plan.end_s[row] > start_s
        on = np.isin(plan.nodes_of(row), found.nodes).any()
        stays = not requested.displace or plan.start_s[row] == plan.now_s
        if meets and on:
            assert not stays
            assert row in found.planned


class TestLicences:
    LICENCES = (("matlab", 4),)

    def world(self, jobs=(), running=()):
        return a_snapshot(nodes=4, jobs=jobs, running=running, licences=self.LICENCES)()

    def requested(self, count, start_s=100, **settings):
        return ReservationRequest(start_s, 50, nodes=1, licences=np.array([count]), **settings)

    def test_what_runs_keeps_its_licences(self):
        held = a_running_job(nodes=(0,), end_s=130, shared=True, licences=(2,))
        snapshot = self.world(running=[held])
        plan = planned(snapshot)
        assert len(find_slot(snapshot, plan, self.requested(2)).nodes) == 1
        slot = find_slot(snapshot, plan, self.requested(3))
        assert (len(slot.nodes), slot.next_start_s) == (0, 130)

    def test_planned_jobs_keep_theirs_unless_they_may_be_displaced(self):
        running = [a_running_job(nodes=(0, 1, 2, 3), end_s=90, licences=(0,))]
        jobs = [a_job(1, limit_s=100, id="mine", licences=(3,)), a_job(1, limit_s=100, id="none")]
        snapshot = self.world(jobs, running)
        plan = planned(snapshot)
        assert find_slot(snapshot, plan, self.requested(2)).next_start_s == 190
        assert len(find_slot(snapshot, plan, self.requested(1)).nodes) == 1
        slot = find_slot(snapshot, plan, self.requested(2, displace=True))
        assert len(slot.nodes) == 1
        assert [snapshot.jobs.id[plan.job[row]] for row in slot.planned] == ["mine"]

    def test_what_another_reservation_keeps_is_not_there(self):
        other = Reservation("other", 120, 300, np.array([3], dtype=np.int32), np.array([3]))
        snapshot = a_snapshot(nodes=4, reservations=[other], licences=self.LICENCES)()
        assert find_slot(snapshot, planned(snapshot), self.requested(2)).next_start_s == 300
        assert len(find_slot(snapshot, planned(snapshot), self.requested(1)).nodes) == 1
