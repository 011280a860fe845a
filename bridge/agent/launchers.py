# SPDX-License-Identifier: Apache-2.0
"""The socket at which launchers of this node's jobs attach.

Rules
    1. The kernel tells which user and which process is at the other end. The process must belong to
       a job of this user (`bridge.agent.processes`); its launcher is accepted for that job only.
    2. A user has at most `MAX_OF_USER` connections, all users together `MAX`. As many further
       callers can at the same time be told that they are refused.
    3. Of a user's lines, `BURST` at once and `LINES_S` per second are read. A user who sends more
       waits, and delays no other user.
    4. A line that is too long, or the end of the stream, ends the connection.
    5. Lines are passed to the service unchanged: it reads and answers them.
"""

import asyncio
import contextlib
import itertools
import logging
import math
import os
import pwd
import socket
import struct
from collections import Counter
from pathlib import Path
from typing import Protocol

from bridge.agent.processes import Processes
from bridge.errors import ConfigError
from bridge.extensions.elastic.lines import MAX_LINE, Error, encode

_log = logging.getLogger(__name__)

MAX_OF_USER, MAX = 64, 256
ATTACH_S, REFUSED_S = 10.0, 1.0
"""Time for the first line, also of a refused caller."""
LINES_S, BURST = 20.0, 100.0
_CREDENTIALS = struct.Struct("3i")


class ServiceLink(Protocol):
    def launcher_said(self, connection: int, uid: int, job: str, line: str) -> bool:
        """Passes a line on; False: the service cannot be reached."""

    def launcher_gone(self, connection: int) -> None:
        """A connection has ended."""


class LineRate:
    """Limits the rate at which users' lines are read."""

    def __init__(self) -> None:
        self._paid_s: dict[int, float] = {}

    def pause_s(self, uid: int, now_s: float) -> float:
        """How long a user's next line waits, s; counts it."""
        paid_s = max(self._paid_s.get(uid, -math.inf), now_s - BURST / LINES_S) + 1 / LINES_S
        self._paid_s[uid] = paid_s
        return max(paid_s - now_s, 0.0)


class LauncherSocket:
    def __init__(self, path: Path, service: ServiceLink, processes: Processes) -> None:
        self._path = path
        self._service = service
        self._processes = processes
        self._writers: dict[int, asyncio.StreamWriter] = {}
        self._of_user: Counter[int] = Counter()
        self._spoke: set[int] = set()
        self._refused = 0
        self._pace = LineRate()
        self._numbers = itertools.count(1)
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Begins to listen; every user may connect.

        Raises:
            ConfigError: listening failed.
        """
        try:
            if self._path.is_socket():
                self._path.unlink()
            self._server = await asyncio.start_unix_server(
                self._serve, str(self._path), limit=MAX_LINE
            )
            self._path.chmod(0o666)
        except OSError as error:
            problem = f"cannot listen at {self._path}: {error.strerror or error}"
            raise ConfigError("--socket", problem) from error

    async def close(self) -> None:
        """Ends all connections."""
        if self._server is not None:
            self._server.close()
        self.drop_all()
        with contextlib.suppress(OSError):
            self._path.unlink()

    def drop_all(self) -> None:
        """Ends all connections: their launchers attach again when the service is back."""
        for writer in list(self._writers.values()):
            writer.transport.abort()  # a launcher that does not read would keep it open

    def tell(self, connection: int, line: str) -> None:
        """Sends a line to a launcher, if it is still connected."""
        writer = self._writers.get(connection)
        if writer is None:
            return
        if writer.transport.get_write_buffer_size() > 16 * MAX_LINE:
            writer.transport.abort()  # it does not read
            return
        writer.write(line.encode() + b"\n")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = next(self._numbers)
        uid = -1
        try:
            peer: socket.socket = writer.get_extra_info("socket")
            raw = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            pid, uid, _ = _CREDENTIALS.unpack(raw)
            problem = self._unwelcome(uid)
            job = self._processes.job_of_family(pid, uid)
            if not problem and job is None:
                problem = "this process belongs to no job: run it in a batch script"
            if problem or job is None:
                await self._refuse(problem, reader, writer)
                return
            self._of_user[uid] += 1
            self._writers[number] = writer
            await self._pass_on(reader, number, uid, job[0])
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
            pass  # it left, sent nothing, or too long a line
        except Exception:
            _log.exception("a launcher's connection failed")
        finally:
            if self._writers.pop(number, None) is not None:
                self._of_user[uid] -= 1
            if number in self._spoke:
                self._spoke.remove(number)
                self._service.launcher_gone(number)
            if writer.transport.get_write_buffer_size():
                writer.transport.abort()  # it does not read: its unsent data would stay forever
            writer.close()

    async def _refuse(
        self, problem: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if self._refused >= MAX:
            return  # not logged: any user can connect any number of times
        writer.write(encode(Error(problem)))
        self._refused += 1
        try:
            # Read its first data: closing with unread data may discard the answer.
            await asyncio.wait_for(reader.readline(), REFUSED_S)
        finally:
            self._refused -= 1

    def _unwelcome(self, uid: int) -> str:
        if len(self._writers) >= MAX:
            return f"{MAX} launchers are attached on this node already"
        if self._of_user[uid] >= MAX_OF_USER:
            return f"{MAX_OF_USER} launchers of this user are attached on this node already"
        return ""

    async def _pass_on(self, reader: asyncio.StreamReader, number: int, uid: int, job: str) -> None:
        loop = asyncio.get_running_loop()
        line = await asyncio.wait_for(reader.readline(), ATTACH_S)
        while line.endswith(b"\n"):
            if pause_s := self._pace.pause_s(uid, loop.time()):
                await asyncio.sleep(pause_s)
            text = line.rstrip(b"\r\n").decode(errors="replace")
            if not self._service.launcher_said(number, uid, job, text):
                self.tell(number, encode(Error("the service cannot be reached")).decode().rstrip())
                return
            self._spoke.add(number)
            line = await reader.readline()


def user_name(uid: int) -> str:
    """The name of a user; the number where there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def own_host() -> str:
    """This machine's name without its domain."""
    return os.uname().nodename.partition(".")[0]
