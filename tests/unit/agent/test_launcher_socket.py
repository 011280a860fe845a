# SPDX-License-Identifier: Apache-2.0
"""Launchers that flood, read nothing or come and go: others are heard, nothing is left behind."""

import asyncio
import json
import socket
import tempfile
from pathlib import Path

import pytest

from bridge.agent.launchers import BURST, LINES_S, MAX_OF_USER, LauncherSocket, LineRate
from bridge.extensions.elastic.lines import MAX_LINE


class Planted:
    """A service that answers every line with a long one, and processes that are all of job 7."""

    def __init__(self):
        self.socket, self.lines, self.gone, self.fails = None, [], [], False
        self.answer = ""

    def launcher_said(self, connection, user, job, line):
        self.lines.append((connection, job, line))
        if self.answer:
            self.socket.tell(connection, self.answer)
        return True

    def launcher_gone(self, connection):
        self.gone.append(connection)

    def job_of_family(self, pid, uid):
        if self.fails:
            raise ValueError("planted")
        return "7", "n1"


def play(story):
    """Runs a coroutine with an open socket, its path and what it talks to."""

    async def run():
        with tempfile.TemporaryDirectory(prefix="sb") as folder:
            planted, path = Planted(), Path(folder) / "s"
            planted.socket = LauncherSocket(path, planted, planted)
            await planted.socket.open()
            try:
                await story(planted, path)
            finally:
                await planted.socket.close()

    asyncio.run(run())


async def eventually(found):
    for _ in range(20_000):
        if found():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came true")


def knock(path):
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(str(path))
    return stream


def open_files():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_a_user_has_a_burst_and_then_a_rate():
    pace = LineRate()
    assert [pace.pause_s(1, 50.0) for _ in range(int(BURST))] == [0.0] * int(BURST)
    assert pace.pause_s(1, 50.0) == pytest.approx(1 / LINES_S)
    assert pace.pause_s(2, 50.0) == 0.0
    assert pace.pause_s(1, 1000.0) == 0.0


def test_a_flood_of_one_user_is_slowed_down(monkeypatch):
    monkeypatch.setattr("bridge.agent.launchers.LINES_S", 1e-3)
    monkeypatch.setattr("bridge.agent.launchers.BURST", 5.0)

    async def story(planted, path):
        with knock(path) as stream:
            stream.sendall(b"{}\n" * 100)
            await eventually(lambda: len(planted.lines) >= 5)
            await asyncio.sleep(0.05)
            assert len(planted.lines) == 5

    play(story)


def test_the_end_of_a_launcher_that_said_something_is_told_once():
    async def story(planted, path):
        with knock(path) as silent, knock(path) as stream:
            stream.sendall(b"{}\n")
            await eventually(lambda: planted.lines)
            silent.close()
        await eventually(lambda: planted.gone)
        await asyncio.sleep(0.02)
        assert planted.gone == [planted.lines[0][0]]

    play(story)


def test_a_launcher_that_reads_nothing_leaves_nothing_behind():
    async def story(planted, path):
        planted.answer = json.dumps("x" * (MAX_LINE - 100))
        before, streams = open_files(), []
        for _ in range(5):
            stream = knock(path)
            streams.append(stream)
            stream.sendall(b"{}\n" * 10)
        await eventually(lambda: len(planted.lines) == 50)
        for stream in streams:  # too long a line ends it, and what it was told is still unread
            stream.setblocking(False)
            await asyncio.get_running_loop().sock_sendall(stream, b"x" * 3 * MAX_LINE)
        await eventually(lambda: len(planted.gone) == 5)
        await eventually(lambda: open_files() <= before + len(streams))
        for stream in streams:
            stream.close()

    play(story)


def test_connections_that_fail_at_once_do_not_count_against_the_limit():
    async def story(planted, path):
        planted.fails = True
        for _ in range(10):
            with knock(path) as stream:
                stream.settimeout(0)
                await eventually(lambda stream=stream: _ended(stream))
        planted.fails = False
        streams = [knock(path) for _ in range(MAX_OF_USER + 1)]
        streams[-1].setblocking(False)
        answer = await asyncio.get_running_loop().sock_recv(streams[-1], 4096)
        assert b"launchers of this user" in answer
        for stream in streams:
            stream.close()

    play(story)


def _ended(stream):
    try:
        return stream.recv(1) == b""
    except BlockingIOError:
        return False


def test_those_who_are_refused_cannot_take_all_descriptors(monkeypatch):
    monkeypatch.setattr("bridge.agent.launchers.MAX", 3)

    async def story(planted, path):
        planted.job_of_family = lambda pid, uid: None
        streams = [await asyncio.open_unix_connection(str(path)) for _ in range(20)]
        said = await asyncio.gather(*(reader.read() for reader, _ in streams))
        for _, writer in streams:
            writer.close()
        assert sum(b"belongs to no job" in text for text in said) == 3
        assert planted.socket._refused == 0

    play(story)
