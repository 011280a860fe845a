# SPDX-License-Identifier: Apache-2.0
"""The processes of one stage: as many as `srun` started, or forked here, and what they exchange.

Every exchange goes through task 0, which listens on a port of its own. Its address and a key, which
nobody else can read, are in a file in a folder that all nodes see.
"""

import json
import os
import secrets
import socket
import sys
import time
from multiprocessing.connection import Client, Listener
from pathlib import Path

CONNECT_S = 60.0


class Tasks:
    """One process of a group; `with` it, so that its connections are closed."""

    def __init__(self, rank: int, size: int, meeting: Path) -> None:
        self.rank, self.size = rank, size
        self._meeting = meeting
        self._peers = []
        if size > 1:
            if rank == 0:
                self._listen()
            else:
                self._connect()

    def _listen(self):
        key = secrets.token_hex(16)
        with Listener(("", 0), backlog=self.size, authkey=key.encode()) as listener:
            new = self._meeting.with_suffix(".new")
            new.touch(mode=0o600)
            new.write_text(json.dumps([socket.gethostname(), listener.address[1], key]))
            new.rename(self._meeting)
            peers = {}
            while len(peers) < self.size - 1:
                peer = listener.accept()
                peers[peer.recv()] = peer
        self._meeting.unlink()
        self._peers = [peers[rank] for rank in range(1, self.size)]

    def _connect(self):
        deadline = time.monotonic() + CONNECT_S
        while True:
            try:
                host, port, key = json.loads(self._meeting.read_text())
                peer = Client((host, port), authkey=key.encode())
                break
            except (OSError, ValueError):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"task 0 was not found in {self._meeting}") from None
                time.sleep(0.02)
        peer.send(self.rank)
        self._peers = [peer]

    def exchange(self, value):
        """Gives every task the list of all values, by rank."""
        if self.size == 1:
            return [value]
        if self.rank:
            self._peers[0].send(value)
            return self._peers[0].recv()
        values = [value, *(peer.recv() for peer in self._peers)]
        for peer in self._peers:
            peer.send(values)
        return values

    def mine(self, items):
        """This task's part of a list; together the parts are the list."""
        return items[self.rank :: self.size]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for peer in self._peers:
            peer.close()


def start(size, meeting):
    """Makes this process a task of the group.

    Under `srun` the group is the step. Otherwise the other tasks are forked here, and have to end
    with `os._exit`.

    Returns:
        The task; the processes that were forked here; whether this process is one of them.
    """
    if "SLURM_STEP_ID" in os.environ and "SLURM_PROCID" in os.environ:
        here = int(os.environ["SLURM_STEP_NUM_TASKS"])
        if here != size:
            sys.exit(f"--cores {size}, but srun started {here} tasks: use srun -n {size}")
        return Tasks(int(os.environ["SLURM_PROCID"]), size, meeting), [], False
    children = []
    for rank in range(1, size):
        child = os.fork()
        if child == 0:
            return Tasks(rank, size, meeting), [], True
        children.append(child)
    return Tasks(0, size, meeting), children, False
