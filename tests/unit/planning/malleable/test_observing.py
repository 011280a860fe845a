# SPDX-License-Identifier: Apache-2.0
"""What is noted of running jobs does not depend on which snapshots came before."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.model.learnt import Learnt
from bridge.planning.malleable import observing
from bridge.planning.malleable.observing import observed
from schedbridge_contracts.builders import a_running_job, a_snapshot


def a_world(**changed):
    running = [
        a_running_job((0, 1), id="a", min_nodes=1, max_nodes=8),
        a_running_job((2, 3), id="b", min_nodes=1, max_nodes=8),
        a_running_job((4,), id="rigid"),
    ]
    world = a_snapshot(nodes=8, running=running)()
    columns = {"mtct": np.array([0.2, -1.0, -1.0]), **changed}
    return replace(world, running=replace(world.running, **columns))


def what(learnt):
    return dict(learnt.known), dict(learnt.running), dict(learnt.traits)


CHANGES = [
    {},
    {"mtct": np.array([0.2004, -1.0, -1.0])},  # too little to be noted
    {"mtct": np.array([0.3, -1.0, -1.0])},
    {"mtct": np.array([-1.0, -1.0, -1.0])},
    {"mtct": np.array([0.2, 0.0, -1.0])},
    {"start_s": np.array([7, 0, 0])},
    {"indptr": np.array([0, 1, 4, 5])},
    {"id": np.array(["a", "c", "rigid"], dtype=object)},
    {"id": np.array(["b", "a", "rigid"], dtype=object)},
    {"max_nodes": np.array([8, 0, 0])},
    {"releasing": np.array([True, False, False])},
    {"releasing": np.array([False, False, True])},
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_snapshot_teaches_the_same_after_one_like_the_last_and_without(change, monkeypatch):
    before = observed(a_world(), Learnt())
    monkeypatch.setattr(observing, "_noted", [])
    alone = observed(a_world(**change), before)
    monkeypatch.setattr(observing, "_noted", [])
    assert observed(a_world(), before) is before
    assert observing._noted
    after = observed(a_world(**change), before)
    assert what(after) == what(alone)
    assert (after is before) == (alone is before)


def test_nothing_new_is_told_by_the_same_object_and_little_by_little_it_adds_up():
    learnt = observed(a_world(), Learnt())
    for mtct in (0.202, 0.204):
        assert observed(a_world(mtct=np.array([mtct, -1.0, -1.0])), learnt) is learnt
    assert observed(a_world(mtct=np.array([0.206, -1.0, -1.0])), learnt) is not learnt
