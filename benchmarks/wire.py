#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of the wire without planning: full push, deltas, empty calls. Prints JSON, times in ms.

usage: benchmarks/wire.py [--nodes 10000] [--jobs 100000] [--delta 100]

`session_*` are the service's state only; `call_*` are whole calls over the Unix socket, through the
gate that checks the caller, and without it ("direct"), to a service whose policy is a stub that
plans no job.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import grpc
import numpy as np

from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.rules.site import NO_RULES
from bridge.model.snapshot import Snapshot
from bridge.rpc.controller.announcements import Announcements
from bridge.rpc.controller.cycles import Cycles
from bridge.rpc.controller.server import SCHEDULER, Server, add_scheduler
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.pb import scheduler_pb2_grpc
from bridge.rpc.reported.session import Session
from bridge.rpc.transport.callers import Peers
from bridge.rpc.transport.gate import Gate
from bridge.rpc.transport.listening import UnixListener
from bridge.units import UNPLANNED

WAITS = Reason(ReasonCode.RESOURCES, "waits")
NOW_S = 1_700_000_000


def unplanned(snapshot: Snapshot) -> Plan:
    n = len(snapshot.jobs)
    return Plan(
        now_s=snapshot.now_s,
        policy="none",
        job=np.arange(n, dtype=np.int32),
        start_s=np.full(n, UNPLANNED, dtype=np.int64),
        end_s=np.zeros(n, dtype=np.int64),
        partition=np.full(n, -1, dtype=np.int32),
        indptr=np.zeros(n + 1, dtype=np.int64),
        nodes=np.empty(0, dtype=np.int32),
        tasks=np.empty(0, dtype=np.int32),
        reasons=(WAITS,) * n,
    )


def a_job(number: int, rng: np.random.Generator) -> pb.Job:
    nodes = int(2 ** rng.integers(0, 8))
    return pb.Job(
        id=str(number),
        version=number + 1,
        state=pb.JOB_STATE_PENDING,
        name="job",
        user=f"user{number % 300}",
        account="account",
        priority=int(rng.integers(1, 1 << 20)),
        submit_s=NOW_S - int(rng.integers(0, 100_000)),
        time_limit_s=int(rng.integers(1, 48)) * 1800,
        request=pb.Request(
            partitions=["batch"],
            min_nodes=nodes,
            max_nodes=nodes,
            cpus_per_task=1,
            memory_per_node_mib=int(rng.integers(1, 64)) * 1024,
            exclusive=True,
        ),
    )


def full(n_nodes: int, n_jobs: int) -> pb.CycleRequest:
    rng = np.random.default_rng(1)
    request = pb.CycleRequest(epoch=1, generation=1, now_s=NOW_S)
    for at in range(n_nodes):
        request.nodes.add(
            name=f"n{at:05d}", cpus=64, threads_per_core=1, memory_mib=262_144, usable=True,
            state="IDLE", features=["fast"],
        )  # fmt: skip
    request.partitions.items.add(name="batch", nodes=f"n[00000-{n_nodes - 1:05d}]", up=True)
    request.jobs.extend(a_job(number, rng) for number in range(n_jobs))
    return request


def deltas(n_jobs: int, size: int, count: int) -> list[pb.CycleRequest]:
    """Each takes `size` jobs out, puts `size` new ones in, and moves the clock."""
    rng = np.random.default_rng(2)
    found = []
    for step in range(count):
        request = pb.CycleRequest(
            epoch=1, generation=step + 2, base_generation=step + 1, now_s=NOW_S + step
        )
        first = n_jobs + step * size
        request.removed_jobs.extend(str(number) for number in range(step * size, (step + 1) * size))
        request.jobs.extend(a_job(number, rng) for number in range(first, first + size))
        found.append(request)
    return found


def milliseconds(began: float) -> float:
    return round((time.perf_counter() - began) * 1e3, 3)


def session_alone(request: pb.CycleRequest, changes: list[pb.CycleRequest]) -> dict[str, float]:
    session = Session()
    session.greet(hello())
    began = time.perf_counter()
    session.apply(request)
    applied = milliseconds(began)
    began = time.perf_counter()
    session.snapshot()
    frozen = milliseconds(began)
    apply_ms, snapshot_ms = [], []
    for change in changes:
        began = time.perf_counter()
        session.apply(change)
        apply_ms.append(milliseconds(began))
        began = time.perf_counter()
        session.snapshot()
        snapshot_ms.append(milliseconds(began))
    return {
        "session_full_apply_ms": applied,
        "session_full_snapshot_ms": frozen,
        "session_delta_apply_ms": statistics.median(apply_ms),
        "session_delta_snapshot_ms": statistics.median(snapshot_ms),
    }


def hello() -> pb.HelloRequest:
    return pb.HelloRequest(
        wire_version=1, controller="benchmark", epoch=1, cluster="c", memory_consumable=True
    )


def calls(request: pb.CycleRequest, changes: list[pb.CycleRequest]) -> dict[str, float]:
    cycles = Cycles(
        unplanned,
        session=Session(),
        announcements=Announcements(1_000_000),
        service="benchmark",
        policy=lambda: "none",
        site=lambda: NO_RULES,
    )
    with tempfile.TemporaryDirectory() as home:
        private, public = str(Path(home) / "s"), Path(home) / "g"
        server = Server("controller", workers=4, message_mib=256)
        server.start(add_scheduler(cycles), [SCHEDULER], socket=private)
        own = os.geteuid()
        listener = UnixListener(public, "gate")
        peers = Peers(lambda uid: private if uid == own else None)
        gate = Gate(listener.socket, "gate", peers)
        gate.start()
        options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        with (
            grpc.insecure_channel(f"unix:{public}", options=options) as through,
            grpc.insecure_channel(f"unix:{private}", options=options) as past,
        ):
            gated = scheduler_pb2_grpc.SchedulerStub(through)
            direct = scheduler_pb2_grpc.SchedulerStub(past)
            gated.Hello(hello())
            began = time.perf_counter()
            gated.Cycle(request)
            found = {"call_full_ms": milliseconds(began)}
            began = time.perf_counter()
            gated.Cycle(request)
            found["call_full_again_ms"] = milliseconds(began)
            times = []
            for change in changes:
                began = time.perf_counter()
                gated.Cycle(change)
                times.append(milliseconds(began))
            found["call_delta_ms"] = statistics.median(times)
            gated.Hello(hello())  # forgets everything: the next calls are answered at once
            direct.Hello(hello())
            empty: dict[str, list[float]] = {"gated": [], "direct": []}
            for _ in range(1500):
                for name, stub in (("gated", gated), ("direct", direct)):
                    began = time.perf_counter()
                    stub.Cycle(pb.CycleRequest(epoch=1, generation=2, base_generation=1, now_s=1))
                    empty[name].append(milliseconds(began))
            for name, values in empty.items():
                found[f"call_empty_{name}_ms"] = round(statistics.median(values), 3)
                found[f"call_empty_{name}_p95_ms"] = round(
                    float(np.quantile(np.array(values), 0.95)), 3
                )
        gate.close()
        listener.close()
        server.stop(0)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--delta", type=int, default=100)
    chosen = parser.parse_args()
    request = full(chosen.nodes, chosen.jobs)
    changes = deltas(chosen.jobs, chosen.delta, 20)
    result: dict[str, float] = {"nodes": chosen.nodes, "jobs": chosen.jobs, "delta": chosen.delta}
    result["full_mb"] = round(request.ByteSize() / 1e6, 2)
    result |= session_alone(request, changes)
    result |= calls(request, changes)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
