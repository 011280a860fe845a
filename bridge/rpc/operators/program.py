# SPDX-License-Identifier: Apache-2.0
"""The program of the operators' process: gate, server, metrics page, and the private channel.

It exits at once when the service's process closes the channel or ends; it has nothing to save. It
ignores signals, which are for the service's process.
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bridge.model.learnt import MAX_TEXT_BYTES
from bridge.rpc.operators.extension_methods import PageChange, methods
from bridge.rpc.operators.metrics_page import metrics_page
from bridge.rpc.operators.requester import Requester, change_parts
from bridge.rpc.operators.server import OperatorService, serve
from bridge.rpc.operators.view import View
from bridge.rpc.transport.callers import Peers
from bridge.rpc.transport.descriptors import affordable, raise_descriptor_limit
from bridge.rpc.transport.gate import ConnectionLimits, Gate
from bridge.rpc.transport.introductions import Introductions
from bridge.rpc.transport.private_channel import Asker, Channel, MessageKind
from bridge.rpc.transport.relay import ByteAllowance
from bridge.service.logs import start_logging

_log = logging.getLogger(__name__)

NICE = 5
"""Nice value of this process."""
ALIVE_S = 5.0
"""Interval of its signs of life."""

_KEPT_DESCRIPTORS = 34
"""Threads for the server, the channel, the log, and readers of metrics."""
_MAX_CONNECTIONS = 4096
_METRICS_S = 1.0
_USER_QUESTION = 64 << 10
_ADMIN_QUESTION = MAX_TEXT_BYTES + _USER_QUESTION
_AGE_S = 600.0


def main() -> None:
    """Serves operators until the service's process ends."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    settings = json.loads(sys.argv[1])
    start_logging(settings["log_level"], settings["log_format"])
    settings["descriptors"] = raise_descriptor_limit()
    channel = Channel(socket.socket(fileno=settings["channel"]))
    asker = Asker(channel, gone=lambda: os._exit(0))
    lower_priority()
    asyncio.run(_serve(settings, asker))


def lower_priority() -> None:
    """Lowers the priority of this process; threads started later inherit it."""
    with contextlib.suppress(OSError):  # optional: may be forbidden
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    with contextlib.suppress(OSError):
        os.nice(NICE)


async def _serve(settings: dict[str, Any], asker: Asker) -> None:
    users = Introductions[int](Path(settings["private"]))
    admins = frozenset(settings["admins"])
    service = OperatorService(asker, who=users.caller, admins=admins)
    reader, admin = (f"{settings['private']}/{name}{os.getpid()}" for name in ("r", "a"))
    servers = await serve(service, {reader: _USER_QUESTION, admin: _ADMIN_QUESTION})

    def allowance(uid: int) -> ByteAllowance:
        """Requests are short: a longer message is refused."""
        if uid in admins:
            return ByteAllowance(rate=4 << 20, burst=16 << 20)
        return ByteAllowance(rate=32 << 10, burst=512 << 10)

    policy = Peers(
        lambda uid: admin if uid in admins else reader, introductions=users, allowance=allowance
    )
    gate = Gate(
        socket.socket(fileno=settings["operators"]),
        "operator.socket",
        policy,
        bounds=ConnectionLimits(
            per_owner=settings["per_user"],
            total=affordable(_MAX_CONNECTIONS, _KEPT_DESCRIPTORS),
            stall_s=30.0,
            age_s=_AGE_S,
        ),
        refused=_Refusals(asker).add,
    )
    if settings["metrics"] is not None:
        listener = socket.socket(fileno=settings["metrics"])
        listener.setblocking(False)
        readers = max(2, min(32, settings["descriptors"] // 8))
        servers.append(await metrics_page(_cached(asker), readers).serve(listener))
    for name, (number, given) in settings["pages"].items():
        listener = socket.socket(fileno=number)
        listener.setblocking(False)
        try:
            page = methods()[name].page(given, _changing(name, asker, service))
            servers.append(await page.serve(listener))
        except Exception:  # a stranger's code; operators are served
            _log.exception("the page of the extension %s is not served", name)
    gate.start()
    asker.tell(MessageKind.READY)
    while True:
        await asyncio.sleep(ALIVE_S)
        asker.tell(MessageKind.ALIVE)


def _changing(extension: str, asker: Asker, service: OperatorService) -> PageChange:
    """Passes changes by callers of an extension's page to the service's process, and logs them."""

    async def change(
        program: str, method: str, question: bytes, before: Callable[[View], str], text: str
    ) -> bytes:
        author = Requester(-1, program, admin=False)

        async def in_force() -> str:
            return before((await service.views.current()).view)

        known = await service.changes.known(in_force)
        parts = change_parts(extension, method, question, author)
        work = asker.answer(MessageKind.EXTENSION, parts)
        answer = await service.changes.log(method, author, known, text, work)
        service.views.expire()
        return bytes(answer[0])

    return change


def _cached(asker: Asker) -> Any:
    """The metrics, requested at most once a second."""
    known: list[tuple[float, asyncio.Task[bytes]]] = []

    async def fetch() -> bytes:
        parts = await asker.answer(MessageKind.METRICS)
        return bytes(parts[0])

    async def page() -> bytes:
        now = time.monotonic()
        if not known or now - known[0][0] > _METRICS_S:
            known[:] = [(now, asyncio.create_task(fetch()))]
        return await asyncio.shield(known[0][1])

    return page


class _Refusals:
    """Passes on the gate's counts, at most once a second."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, str], int] = {}
        self._due = False

    def add(self, key: str, reason: str) -> None:
        with self._lock:
            self._counts[key, reason] = self._counts.get((key, reason), 0) + 1
            if self._due:
                return
            self._due = True
        timer = threading.Timer(1.0, self._tell)
        timer.daemon = True
        timer.start()

    def _tell(self) -> None:
        with self._lock:
            counts, self._counts, self._due = self._counts, {}, False
        for (key, reason), count in counts.items():
            self._asker.tell(
                MessageKind.REFUSED, [key.encode(), reason.encode(), str(count).encode()]
            )
