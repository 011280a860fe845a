# SPDX-License-Identifier: Apache-2.0
"""Whoever connects to a launcher, or refuses its lines, does not end the run."""

import json
import socket

import pytest

from bridge.extensions.elastic.launcher import loop as loops
from bridge.extensions.elastic.launcher.loop import Loop
from bridge.extensions.elastic.launcher.options import Folder, Options
from bridge.extensions.elastic.launcher.peers import AgentLink
from bridge.extensions.elastic.lines import VERSION, Attach, Progress

TOKEN = "t0ken"


@pytest.fixture
def running(tmp_path, monkeypatch):
    """A launcher, and its port for other machines."""
    monkeypatch.setattr(loops, "MAX_PEERS", 4)
    folder = Folder(tmp_path)
    folder.write(
        Options(("true",), "7", "7", ("n1",), engine="join", token=TOKEN, agent="/nowhere")
    )
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    yield Loop(folder, [listener]), listener.getsockname()
    listener.close()


def said(launcher):
    """What the connected processes say, as the launcher takes it in."""
    launcher._accept()
    return [event for number in list(launcher.peers) for event in launcher._read(number)]


def test_strangers_make_room_for_processes_of_the_job(running):
    launcher, address = running
    strangers = [socket.create_connection(address) for _ in range(6)]
    assert said(launcher) == []
    with socket.create_connection(address) as own:
        line = {"op": "ready", "id": "1", "token": TOKEN}
        own.sendall(json.dumps(line).encode() + b"\n")
        assert [event.op for event in said(launcher)] == ["ready"]
        more = [socket.create_connection(address) for _ in range(6)]
        said(launcher)
        assert any(peer.known for peer in launcher.peers.values())
        assert len(launcher.peers) == 4
    for stream in (*strangers, *more, *(peer.stream for peer in launcher.peers.values())):
        stream.close()


def test_a_step_that_was_replaced_is_told_to_end(tmp_path):
    folder = Folder(tmp_path)
    folder.write(Options(("true",), "7", "7", ("n1",), engine="relaunch", agent="/nowhere"))
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        listener.setblocking(False)
        launcher = Loop(folder, [listener])
        launcher.machine.begin(0.0)
        launcher.machine._start_main(("n1",))
        old, new = (socket.socket(socket.AF_UNIX) for _ in range(2))
        with old, new:
            for stream, step in ((old, "main-1"), (new, "main-2")):
                stream.connect(path)
                line = {"op": "hello", "role": "main", "size": 1, "step": step}
                stream.sendall(json.dumps(line).encode() + b"\n")
            assert [event.step for event in said(launcher)] == ["main-2"]
            assert old.recv(100) == b'{"op":"end"}\n'
            for peer in launcher.peers.values():
                peer.stream.close()


def test_what_strangers_say_is_not_told_to_the_user(running, capsys):
    launcher, address = running
    with socket.create_connection(address) as stranger:
        stranger.sendall(b'{"op":"ready","id":"1","token":"guess"}\nnonsense\n')
        assert said(launcher) == []
    assert capsys.readouterr().err == ""
    assert not launcher.peers


def test_a_job_whose_nodes_fit_into_no_line_is_rigid(tmp_path, capsys):
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        agent = AgentLink(str(path))
        nodes = tuple(f"n{number}" for number in range(5000))
        assert list(agent.events(Attach(VERSION, "7", nodes, "join"))) == []
        agent.tell(Progress("x" * 1000, "window"))
    assert "rigid" in capsys.readouterr().err


def test_no_other_run_of_the_job_finds_its_parked_data(tmp_path):
    options = Options(("true",), "7", "7", ("n1",), engine="relaunch", agent="/nowhere")
    places = set()
    for name in ("schedbridge-7-aaaa", "schedbridge-7-bbbb"):
        folder = Folder(tmp_path / name)
        folder.path.mkdir()
        folder.write(options)
        places.add(Loop(folder, []).machine.park)
        assert Loop(folder, []).machine.park in places  # a launcher that is started again does
    assert len(places) == 2


def test_a_program_that_talks_nonsense_does_not_fill_the_output(tmp_path, capsys):
    folder = Folder(tmp_path)
    folder.write(Options(("true",), "7", "7", ("n1",), engine="join", agent="/nowhere"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        listener.setblocking(False)
        launcher = Loop(folder, [listener])
        for _ in range(3 * loops.MAX_UNREAD):
            with socket.socket(socket.AF_UNIX) as program:
                program.connect(str(tmp_path / "s"))
                program.sendall(b"nonsense\n")
                assert said(launcher) == []
    assert launcher.peers == {}
    assert capsys.readouterr().err.count("cannot be read") == loops.MAX_UNREAD
