# SPDX-License-Identifier: Apache-2.0
"""Serves the page /metrics to everyone who can reach the address, in the operators' process.

Callers over TCP are not authenticated. So every connection gets one answer within `PATIENCE_S`, and
if there are too many, the oldest is closed.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable

_log = logging.getLogger(__name__)

PATIENCE_S = 10.0
_LONGEST = 16 << 10


class MetricsPage:
    """Answers HTTP requests for one page."""

    def __init__(self, page: Callable[[], Awaitable[bytes]], most: int) -> None:
        """Prepares it.

        Args:
            page: the metrics as text.
            most: connections at a time.
        """
        self._page = page
        self._most = most
        self._open: dict[asyncio.Task[None], None] = {}

    async def serve(self, listener: socket.socket) -> asyncio.Server:
        """Starts to answer at a listening socket."""
        return await asyncio.start_server(self._come, sock=listener, limit=_LONGEST)

    async def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._open) >= self._most:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.cancel()
        self._open[task] = None
        try:
            async with asyncio.timeout(PATIENCE_S):
                head = await reader.readuntil(b"\r\n\r\n")
                await self._answer(head, writer)
        except (TimeoutError, asyncio.CancelledError, asyncio.LimitOverrunError, EOFError, OSError):
            pass
        finally:
            self._open.pop(task, None)
            with contextlib.suppress(Exception):
                writer.transport.abort() if writer.transport.get_write_buffer_size() else (
                    writer.close()
                )

    async def _answer(self, head: bytes, writer: asyncio.StreamWriter) -> None:
        line = head.split(b"\r\n", 1)[0].split(b" ")
        method, path = [*line, b"", b""][:2]
        state, body = "200 OK", b""
        if method not in (b"GET", b"HEAD"):
            state = "405 Method Not Allowed"
        elif path.split(b"?")[0] not in (b"/", b"/metrics"):
            state = "404 Not Found"
        else:
            body = await self._page()
        lines = [
            f"HTTP/1.1 {state}",
            "Content-Type: text/plain; version=0.0.4; charset=utf-8",
            f"Content-Length: {len(body)}",
            "Connection: close",
        ]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
        if method == b"GET":
            writer.write(body)
        await writer.drain()
        # The client closes first where possible: an early close can discard data in flight.
        writer.write_eof()
