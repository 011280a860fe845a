# SPDX-License-Identifier: Apache-2.0
"""The topology.conf of a living cluster: read when needed, and again when it changes."""

import os
from pathlib import Path

import pytest

from bridge.rpc.session import Session
from bridge.rpc.switches import Switches
from tests.unit.rpc.worlds import a_full, a_hello, some_nodes

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
