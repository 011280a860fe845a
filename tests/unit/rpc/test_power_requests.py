# SPDX-License-Identifier: Apache-2.0
"""What a controller is asked to power down and up."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from bridge.model.plan import Plan
from bridge.model.power_saving import PowerChanges
from bridge.rpc.controller.power_changes import AGAIN_S, REFUSED_S, PowerRequests
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.hostlist import NodeIndex
from tests.builders import a_snapshot

NODES = NodeIndex(("n1", "n2", "n3", "n4"))


@pytest.fixture
def requests():
    numbers = count(1)
    return PowerRequests(lambda: next(numbers))


def asked(requests, now_s, down=(), up=()):
    snapshot = a_snapshot(now_s=now_s)()
    changes = PowerChanges(np.array(down, np.int32), np.array(up, np.int32), "why")
    plan = replace(Plan.without_rows(now_s), power=changes)
    return requests.decide(snapshot, plan, NODES)


def test_each_way_is_one_decision_with_its_nodes(requests):
    down, up = asked(requests, 0, down=[1, 2], up=[3])
    assert (down.power.nodes, down.power.up, down.power.reason) == ("n[2-3]", False, "why")
    assert (up.power.nodes, up.power.up) == ("n4", True)
    assert (down.id, up.id, down.job_id) == (1, 2, "")


def test_a_node_is_asked_again_after_a_while_only(requests):
    assert len(asked(requests, 0, down=[1])) == 1
    (other,) = asked(requests, 5, down=[1, 2])
    assert other.power.nodes == "n3"
    assert asked(requests, AGAIN_S - 1, down=[1]) == []
    assert len(asked(requests, AGAIN_S, down=[1])) == 1
    assert len(asked(requests, AGAIN_S, up=[1])) == 1


def test_one_that_refused_is_left_alone_for_longer(requests):
    (decision,) = asked(requests, 0, down=[1, 2])
    refused = pb.Fate(decision_id=decision.id, outcome=pb.OUTCOME_REFUSED)
    assert requests.close(refused, 1)
    assert not requests.close(refused, 1)
    assert asked(requests, AGAIN_S + 1, down=[1]) == []
    assert len(asked(requests, 1 + REFUSED_S, down=[1])) == 1


def test_a_controller_that_has_started_again_is_asked_again(requests):
    assert len(asked(requests, 0, down=[1])) == 1
    requests.reset()
    assert len(asked(requests, 1, down=[1])) == 1
