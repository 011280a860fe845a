# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from bridge.errors import Unreachable
from bridge.lab.sim.cluster.controller import Controller
from bridge.lab.sim.runs.faults import FaultKind, Saboteur, random_faults
from bridge.lab.sim.workloads.system import pool_of
from schedbridge_contracts.workloads import a_workload, random_workload
from tests.workloads import ReferenceBackfill

WORKLOAD = random_workload(1, 50, 8)


def test_the_same_seed_gives_the_same_faults_and_another_seed_others():
    assert random_faults(7, WORKLOAD, 8, 30) == random_faults(7, WORKLOAD, 8, 30)
    assert random_faults(7, WORKLOAD, 8, 30) != random_faults(8, WORKLOAD, 8, 30)
    assert random_faults(7, WORKLOAD, 8, 0) == ()


def test_every_lost_node_returns_later():
    faults = random_faults(3, WORKLOAD, 8, 200)
    assert [fault.at_s for fault in faults] == sorted(fault.at_s for fault in faults)
    lost = [f for f in faults if f.kind is FaultKind.NODE_LOST]
    back = [f for f in faults if f.kind is FaultKind.NODE_RETURNED]
    assert len(lost) == len(back) > 0
    for fault in lost:
        assert any(b.target == fault.target and b.at_s > fault.at_s for b in back)


def test_targets_exist():
    for fault in random_faults(5, WORKLOAD, 3, 300):
        on_a_node = fault.kind in (FaultKind.NODE_LOST, FaultKind.NODE_RETURNED)
        assert 0 <= fault.target < (3 if on_a_node else len(WORKLOAD))


@pytest.fixture
def snapshot():
    controller = Controller(a_workload([(1, 5, 5, 2), (1, 5, 5, 1)], 4), pool_of(4))
    controller.submit(0)
    controller.submit(1)
    return controller.snapshot(1)


def test_a_saboteur_that_never_strikes_changes_nothing(snapshot):
    saboteur = Saboteur(ReferenceBackfill(), seed=1, share=0.0)
    honest = ReferenceBackfill()(snapshot)
    assert np.array_equal(saboteur(snapshot).start_s, honest.start_s)
    assert sum(saboteur.broken.values()) == 0


def test_a_saboteur_that_always_strikes_strikes_in_every_way(snapshot):
    saboteur = Saboteur(ReferenceBackfill(), seed=1, share=1.0)
    saboteur._last = ReferenceBackfill()(snapshot)
    silent = 0
    for _ in range(100):
        try:
            saboteur(snapshot)
        except Unreachable:
            silent += 1
    assert saboteur.broken["silent"] == silent
    assert min(saboteur.broken.values()) > 10
