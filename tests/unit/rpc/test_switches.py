# SPDX-License-Identifier: Apache-2.0
"""The topology.conf of a living cluster: read when needed, and again when it changes."""

import os
from pathlib import Path

import pytest

from bridge.rpc.controller.switches import Switches
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.session import Session
from tests.unit.rpc.worlds import NOW_S, a_delta, a_full, a_hello, a_job, a_request, some_nodes

NODES = ("n1", "n2")


def test_read_once_and_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "topology.conf"
    path.write_text("SwitchName=a Nodes=n[1-2]")
    switches = Switches(path)
    first = switches.above(NODES)
    assert first is not None
    assert first.leaf_of_node.tolist() == [0, 0]
    assert switches.above(NODES) is first
    path.write_text("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2")
    os.utime(path, ns=(1, 1))
    again = switches.above(NODES)
    assert again is not None
    assert again.leaf_of_node.tolist() == [0, 1]


def test_a_bad_file_is_no_topology(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "topology.conf"
    assert Switches(path).above(NODES) is None
    path.write_text("SwitchName=a Nodes=n1 Nodes=n2")
    assert Switches(path).above(NODES) is None
    assert "line 1" in caplog.text
    assert "jobs are placed without a topology" in caplog.text


def test_what_it_said_holds_while_it_cannot_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "topology.conf"
    path.write_text("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2")
    switches = Switches(path)
    first = switches.above(NODES)
    assert first is not None
    path.write_text("SwitchName=a Nodes=n1\nSwitchName=b Nod")
    os.utime(path, ns=(1, 1))
    assert switches.above(NODES) is first
    path.unlink()
    assert switches.above(NODES) is first
    assert "the last holds" in caplog.text
    assert switches.above(("n1", "n2", "n3")) is None
    path.write_text("SwitchName=a Nodes=n[1-2]")
    again = switches.above(NODES)
    assert again is not None
    assert again.leaf_of_node.tolist() == [0, 0]


def test_a_session_tells_cycles_of_it(tmp_path: Path) -> None:
    path = tmp_path / "topology.conf"
    path.write_text("SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n[2-3]")
    session = Session(switches=Switches(path).above)
    session.greet(a_hello())
    assert session.apply(a_full(nodes=some_nodes(4)))
    topology = session.snapshot()[0].topology
    assert topology is not None
    assert topology.leaf_of_node.tolist() == [0, 0, 1, 1]
    assert session.snapshot()[0].topology is topology


def asking(switches: int) -> pb.Job:
    wait_s = 300 if switches else 0
    wide = a_request(min_nodes=2, max_nodes=2, switches=switches, switches_wait_s=wait_s)
    return a_job("7", request=wide, eligible_s=NOW_S)


def test_what_jobs_ask_for_is_warned_of_once_where_no_switch_is_known(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session = Session()
    session.greet(a_hello())
    assert session.apply(a_full([asking(1)], some_nodes(4)))
    for _ in range(2):
        jobs = session.snapshot()[0].jobs
        assert (jobs.switches.tolist(), jobs.switches_wait_s.tolist()) == ([1], [300])
    assert caplog.text.count("--switches: left to the controller") == 1


def test_a_site_lets_jobs_wait_that_say_nothing(tmp_path: Path) -> None:
    path = tmp_path / "topology.conf"
    path.write_text(
        "SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n[2-3]\nSwitchName=t Switches=a,b"
    )
    session = Session(switches=Switches(path).above, switches_wait_s=60)
    session.greet(a_hello())
    assert session.apply(a_full([asking(0)], some_nodes(4)))
    jobs = session.snapshot()[0].jobs
    assert (jobs.switches.tolist(), jobs.switches_wait_s.tolist()) == ([1], [60])
    assert session.apply(a_delta(1, jobs=[asking(2)]))
    jobs = session.snapshot()[0].jobs
    assert (jobs.switches.tolist(), jobs.switches_wait_s.tolist()) == ([2], [300])


def test_a_file_that_is_of_no_use_is_told_before_anybody_calls(tmp_path, caplog):
    path = tmp_path / "topology.conf"
    Switches(path).warn()
    assert "cannot be read" in caplog.text
    assert "without a topology" in caplog.text
    caplog.clear()
    path.write_text("SwitchName=a Nodes=n[1-4]")
    Switches(path).warn()
    assert not caplog.text
