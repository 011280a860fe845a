#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost to the service of a thousand agents that report power each second.

`power_agents.py [--agents N] [--seconds S] [--jobs J] [--json FILE]`. Needs openssl.

| part | is |
|---|---|
| whole | CPU time of a service with N streams over mutual TLS, a reading a second each |
| restless | the same while each node's power jumps every other second |
| idle | the same with the streams alone |
| taking | what decoding a reading and keeping its values takes, measured alone |

Shares are of one core. The agents are simulated by separate processes, which do not count.
"""

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import grpc
import psutil
from about import ROOT, about
from results_file import as_text, write

from bridge.agent.use.batches import MAX, Batches
from bridge.extensions.power.on_nodes.node_service import differs
from bridge.rpc.agents.hub import Hub
from bridge.rpc.pb import agent_pb2 as pb
from bridge.rpc.pb import agent_pb2_grpc

PROCESSES = 2
SETTLE_S = 15.0
TAKEN = 20_000


def main() -> None:
    """The command."""
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--agents", type=int, default=1000)
    words.add_argument("--seconds", type=float, default=60.0)
    words.add_argument("--jobs", type=int, default=2, help="on each node")
    words.add_argument("--json", type=Path)
    words.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    given = words.parse_args()
    if given.child:
        port, folder, first, count = given.child
        asyncio.run(_agents(int(port), Path(folder), range(int(first), int(first) + int(count)),
                            given.jobs))  # fmt: skip
        return
    found: dict[str, object] = {"agents": given.agents, "jobs_per_node": given.jobs}
    found["seconds"] = given.seconds
    with tempfile.TemporaryDirectory(prefix="sb-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        _certificates(folder)
        found |= _serve(folder, given.agents, given.jobs, given.seconds)
    found["taking_us"] = _taking_us(given.jobs)
    found |= about()
    print(as_text(found))
    if given.json:
        write(given.json, found)


def _reading(node: str, jobs: int, watts: float) -> pb.Use:
    use = pb.Use()
    use.nodes.add(node=node, watts=watts, source="rapl", busy_cpus=40.5, cpus=64)
    for job in range(jobs):
        use.jobs.add(job=str(100_000 + job), node=node, cpus=20.25 + job, memory_mib=50_000)
    return use


async def _agents(port: int, folder: Path, numbers: range, jobs: int) -> None:
    """Streams that begin to report after one line of standard input, and jump after another."""
    credentials = grpc.ssl_channel_credentials(
        *((folder / name).read_bytes() for name in ("ca.crt", "agent.key", "agent.crt"))
    )
    begin = asyncio.Event()
    restless = 0

    async def reports(node: str, number: int):  # type: ignore[no-untyped-def]
        yield pb.AgentReport(hello=pb.AgentHello(version=1, nodes=[node]))
        await begin.wait()
        await asyncio.sleep(number % 1000 / 1000)
        batches, second, at = Batches(differs), 0, asyncio.get_running_loop().time()
        while True:
            watts = 150 + second % 13 + restless * 100 * (second % 4 // 2)
            message = batches.add(_reading(node, jobs, watts), at)
            if message is not None:
                yield pb.AgentReport(uses=message)
            second, at = second + 1, at + 1
            await asyncio.sleep(max(at - asyncio.get_running_loop().time(), 0))

    async def one(number: int) -> None:
        options = [("grpc.ssl_target_name_override", "localhost"),
                   ("grpc.use_local_subchannel_pool", 1), ("grpc.http2.bdp_probe", 0)]  # fmt: skip
        channel = grpc.aio.secure_channel(f"localhost:{port}", credentials, options=options)
        async with channel:
            stream = agent_pb2_grpc.AgentsStub(channel).Attend(reports(f"n{number}", number))
            async for _ in stream:
                pass

    tasks = [asyncio.create_task(one(number)) for number in numbers]
    await asyncio.to_thread(sys.stdin.readline)
    begin.set()
    await asyncio.to_thread(sys.stdin.readline)
    restless = 1
    await asyncio.gather(*tasks)


def _serve(folder: Path, agents: int, jobs: int, seconds: float) -> dict[str, object]:
    port, page = _port(), _port()
    config = {
        "controller": {"socket": f"{folder}/c/s"}, "operator": {"socket": f"{folder}/o/s"},
        "metrics": {"address": f"127.0.0.1:{page}"}, "memory": {"path": None},
        "agents": {"address": f"127.0.0.1:{port}", "ca": f"{folder}/ca.crt",
                   "cert": f"{folder}/localhost.crt", "key": f"{folder}/localhost.key",
                   "subjects": ["agent"]},
    }  # fmt: skip
    (folder / "bridge.yaml").write_text(json.dumps(config), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    service = subprocess.Popen(
        [sys.executable, "-m", "bridge.cli.main", "serve", "--config", folder / "bridge.yaml"],
        env=environment, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    children: list[subprocess.Popen[str]] = []
    try:
        _wait((folder / "c" / "s").exists)
        each = -(-agents // PROCESSES)
        for first in range(0, agents, each):
            count = min(each, agents - first)
            words = [sys.executable, __file__, "--jobs", str(jobs), "--child", str(port),
                     str(folder), str(first), str(count)]  # fmt: skip
            children.append(
                subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, text=True)
            )
        _wait(lambda: _metric(page, "schedbridge_agents") == agents)
        time.sleep(SETTLE_S)
        process = psutil.Process(service.pid)
        idle = _share(process, seconds)
        _tell(children)
        whole = _share(process, seconds)
        _tell(children)
        restless = _share(process, seconds)
        known = _metric(page, "schedbridge_power_nodes")
        stale = _metric(page, "schedbridge_power_nodes_stale")
        return {
            "whole_share": round(whole, 4), "idle_share": round(idle, 4),
            "restless_share": round(restless, 4),
            "nodes_known": int(known), "nodes_stale": int(stale),
            "memory_mib": round(process.memory_info().rss / (1 << 20)),
        }  # fmt: skip
    finally:
        for child in children:
            child.kill()
            child.wait()
        service.send_signal(signal.SIGTERM)
        service.wait()


def _tell(children: list["subprocess.Popen[str]"]) -> None:
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    time.sleep(SETTLE_S)


def _share(process: psutil.Process, seconds: float) -> float:
    """CPU time of a process over time."""

    def used() -> float:
        times = process.cpu_times()
        return float(times.user + times.system)

    before, began = used(), time.monotonic()
    time.sleep(seconds)
    return (used() - before) / (time.monotonic() - began)


def _taking_us(jobs: int) -> float:
    """Decoding a reading and keeping it, microseconds."""
    hub = Hub()
    agents = [hub.arrived([f"n{number}"], lambda _order: None) for number in range(1000)]
    raw = [
        pb.AgentReport(
            uses=pb.Uses(uses=[_reading(f"n{number}", jobs, 150)] * MAX)
        ).SerializeToString()
        for number in range(1000)
    ]
    began = time.process_time()
    for at in range(TAKEN):
        hub.report(agents[at % 1000], pb.AgentReport.FromString(raw[at % 1000]))
    return round((time.process_time() - began) / TAKEN / MAX * 1e6, 2)


def _metric(port: int, name: str) -> float:
    words = f"GET /metrics HTTP/1.0\r\nHost: localhost:{port}\r\n\r\n".encode()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as page:
            page.sendall(words)
            text = b"".join(iter(lambda: page.recv(1 << 16), b"")).decode()
    except OSError:
        return -1.0
    values = [line.split()[1] for line in text.splitlines() if line.startswith(f"{name} ")]
    return float(values[0]) if values else -1.0


def _wait(found: Callable[[], bool], most_s: float = 300.0) -> None:
    end = time.monotonic() + most_s
    while not found():
        if time.monotonic() > end:
            raise SystemExit("the service or the agents did not come up")
        time.sleep(0.5)


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _certificates(folder: Path) -> None:
    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *key, "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.crt")
    for name in ("localhost", "agent"):
        openssl("req", *key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", "csr")
        (folder / "ext").write_text(f"subjectAltName=DNS:{name}\n", encoding="ascii")
        openssl("x509", "-req", "-in", "csr", "-CA", "ca.crt", "-CAkey", "ca.key",
                "-CAcreateserial", "-extfile", "ext", "-out", f"{name}.crt")  # fmt: skip


if __name__ == "__main__":
    main()
