# SPDX-License-Identifier: Apache-2.0
"""Serves the streams of the agents: one event loop in one thread, whatever their number."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator

import grpc

from bridge.errors import ConfigError
from bridge.extensions.service_port import RENEW_S
from bridge.rpc.agents.hub import Hub
from bridge.rpc.agents.speakers import Speakers
from bridge.rpc.pb import agent_pb2 as pb
from bridge.rpc.pb import agent_pb2_grpc
from bridge.rpc.reported.safe_text import printable

_log = logging.getLogger(__name__)

VERSION = 1
MAX_NODES = 5000
"""Maximum number of nodes of one agent."""
MAX_ORDERS = 10_000
"""Maximum number of unsent orders to one agent; an agent that reads none is dropped."""
HELLO_S = 10.0
_MESSAGE_BYTES = 256 << 10


class Agents(agent_pb2_grpc.AgentsServicer):  # type: ignore[misc]
    def __init__(self, hub: Hub, speakers: Speakers) -> None:
        self._hub, self._speakers = hub, speakers

    async def Attend(  # noqa: N802
        self,
        reports: AsyncIterator[pb.AgentReport],
        context: "grpc.aio.ServicerContext[pb.AgentReport, pb.AgentOrder]",
    ) -> AsyncIterator[pb.AgentOrder]:
        """One agent, from its hello to the end of its stream."""
        hello = await self._hello(reports, context)
        loop = asyncio.get_running_loop()
        orders: asyncio.Queue[pb.AgentOrder | None] = asyncio.Queue()

        def put(order: pb.AgentOrder | None) -> None:
            if orders.qsize() >= MAX_ORDERS:
                order = None  # ends the stream; the agent opens another one
            orders.put_nowait(order)

        def send(order: pb.AgentOrder) -> None:
            with contextlib.suppress(RuntimeError):  # the service stops
                loop.call_soon_threadsafe(put, order)

        orders.put_nowait(pb.AgentOrder(welcome=pb.Welcome(takes_use=True)))
        agent = self._hub.arrived(
            [printable(node) for node in hello.nodes], send, takes_shares=hello.takes_shares
        )
        names = ", ".join(agent.nodes[:3])
        _log.info("the agent of %s is connected", names)
        reading = asyncio.create_task(self._read(reports, agent, put))
        try:
            while (order := await orders.get()) is not None:
                yield order
        finally:
            reading.cancel()
            self._hub.left(agent)
            _log.info("the agent of %s is disconnected", names)

    async def _hello(
        self,
        reports: AsyncIterator[pb.AgentReport],
        context: "grpc.aio.ServicerContext[pb.AgentReport, pb.AgentOrder]",
    ) -> pb.AgentHello:
        try:
            first = await asyncio.wait_for(anext(reports), HELLO_S)
        except (TimeoutError, StopAsyncIteration):
            first = pb.AgentReport()
        hello = first.hello
        if first.WhichOneof("report") != "hello":
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "send the hello first")
        if hello.version != VERSION:
            text = f"version {hello.version} is not supported; this service has {VERSION}"
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, text)
        if not 0 < len(hello.nodes) <= MAX_NODES:
            text = f"an agent serves 1 to {MAX_NODES} nodes, not {len(hello.nodes)}"
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, text)
        other = self._speakers.refused(context.peer(), map(printable, hello.nodes))
        if other:
            text = f"this certificate does not name node {other[:100]}"
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, text)
        return hello

    async def _read(self, reports, agent, put) -> None:  # type: ignore[no-untyped-def]
        try:
            async for report in reports:
                self._hub.report(agent, report)
        except asyncio.CancelledError:
            raise
        except Exception:
            _log.exception("a report of the agent of %s failed", agent.nodes[0])
        put(None)


class AgentServer:
    """The server behind the agents' gate."""

    def __init__(self, hub: Hub, speakers: Speakers | None = None) -> None:
        """Prepares one; without `speakers` every agent may report for any node."""
        self._hub, self._speakers = hub, speakers or Speakers()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="agents", daemon=True)
        self._started = threading.Event()
        self._problem: Exception | None = None
        self._stop = asyncio.Event()
        self._socket = ""

    def start(self, socket: str) -> None:
        """Begins to serve at a private Unix socket.

        Raises:
            ConfigError: listening failed.
        """
        self._socket = socket
        self._thread.start()
        self._started.wait()
        if self._problem is not None:
            raise ConfigError("agents", f"cannot listen at {socket}") from self._problem

    def stop(self) -> None:
        """Ends all streams."""
        if self._thread.is_alive():
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(timeout=5)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._started.set()
            self._loop.close()

    async def _serve(self) -> None:
        options = [
            ("grpc.max_receive_message_length", _MESSAGE_BYTES),
            ("grpc.so_reuseport", 0),
            ("grpc.http2.bdp_probe", 0),  # a ping for each message in either direction
            ("grpc.keepalive_time_ms", 20_000),
            ("grpc.keepalive_timeout_ms", 20_000),
            # Agents ping as often; by default gRPC treats a third ping within five minutes as
            # abuse.
            ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
            ("grpc.http2.max_ping_strikes", 0),
        ]
        server = grpc.aio.server(options=options)
        agent_pb2_grpc.add_AgentsServicer_to_server(Agents(self._hub, self._speakers), server)
        try:
            server.add_insecure_port(f"unix:{self._socket}")
            await server.start()
        except Exception as error:
            self._problem = error
            return
        self._started.set()
        renewing = asyncio.create_task(self._renew())
        await self._stop.wait()
        renewing.cancel()
        await server.stop(0.5)

    async def _renew(self) -> None:
        """Has extensions repeat their orders, for as long as this loop runs."""
        while True:
            await asyncio.sleep(RENEW_S)
            self._hub.extensions.renew()
