# SPDX-License-Identifier: Apache-2.0
"""The topology view that every user may read."""

import pytest

from bridge.registry import PRESETS, build
from bridge.rpc.controller.switches import Switches
from bridge.rpc.operators import queries
from bridge.rpc.operators.queries import Asking
from bridge.rpc.operators.view import View
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.reported.session import Session
from bridge.safe_cycle.decider import Decider
from tests.unit.rpc.worlds import (
    a_full,
    a_job,
    a_running_job,
    some_cycles,
    some_nodes,
)


@pytest.fixture
def ask(tmp_path):
    """Runs a cycle, then asks as an administrator or as anybody."""
    path = tmp_path / "topology.conf"
    path.write_text("SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n2\nSwitchName=t Switches=a,b")

    def requested(*jobs, admin=False, switches=True):
        decider = Decider(build(PRESETS["easy"]))
        session = Session(10, Switches(path).above) if switches else Session()
        cycles = some_cycles(decider.decide, "easy", session=session)
        nodes = [*some_nodes(3), *some_nodes(4, usable=False)[3:]]
        cycles.run(a_full(jobs, nodes=nodes))
        view = View(None, None, cycles.published)
        return queries.topology(view, pb.TopologyRequest(), Asking(admin))

    return requested


def test_switches_nodes_and_jobs(ask):
    reply = ask(a_running_job("5", "n[0,2]"), a_job("7"))
    assert [(one.name, one.parent) for one in reply.switches] == [("a", 2), ("b", 2), ("t", -1)]
    assert [(node.name, node.leaf, node.usable) for node in reply.nodes] == [
        ("n0", 0, True), ("n1", 0, True), ("n2", 1, True), ("n3", -1, False),
    ]  # fmt: skip
    assert [(job.job_id, job.nodes, job.running) for job in reply.jobs] == [
        ("5", "n[0,2]", True), ("7", "n1", False),
    ]  # fmt: skip


def test_without_a_topology_there_are_nodes_and_jobs(ask):
    reply = ask(a_running_job("5", "n0"), switches=False)
    assert not reply.switches
    assert {node.leaf for node in reply.nodes} == {-1}
    assert len(reply.jobs) == 1


@pytest.mark.parametrize(("admin", "given"), [(True, 3), (False, 2)])
def test_ordinary_users_get_a_bounded_part(ask, monkeypatch, admin, given):
    monkeypatch.setattr(queries, "MAX_READ", 2)
    jobs = [a_running_job("5", "n0"), a_running_job("6", "n1"), a_job("7")]
    assert len(ask(*jobs, admin=admin).jobs) == given


def test_waiting_jobs_are_not_told(ask):
    reply = ask(a_running_job("5", "n[0-2]"), a_job("7"))
    assert [job.job_id for job in reply.jobs] == ["5"]
