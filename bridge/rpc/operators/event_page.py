# SPDX-License-Identifier: Apache-2.0
"""Takes events of demand response over HTTP, in the operators' process.

| request | answer |
|---|---|
| POST /events | 201: its bounds are in force from the next cycle on; `Location` names it |
| PUT /events/ID | 200: the bounds of that event are replaced |
| DELETE /events/ID | 204: its bounds are withdrawn |

Rules
    1. Every request needs the token of the file (`Authorization: Bearer TOKEN`), which is read
       again when it changes. Without a valid file, every request is refused.
    2. A caller gets one answer within `PATIENCE_S`; heads, bodies and connections are bounded. An
       error is reported as a problem (RFC 9457), changes nothing and affects no other caller. If
       `MAX_OPEN` have not sent the token, the oldest of them is sent away for the next; a caller
       with the token never is.
    3. The id of an event follows from its contents, so a repeated event changes nothing.
"""

import asyncio
import contextlib
import hashlib
import hmac
import json
import logging
import os
import re
import socket
import stat
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Final, NoReturn

from bridge import files
from bridge.errors import ConfigError
from bridge.power.entry_log import Wish
from bridge.power.open_adr import read_event
from bridge.rpc.transport.private_channel import RemoteRefusal

_log = logging.getLogger(__name__)

PATIENCE_S = 10.0
MAX_BODY, MAX_HEAD, MAX_OPEN = 64 << 10, 16 << 10, 32
MIN_TOKEN = 16
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_EVENTS: Final = "/events"

Carry = Callable[[str, str, Sequence[Wish]], Awaitable[int]]
"""An event's id, its name and its bounds (none: withdraw it) to how many entries changed."""


class _Problem(Exception):
    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


class EventPage:
    """Answers HTTP requests on events."""

    def __init__(self, carry: Carry, token_file: Path) -> None:
        """Prepares it.

        Args:
            carry: puts an event's bounds in force.
            token_file: holds the token.
        """
        self._carry = carry
        self._token_file = token_file
        self._strangers: dict[asyncio.Task[None], None] = {}

    async def serve(self, listener: socket.socket) -> asyncio.Server:
        """Starts to answer at a listening socket."""
        return await asyncio.start_server(self._come, sock=listener, limit=MAX_HEAD)

    async def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._strangers) >= MAX_OPEN:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.cancel()
        self._strangers[task] = None
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._serve_client(reader, writer)
        except (TimeoutError, asyncio.CancelledError, EOFError, OSError):
            pass
        finally:
            self._strangers.pop(task, None)
            with contextlib.suppress(Exception):
                writer.close()

    async def _serve_client(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        extra = ""
        try:
            status, body, extra = await self._answer(reader)
        except _Problem as problem:
            status, body = problem.status, _problem(problem.status, problem.detail)
        except RemoteRefusal as refusal:
            known = refusal.code in ("INVALID_ARGUMENT", "FAILED_PRECONDITION")
            status = HTTPStatus.CONFLICT if known else HTTPStatus.SERVICE_UNAVAILABLE
            body = _problem(status, refusal.text)
        except (EOFError, OSError, TimeoutError, asyncio.CancelledError):
            raise
        except Exception:  # a bug here must not end the page
            _log.exception("an event could not be answered")
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            body = _problem(status, "see the service's log")
        kind = "application/json" if status < HTTPStatus.BAD_REQUEST else "application/problem+json"
        lines = [
            f"HTTP/1.1 {status.value} {status.phrase}",
            f"Content-Type: {kind}",
            f"Content-Length: {len(body)}",
            *([extra] if extra else []),
            "Connection: close",
        ]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        await writer.drain()
        with contextlib.suppress(OSError):
            writer.write_eof()

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[HTTPStatus, bytes, str]:
        method, path, fields = await _head(reader)
        self._authorise(fields.get("authorization", ""))
        number = path.removeprefix(f"{_EVENTS}/")
        if path == _EVENTS:
            if method != "POST":
                _refuse(HTTPStatus.METHOD_NOT_ALLOWED, "POST an event here")
        elif path.startswith(f"{_EVENTS}/") and _ID.fullmatch(number):
            if method == "DELETE":
                if not await self._carry(number, "", ()):
                    _refuse(HTTPStatus.NOT_FOUND, f"there is no event '{number}' in force")
                return HTTPStatus.NO_CONTENT, b"", ""
            if method != "PUT":
                _refuse(HTTPStatus.METHOD_NOT_ALLOWED, "PUT or DELETE an event here")
        else:
            _refuse(HTTPStatus.NOT_FOUND, "there are POST /events, PUT and DELETE /events/ID")
        body = await _body(reader, fields)
        try:
            name, wishes = read_event(body)
        except ConfigError as error:
            _refuse(HTTPStatus.BAD_REQUEST, str(error))
        if method == "POST":
            number = hashlib.sha256(body).hexdigest()[:16]
        await self._carry(number, name, wishes)
        event = {"id": number, "objectType": "EVENT", **json.loads(body)} | {"id": number}
        status = HTTPStatus.CREATED if method == "POST" else HTTPStatus.OK
        return status, json.dumps(event).encode(), f"Location: {_EVENTS}/{number}"

    def _authorise(self, given: str) -> None:
        scheme, _, token = given.partition(" ")
        wanted = _token(self._token_file)
        if not wanted:
            _refuse(HTTPStatus.SERVICE_UNAVAILABLE, "no token is set up: see the service's log")
        same = hmac.compare_digest(token.strip().encode(), wanted)
        if scheme.lower() != "bearer" or not same:
            _refuse(HTTPStatus.UNAUTHORIZED, "send the token: 'Authorization: Bearer TOKEN'")
        task = asyncio.current_task()
        assert task is not None
        self._strangers.pop(task, None)


def _token(path: Path) -> bytes:
    """The token of a file; empty: there is no valid one, and the log says why."""
    try:
        found = path.stat()
        if found.st_uid not in (0, os.geteuid()) or stat.S_IMODE(found.st_mode) & 0o077:
            raise ConfigError("", "must belong to root or the service's user, mode 0600")
        token = files.read_bytes(path, 4096).strip()
        if len(token) < MIN_TOKEN:
            raise ConfigError("", f"must hold at least {MIN_TOKEN} characters")
    except (OSError, ConfigError) as error:
        _log.error("power.events: token file %s: %s", path, error)
        return b""
    return token


async def _head(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str]]:
    """Method, path and fields of a request."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        _refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"at most {MAX_HEAD} bytes")
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        _refuse(HTTPStatus.BAD_REQUEST, "is not an HTTP/1.1 request")
    fields: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            continue
        if (key := name.strip().lower()) in fields and key in ("content-length", "authorization"):
            _refuse(HTTPStatus.BAD_REQUEST, f"has the field {key} twice")
        fields[key] = value.strip()
    return words[0], words[1].split("?")[0], fields


async def _body(reader: asyncio.StreamReader, fields: dict[str, str]) -> bytes:
    if "transfer-encoding" in fields:
        _refuse(HTTPStatus.LENGTH_REQUIRED, "send Content-Length, not chunks")
    length = fields.get("content-length", "")
    if not (length.isascii() and length.isdigit()):
        _refuse(HTTPStatus.LENGTH_REQUIRED, "send Content-Length")
    if len(length) > 9 or int(length) > MAX_BODY:
        _refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"an event has at most {MAX_BODY} bytes")
    return await reader.readexactly(int(length))


def _refuse(status: HTTPStatus, detail: str) -> NoReturn:
    raise _Problem(status, detail)


def _problem(status: HTTPStatus, detail: str) -> bytes:
    problem = {"type": "about:blank", "title": status.phrase, "status": status.value}
    return json.dumps({**problem, "detail": detail}).encode()
