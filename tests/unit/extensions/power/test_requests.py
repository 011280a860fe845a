# SPDX-License-Identifier: Apache-2.0
"""What a controller is asked to power down and up."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from bridge.extensions.power.changes import PowerChanges, with_changes
from bridge.extensions.power.columns import NAME, PowerSaving
from bridge.extensions.power.requests import AGAIN_S, REFUSED_S
from bridge.model.plan import Plan
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.extension_wire import ExtensionRequests
from bridge.rpc.reported.hostlist import NodeIndex
from schedbridge_contracts.builders import a_node, a_snapshot

NODES = NodeIndex(("n1", "n2", "n3", "n4"))


@pytest.fixture
def requests():
    numbers = count(1)
    return ExtensionRequests(lambda: next(numbers))


def a_report(now_s, off=(), resuming=()):
    """Of four nodes; those named are powered down or on the way up, by index."""
    snapshot = a_snapshot(nodes=[a_node() for _ in NODES.names], now_s=now_s)()
    no, zeros = np.zeros(len(NODES), dtype=bool), np.zeros(len(NODES), dtype=np.int64)
    saving = PowerSaving(can=~no, off=no.copy(), resume_s=zeros, ready_s=zeros.copy(),
                         idle_since_s=zeros)  # fmt: skip
    saving.off[[*off, *resuming]] = True
    saving.ready_s[list(resuming)] = now_s + 60
    return replace(snapshot, nodes=snapshot.nodes.having(NAME, saving))


def requested(requests, now_s, down=(), up=(), **states):
    snapshot = a_report(now_s, **states)
    changes = PowerChanges(np.array(down, np.int32), np.array(up, np.int32), "why")
    plan = with_changes(Plan.without_rows(now_s), changes)
    return requests.decide(snapshot, plan, NODES, frozenset({"power"}))


def test_each_way_is_one_decision_with_its_nodes(requests):
    down, up = requested(requests, 0, down=[1, 2], up=[3])
    assert (down.power.nodes, down.power.up, down.power.reason) == ("n[2-3]", False, "why")
    assert (up.power.nodes, up.power.up) == ("n4", True)
    assert (down.id, up.id, down.job_id) == (1, 2, "")


def test_a_node_is_asked_again_after_a_while_only(requests):
    assert len(requested(requests, 0, down=[1])) == 1
    (other,) = requested(requests, 5, down=[1, 2])
    assert other.power.nodes == "n3"
    assert requested(requests, AGAIN_S - 1, down=[1]) == []
    assert len(requested(requests, AGAIN_S, down=[1])) == 1
    assert len(requested(requests, AGAIN_S, up=[1], off=[1])) == 1


def test_a_node_that_has_been_off_and_on_again_is_asked_at_once(requests):
    assert len(requested(requests, 0, down=[1])) == 1
    assert requested(requests, 4, off=[1]) == []
    assert len(requested(requests, 5, up=[1], off=[1])) == 1
    assert requested(requests, 6, up=[1], off=[1]) == []
    assert requested(requests, 7, resuming=[1]) == []
    assert len(requested(requests, 20, down=[1])) == 1


def test_one_that_refused_is_left_alone_for_longer(requests):
    (decision,) = requested(requests, 0, down=[1, 2])
    refused = pb.Fate(decision_id=decision.id, outcome=pb.OUTCOME_REFUSED)
    assert requests.close(refused, 1)
    assert not requests.close(refused, 1)
    assert requested(requests, AGAIN_S + 1, down=[1]) == []
    assert len(requested(requests, 1 + REFUSED_S, down=[1])) == 1


def test_one_that_is_busy_is_asked_again_like_any_other(requests):
    (decision,) = requested(requests, 0, down=[1, 2])
    assert requests.close(pb.Fate(decision_id=decision.id, outcome=pb.OUTCOME_BUSY), 1)
    assert requested(requests, AGAIN_S - 1, down=[1]) == []
    assert len(requested(requests, AGAIN_S, down=[1])) == 1


def test_a_controller_that_has_started_again_is_asked_again(requests):
    assert len(requested(requests, 0, down=[1])) == 1
    requests.reset()
    assert len(requested(requests, 1, down=[1])) == 1
