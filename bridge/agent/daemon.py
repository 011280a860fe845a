# SPDX-License-Identifier: Apache-2.0
"""The agent: a stream to the service, a socket for launchers, counts and times of processes.

Rules
    1. Without the service nothing is reported: connections of launchers are closed, and launchers
       attach again. The agent retries without end, with growing pauses.
    2. Time in MPI is read every `MPI_S` and sent for jobs whose processes are measured; for other
       jobs an estimate is sent.
    3. A launcher, job or order that causes an error is logged and stops no other.
    4. Use is read every `READ_S` (`bridge.agent.use`), extensions add what they measure, and it is
       sent, several readings at once, to a service that accepts them. While an earlier message is
       still unsent, no reading is made.
    5. Extensions do their part by themselves, also without the service (`node_services.py`).
"""

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path

import grpc

from bridge import files
from bridge.agent.counts import AgentCounts
from bridge.agent.cpu_times import CpuTimes
from bridge.agent.job_folders import JobFolders
from bridge.agent.launchers import LauncherSocket, user_name
from bridge.agent.node_services import NodeServices
from bridge.agent.pages import MpiUse, Pages
from bridge.agent.privileges import check_secret
from bridge.agent.processes import Processes
from bridge.agent.progress import ProgressFiles
from bridge.agent.settings import AgentSettings
from bridge.agent.use.batches import Batches
from bridge.agent.use.meter import READ_S, AgentMeter
from bridge.errors import ConfigError
from bridge.rpc.pb import agent_pb2 as pb
from bridge.rpc.pb import agent_pb2_grpc

_log = logging.getLogger(__name__)

VERSION = 1
MPI_S = 5.0
MIN_PAUSE_S, MAX_PAUSE_S = 0.2, 15.0
MAX_REPORTS = 1000
"""Reports that wait for the service; each has at most a line of 64 KiB."""
_MESSAGE_BYTES = 256 << 10


class Agent:
    def __init__(self, settings: AgentSettings) -> None:
        """Prepares one.

        Raises:
            ConfigError: a file cannot be read.
        """
        self._settings = settings
        folders = JobFolders(settings.job_folders)
        self._processes = Processes(folders=folders)
        self._launchers = LauncherSocket(settings.socket, self, self._processes)
        self._pages = Pages(self._processes, folders)
        self._cpu = CpuTimes(self._processes)
        self._reports: asyncio.Queue[pb.AgentReport] | None = None
        self._counts = AgentCounts(self._processes, settings.nodes, self._send)
        reported = ProgressFiles(self._processes, folders)
        self._meter = AgentMeter(
            settings.nodes,
            self._processes,
            settings.cgroups,
            cpus=settings.cpus,
            progress=reported.read,
        )
        self._takes_use = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._extensions = NodeServices(settings, self._processes, self._send_from_thread)
        self._batches = Batches(self._extensions.differs)
        self._credentials = _credentials(settings)

    # ------------------------------------------------------------ launchers

    def launcher_said(self, connection: int, uid: int, job: str, line: str) -> bool:
        message = pb.FromLauncher(
            connection=connection, user=user_name(uid), uid=str(uid), job=job, line=line
        )
        return self._send(pb.AgentReport(launcher=message))

    def launcher_gone(self, connection: int) -> None:
        """Tells the service."""
        if self._reports is not None:  # never dropped: there are no more of them than of lines
            self._reports.put_nowait(pb.AgentReport(gone=pb.LauncherGone(connection=connection)))

    def _send_from_thread(self, report: pb.AgentReport) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the agent stops
                self._loop.call_soon_threadsafe(self._send, report)

    def _send(self, report: pb.AgentReport) -> bool:
        if self._reports is None or self._reports.qsize() >= MAX_REPORTS:
            return False
        self._reports.put_nowait(report)
        return True

    # ------------------------------------------------------------ the service

    async def run(self) -> None:
        """Serves until SIGTERM or SIGINT.

        Raises:
            ConfigError: the socket for launchers cannot be opened.
        """
        stop = asyncio.Event()
        self._loop = loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        await self._launchers.open()
        self._extensions.start()
        tasks = [asyncio.create_task(self._attend_for_ever())]
        tasks.append(asyncio.create_task(self._read_times()))
        tasks.append(asyncio.create_task(self._read_use()))
        try:
            await stop.wait()
        finally:
            for task in tasks:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            await asyncio.to_thread(self._extensions.stop)
            await self._launchers.close()

    async def _attend_for_ever(self) -> None:
        pause_s, last = MIN_PAUSE_S, ""
        while True:
            began = asyncio.get_running_loop().time()
            try:
                await self._attend()
                why = "the service has ended the stream"
            except grpc.aio.AioRpcError as error:
                why = f"{error.code().name}: {error.details()}"
            except Exception as error:
                _log.exception("the stream to the service failed")
                why = str(error)
            self._reports, self._takes_use = None, False
            self._launchers.drop_all()
            if why != last:
                _log.warning("no stream to the service at %s: %s", self._settings.service, why)
                last = why
            if asyncio.get_running_loop().time() - began > MAX_PAUSE_S:
                pause_s, last = MIN_PAUSE_S, ""
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, MAX_PAUSE_S)

    async def _attend(self) -> None:
        settings = self._settings
        options: list[tuple[str, int | str]] = [
            ("grpc.max_receive_message_length", _MESSAGE_BYTES),
            ("grpc.keepalive_time_ms", 20_000),
            ("grpc.keepalive_timeout_ms", 20_000),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.http2.bdp_probe", 0),  # a ping for each message, to and fro
            ("grpc.initial_reconnect_backoff_ms", 200),
            ("grpc.max_reconnect_backoff_ms", 2000),
        ]
        if settings.name:
            options.append(("grpc.ssl_target_name_override", settings.name))
        async with grpc.aio.secure_channel(
            settings.service, self._credentials, options=options
        ) as channel:
            reports: asyncio.Queue[pb.AgentReport] = asyncio.Queue()
            hello = pb.AgentHello(version=VERSION, nodes=settings.nodes, **self._extensions.hello)
            reports.put_nowait(pb.AgentReport(hello=hello))
            stream = agent_pb2_grpc.AgentsStub(channel).Attend(_drain(reports))
            async for order in stream:
                if order.HasField("welcome"):
                    self._reports, self._takes_use = reports, order.welcome.takes_use
                    self._extensions.connected()
                    _log.info("connected to the service at %s", settings.service)
                self._take(order)

    def _take(self, order: pb.AgentOrder) -> None:
        match order.WhichOneof("order"):
            case "launcher":
                self._launchers.tell(order.launcher.connection, order.launcher.line)
            case "count":
                self._counts.requested(order.count)
            case _:
                self._extensions.take(order)

    async def _read_use(self) -> None:
        """Reads use and reports it (rule 4)."""
        while True:
            await asyncio.sleep(READ_S)
            if not self._takes_use or self._reports is None:
                self._batches.forget()
                continue
            if not self._reports.empty():
                continue
            try:
                use = await asyncio.to_thread(self._meter.read)
                await asyncio.to_thread(self._extensions.measure, use)
            except Exception:
                _log.exception("use cannot be read")
                continue
            message = self._batches.add(use, time.monotonic())
            if message is not None:
                self._send(pb.AgentReport(uses=message))

    async def _read_times(self) -> None:
        """Reads times in MPI and reports them (rule 2)."""
        while True:
            await asyncio.sleep(MPI_S)
            try:
                found = await asyncio.to_thread(self._pages.read, time.monotonic_ns())
                guessed = await asyncio.to_thread(self._cpu.read, time.monotonic_ns())
            except Exception:
                _log.exception("the times in MPI cannot be read")
                continue
            for report in mpi_reports(found, guessed, self._settings.nodes):
                self._send(report)


def mpi_reports(
    found: Mapping[tuple[str, str], MpiUse],
    guessed: Mapping[tuple[str, str], MpiUse],
    nodes: Sequence[str],
) -> Iterator[pb.AgentReport]:
    """The report of one reading.

    Args:
        guessed: likewise, by CPU time; reported for jobs without a measurement.
        nodes: for which the agent reports; a process whose node is unknown counts for the first.
    """
    measured = {job for job, _ in found}
    others = {key: use for key, use in guessed.items() if key[0] not in measured}
    for (job, node), use in (*found.items(), *others.items()):
        here = node or nodes[0]
        if use.wall_s and here in nodes:
            yield pb.AgentReport(
                mpi=pb.MpiTime(
                    job=job,
                    node=here,
                    mpi_s=use.mpi_s,
                    wall_s=use.wall_s,
                    processes=use.processes,
                    estimated=job not in measured,
                )
            )


async def _drain(reports: "asyncio.Queue[pb.AgentReport]") -> AsyncIterator[pb.AgentReport]:
    while True:
        yield await reports.get()


def _credentials(settings: AgentSettings) -> grpc.ChannelCredentials:
    check_secret(settings.key, "--key")
    found: list[bytes] = []
    for option in ("ca", "cert", "key"):
        path: Path = getattr(settings, option)
        try:
            found.append(files.read_bytes(path))
        except OSError as error:
            problem = f"cannot read {path}: {error.strerror or error}"
            raise ConfigError(f"--{option}", problem) from error
    ca, cert, key = found
    return grpc.ssl_channel_credentials(ca, key, cert)


def serve(settings: AgentSettings) -> None:
    """Runs an agent until it is told to end.

    Raises:
        ConfigError: a file cannot be read, or the socket cannot be opened.
    """
    agent = Agent(settings)
    asyncio.run(agent.run())


def check_nodes(nodes: Sequence[str]) -> tuple[str, ...]:
    """Node names from the command line.

    Raises:
        ConfigError: one of them is not a name.
    """
    for node in nodes:
        if not node or not node.isprintable() or len(node) > 253 or set(node) & set(" /[],"):
            raise ConfigError("--node", f"'{node[:80]}' is not the name of a node")
    return tuple(dict.fromkeys(nodes))
