#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A malleable program without MPI whose speed follows Amdahl's law; it sleeps instead of computing.

    schedbridge run --mpi none --engine join -- paced.py UNITS WORK_S SERIAL SEED     malleable
    srun --mpi=none paced.py UNITS WORK_S SERIAL SEED                                 rigid
    paced.py --expected UNITS SEED                                     the result, without sleeping

One process per node. WORK_S is the time on one node, SERIAL the part of it that only the first
process does while the others wait. The state is real: rows of 4 KiB in blocks, one block per
process, that every unit of work changes, and a sum over all rows and units. Both are the same at
the end whatever the widths were, and different if a row or a unit was lost or done twice.

Rules
    1. The first process leads: it distributes rounds of some units, and checks for a change of
       width between two rounds. A round that begins late is shortened, so that other load of the
       machine does not slow the program down.
    2. At a change all rows are sent to the leader, and from there to their new processes.
    3. Waiting for others is published as communication, in a page like that of the library for MPI.
    4. A process that loses the others ends.
"""

import contextlib
import hashlib
import json
import mmap
import os
import select
import socket
import struct
import sys
import time
from pathlib import Path

ROWS, ROW_BYTES = 64, 4096
ROUND_S = 0.5
_PAGE = struct.Struct("<8sII32sIIQQQQ")
_FOLDERS = Path("/dev/shm/schedbridge")


def first_row(seed, row):
    return (hashlib.blake2b(f"{seed}.{row}".encode()).digest() * (ROW_BYTES // 64))[:ROW_BYTES]


def worked(row, unit):
    """A row after one more unit, and its contribution to the sum."""
    digest = hashlib.blake2b(row, key=unit.to_bytes(8, "little")).digest()
    return digest + row[: ROW_BYTES - len(digest)], int.from_bytes(digest[:8], "little")


def block(rank, size):
    return range(ROWS * rank // size, ROWS * (rank + 1) // size)


def result(rows, total):
    return hashlib.blake2b(b"".join(rows) + total.to_bytes(8, "little"), digest_size=8).hexdigest()


def expected(units, seed):
    """The expected output of the program."""
    rows, total = [first_row(seed, row) for row in range(ROWS)], 0
    for unit in range(units):
        for at, row in enumerate(rows):
            rows[at], more = worked(row, unit)
            total = (total + more) % 2**64
    return result(rows, total)


class Page:
    """Reports this process's waits for others to the node's agent."""

    def __init__(self):
        self._waited_ns, self._memory = 0, None
        with contextlib.suppress(OSError):
            path = _FOLDERS / os.environ.get("SLURM_JOB_ID", "none") / f"mpi.{os.getpid()}"
            with path.open("w+b") as file:
                file.truncate(4096)
                self._memory = mmap.mmap(file.fileno(), 4096)
        self._begin_ns = time.monotonic_ns()
        self._write(0)

    def _write(self, since_ns):
        if self._memory is not None:
            self._memory[: _PAGE.size] = _PAGE.pack(
                b"BRIDGEMT", 1, os.getpid(), b"", 0, 0, self._begin_ns, self._waited_ns, 0, since_ns
            )

    @contextlib.contextmanager
    def waiting(self):
        """Counts the time within as waiting for others."""
        since_ns = time.monotonic_ns()
        self._write(since_ns)
        yield
        self._waited_ns += time.monotonic_ns() - since_ns
        self._write(0)


class Peer:
    """Messages: a line of JSON, followed by the rows that it announces."""

    def __init__(self, stream):
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream, self.file = stream, stream.makefile("rwb")
        self.node, self.change, self.task = "", "", 0

    def say(self, rows=(), **said):
        """Sends one."""
        self.file.write(json.dumps({**said, "rows": len(rows)}).encode() + b"\n" + b"".join(rows))
        self.file.flush()

    def hear(self):
        """Waits for one."""
        line = self.file.readline()
        if not line:
            raise ConnectionError("the other side is gone")
        said = json.loads(line)
        said["rows"] = [self.file.read(ROW_BYTES) for _ in range(said["rows"])]
        return said


class Own:
    """The rows of one process."""

    def __init__(self, rows):
        self.rows = rows

    def work(self, first, count, pause_s):
        """Sleeps and computes; returns its contribution to the sum."""
        time.sleep(pause_s)
        total = 0
        for unit in range(first, first + count):
            for at, row in enumerate(self.rows):
                self.rows[at], more = worked(row, unit)
                total += more
        return total % 2**64


def environment(name):
    return os.environ.get(f"SCHEDBRIDGE_ELASTIC_{name}", "")


def follow():
    """Every process but the first."""
    joins = environment("ROLE") == "joiner"
    job = int(os.environ["SLURM_JOB_ID"])
    here = f"{os.environ['SLURM_LAUNCH_NODE_IPADDR']}:{port_of(job)}"
    host, _, port = (environment("PORT") if joins else here).rpartition(":")
    until_s = time.monotonic() + 60
    while True:
        try:
            leader = Peer(socket.create_connection((host, int(port)), timeout=60))
            break
        except OSError:
            if time.monotonic() > until_s:
                raise
            time.sleep(0.05)
    leader.stream.settimeout(None)
    leader.say(
        node=os.environ["SLURMD_NODENAME"], change=environment("ID") if joins else "",
        task=int(os.environ["SLURM_PROCID"]), size=int(os.environ["SLURM_STEP_NUM_TASKS"]), job=job,
    )  # fmt: skip
    page, own, farewell = Page(), Own([]), None
    while True:
        with page.waiting():
            said = leader.hear()
        match said["op"]:
            case "rows":
                own.rows = said["rows"]
            case "work":
                leader.say(total=own.work(said["first"], said["count"], said["pause_s"]))
            case "gather":
                leader.say(own.rows)
            case "all":  # the new processes are there
                tell_launcher("ready", environment("ID")).recv(100)
            case "leave":
                farewell = tell_launcher("leaving", said["change"])
                leader.say()
                return farewell
            case "end":
                return farewell


def tell_launcher(op, change):
    host, _, port = environment("TCP").rpartition(":")
    stream = socket.create_connection((host, int(port)), timeout=30)
    said = {"op": op, "id": change, "token": environment("TOKEN")}
    stream.sendall(json.dumps(said).encode() + b"\n")
    return stream


def port_of(job):
    return 20_000 + job % 10_000


class Leader:
    """The first process."""

    def __init__(self, units, work_s, serial, seed):
        self.units, self.work_s, self.serial, self.seed = units, work_s, serial, seed
        self.page, self.own, self.workers, self.pending = Page(), Own([]), [], []
        self.job = int(os.environ["SLURM_JOB_ID"])
        size = int(os.environ["SLURM_STEP_NUM_TASKS"])
        self.listener = socket.create_server(("", port_of(self.job)), backlog=64)
        while len(self.pending) < size - 1:
            self.accept()
        self.workers = sorted(self.pending, key=lambda peer: peer.task)
        self.pending = []
        self.link = None
        if environment("TCP"):
            from bridge.extensions.elastic.link import LauncherLink  # noqa: PLC0415 - only under `schedbridge run`

            here = f"{socket.gethostname()}:{port_of(self.job)}"
            self.link = LauncherLink({"op": "hello", "size": size, "port": here, "role": "main"})

    def accept(self):
        """Accepts a process; once all of a change have connected, the first of them reports it."""
        stream, _ = self.listener.accept()
        stream.settimeout(30)
        peer = Peer(stream)
        said = peer.hear()
        stream.settimeout(None)
        if said["job"] != self.job:
            return
        peer.node, peer.change, peer.task = said["node"], said["change"], said["task"]
        self.pending.append(peer)
        same = [one for one in self.pending if one.change == peer.change]
        if peer.change and len(same) == said["size"]:
            min(same, key=lambda one: one.task).say(op="all")

    def pause(self, seconds):
        """Sleeps, and accepts new processes meanwhile."""
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            if select.select([self.listener], [], [], left_s)[0]:
                with contextlib.suppress(OSError, ValueError, KeyError):
                    self.accept()

    def run(self):
        """From the first unit to the result."""
        rows = [first_row(self.seed, row) for row in range(ROWS)]
        self.scatter(rows)
        done, total = 0, 0
        begin_s = due_s = time.monotonic()
        while done < self.units:
            size = 1 + len(self.workers)
            each_s = self.work_s / self.units
            parallel_s, alone_s = each_s * (1 - self.serial) / size, each_s * self.serial
            count = min(max(round(ROUND_S / (parallel_s + alone_s)), 1), self.units - done)
            late_s = time.monotonic() - due_s
            due_s += count * (parallel_s + alone_s)
            pause_s = max(count * parallel_s - max(late_s, 0.0), 0.0)
            for worker in self.workers:
                worker.say(op="work", first=done, count=count, pause_s=pause_s)
            self.pause(pause_s)
            total += self.own.work(done, count, 0.0)
            with self.page.waiting():
                total += sum(worker.hear()["total"] for worker in self.workers)
            done += count
            self.pause(due_s - time.monotonic())
            if self.link is not None and done < self.units and self.change():
                due_s = time.monotonic()
        rows = self.gather()
        for worker in self.workers:
            worker.say(op="end")
        took_s = time.monotonic() - begin_s
        print(f"paced: result {result(rows, total % 2**64)} in {took_s:.3f} s", flush=True)
        if self.link is not None:
            self.link.say(op="bye")

    def gather(self):
        """All rows, in their order."""
        for worker in self.workers:
            worker.say(op="gather")
        rows = list(self.own.rows)
        for worker in self.workers:
            rows += worker.hear()["rows"]
        return rows

    def scatter(self, rows):
        """Gives each process its block."""
        size = 1 + len(self.workers)
        self.own.rows = rows[: block(0, size).stop]
        for rank, worker in enumerate(self.workers, 1):
            mine = block(rank, size)
            worker.say(rows[mine.start : mine.stop], op="rows")

    def change(self):
        """Carries out the requested change, if there is one."""
        said = self.link.requested()
        if said is None or not self.link.may_begin(said["id"]):
            return False
        begin_s = time.monotonic()
        rows = self.gather()
        leaving = [worker for worker in self.workers if worker.node in said.get("remove", [])]
        joining = [peer for peer in self.pending if peer.change == said["id"]]
        self.pending = []
        self.workers = [worker for worker in self.workers if worker not in leaving]
        self.workers += sorted(joining, key=lambda peer: peer.task)
        self.scatter(rows)
        for worker in leaving:
            worker.say(op="leave", change=said["id"])
        for worker in leaving:
            worker.hear()
        self.link.outcome("done", said["id"], left=len(leaving))
        stood_s = time.monotonic() - begin_s
        print(f"paced: width {1 + len(self.workers)} after {stood_s:.3f} s", flush=True)
        return True


if __name__ == "__main__":
    if sys.argv[1] == "--expected":
        print(expected(int(sys.argv[2]), sys.argv[3]))
    elif os.environ["SLURM_PROCID"] == "0" and environment("ROLE") != "joiner":
        Leader(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]).run()
    else:
        held = follow()
