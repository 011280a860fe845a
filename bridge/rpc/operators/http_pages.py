# SPDX-License-Identifier: Apache-2.0
"""HTTP for pages of the operators' process, whose callers come over TCP and are not authenticated.

Every connection gets one answer within `PATIENCE_S`; heads are bounded. If there are too many
connections, the oldest that the page has not admitted is closed for the next.
"""

import asyncio
import contextlib
import json
import logging
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus

import h11

_log = logging.getLogger(__name__)

PATIENCE_S = 10.0
MAX_HEAD = 16 << 10
"""Bytes of a request's first line and fields."""


@dataclass(frozen=True)
class Reply:
    """An answer; `fields` are added to those that every answer has."""

    status: HTTPStatus
    body: bytes = b""
    content_type: str = "application/json"
    fields: tuple[tuple[str, str], ...] = ()


class HttpRefusal(Exception):
    """A request is answered with a problem (RFC 9457)."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail

    def reply(self) -> Reply:
        problem = {"type": "about:blank", "title": self.status.phrase, "status": self.status.value}
        body = json.dumps({**problem, "detail": self.detail}).encode()
        return Reply(self.status, body, "application/problem+json")


class Exchange:
    """A connection on which one request comes and one answer goes."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        admit: Callable[[], None],
    ) -> None:
        """Prepares it; nothing is read yet.

        Args:
            admit: keeps the connection even if there are too many.
        """
        self._reader, self._writer = reader, writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self._fields: list[tuple[bytes, bytes]] = []
        self.admit = admit
        self.method = self.path = ""

    async def read_head(self) -> None:
        """Reads method, path without query, and fields.

        Raises:
            HttpRefusal: it is no request of HTTP.
            EOFError: the caller went away.
        """
        head = await self._next_event()
        if not isinstance(head, h11.Request):
            raise EOFError
        self.method = head.method.decode("ascii")
        self.path = head.target.split(b"?")[0].decode("ascii")
        self._fields = list(head.headers)

    def field(self, name: str) -> str:
        """A field of the head by its name in lower case; empty if there is none.

        Raises:
            HttpRefusal: it is there twice.
        """
        found = [value for key, value in self._fields if key == name.encode()]
        if len(found) > 1:
            raise HttpRefusal(HTTPStatus.BAD_REQUEST, f"has the field {name} twice")
        return found[0].decode("latin-1") if found else ""

    async def read_body(self, max_bytes: int) -> bytes:
        """Reads what follows the head.

        Raises:
            HttpRefusal: it is longer, or its length is not stated.
            EOFError: the caller went away.
        """
        stated = self.field("content-length")
        if not stated or self.field("transfer-encoding"):
            raise HttpRefusal(HTTPStatus.LENGTH_REQUIRED, "send Content-Length, not chunks")
        if int(stated) > max_bytes:
            detail = f"a body has at most {max_bytes} bytes"
            raise HttpRefusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)
        body = bytearray()
        while isinstance(part := await self._next_event(), h11.Data):
            body += part.data
        if not isinstance(part, h11.EndOfMessage):
            raise EOFError
        return bytes(body)

    async def send(self, reply: Reply) -> None:
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        fields = [("Content-Type", reply.content_type), *reply.fields, ("Connection", "close")]
        if reply.status != HTTPStatus.NO_CONTENT:
            fields.append(("Content-Length", str(len(reply.body))))
        events: list[h11.Event] = [
            h11.Response(
                status_code=reply.status.value, headers=fields, reason=reply.status.phrase.encode()
            )
        ]
        if self.method != "HEAD":
            events.append(h11.Data(data=reply.body))
        for event in (*events, h11.EndOfMessage()):
            self._writer.write(self._http.send(event) or b"")
        await self._writer.drain()
        # The caller closes first: to close while he still sends could discard the answer.
        self._writer.write_eof()
        while await self._reader.read(MAX_HEAD):
            pass

    async def _next_event(self) -> h11.Event | type[h11.PAUSED]:
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                if self._http.they_are_waiting_for_100_continue:
                    go_on = h11.InformationalResponse(status_code=100, headers=[])
                    self._writer.write(self._http.send(go_on) or b"")
                self._http.receive_data(await self._reader.read(MAX_HEAD))
        except h11.RemoteProtocolError as error:
            raise HttpRefusal(HTTPStatus(error.error_status_hint), str(error)) from None
        return event  # type: ignore[return-value]


class HttpPages:
    """Answers requests, each on a connection of its own."""

    def __init__(self, answer: Callable[[Exchange], Awaitable[Reply]], max_open: int) -> None:
        """Prepares it.

        Args:
            answer: to one request; may raise HttpRefusal.
            max_open: connections at a time, without those that were admitted.
        """
        self._answer = answer
        self._max_open = max_open
        self._strangers: dict[asyncio.Task[None], None] = {}

    async def serve(self, listener: socket.socket) -> asyncio.Server:
        """Starts to answer at a listening socket."""
        return await asyncio.start_server(self._come, sock=listener, limit=MAX_HEAD)

    async def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._strangers) >= self._max_open:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.cancel()
        self._strangers[task] = None
        exchange = Exchange(reader, writer, lambda: self._strangers.pop(task, None))
        try:
            async with asyncio.timeout(PATIENCE_S):
                await exchange.send(await self._reply(exchange))
        except (TimeoutError, asyncio.CancelledError, EOFError, OSError):
            pass
        finally:
            self._strangers.pop(task, None)
            with contextlib.suppress(Exception):
                writer.transport.abort() if writer.transport.get_write_buffer_size() else (
                    writer.close()
                )

    async def _reply(self, exchange: Exchange) -> Reply:
        try:
            await exchange.read_head()
            return await self._answer(exchange)
        except HttpRefusal as refusal:
            return refusal.reply()
        except (EOFError, OSError, TimeoutError, asyncio.CancelledError):
            raise
        except Exception:  # a bug here must not end the pages
            _log.exception("a request of HTTP could not be answered")
            return HttpRefusal(HTTPStatus.INTERNAL_SERVER_ERROR, "see the service's log").reply()
