# SPDX-License-Identifier: Apache-2.0
"""Stands in for the node's agent: takes orders on one socket, speaks the lines on another, and
resizes the job by Slurm's own commands.

Runs as the job's user on its first node: python stand_in.py DIRECTORY TASKS_PER_NODE. The launcher
connects to DIRECTORY/agent.sock. A test connects to DIRECTORY/orders.sock, sends an order on a
line, and gets on a line what came of it:

    {"do": "wait"}                                   until a launcher has attached
    {"do": "grow", "id": "1", "add": ["n2"], "within_s": 20}     grants, then asks the launcher
    {"do": "shrink", "id": "2", "remove": ["n2"], "within_s": 20}  asks, then releases
    {..., "withdraw_s": 2}                           and withdraws it after this time
    {"do": "heard"}                                  everything since the beginning
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from bridge.extensions.elastic.lines import (
    Attach,
    Attached,
    Grow,
    Lines,
    Result,
    Shrink,
    Withdraw,
    encode,
    from_launcher,
)


def slurm(*words: str) -> str:
    """One of Slurm's commands, without what it says of the script around it."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    done = subprocess.run(words, capture_output=True, text=True, env=env, check=False)
    return done.stdout + done.stderr


class StandIn:
    """The agent's side of one job."""

    def __init__(self, folder: Path, tasks: str) -> None:
        self.folder, self.tasks = folder, tasks
        self.heard: list[dict[str, object]] = []
        self.launcher: socket.socket | None = None
        self.job, self.nodes = "", ()
        self.results: dict[str, Result] = {}
        self.news = threading.Condition()

    def hear(self) -> None:
        """Serves launchers, one after the other."""
        listener = self._listen("agent.sock")
        while True:
            stream, _ = listener.accept()
            threading.Thread(target=self._serve, args=(stream,), daemon=True).start()

    def _listen(self, name: str) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        (self.folder / name).unlink(missing_ok=True)
        listener.bind(str(self.folder / name))
        listener.listen()
        return listener

    def _serve(self, stream: socket.socket) -> None:
        lines = Lines()
        while data := stream.recv(65536):
            for line in lines.feed(data):
                message = from_launcher(line)
                with self.news:
                    self.heard.append({"at_s": time.time(), **json.loads(line)})
                    if isinstance(message, Attach):
                        self.launcher, self.job = stream, message.job
                        self.nodes = message.nodes
                        stream.sendall(encode(Attached()))
                        if message.pending is None:
                            self._ask_again(stream)
                    elif isinstance(message, Result):
                        self.results[message.id] = message
                        self.nodes = message.nodes
                    self.news.notify_all()

    def _ask_again(self, stream: socket.socket) -> None:
        """A launcher that was restarted repeats the result that was lost on the way."""
        if self.asked is not None and self.asked.id not in self.results:
            stream.sendall(encode(self.asked))

    asked: Grow | Shrink | None = None

    def obey(self) -> None:
        """Serves tests, one order after the other."""
        listener = self._listen("orders.sock")
        while True:
            stream, _ = listener.accept()
            with stream, stream.makefile("rw") as file:
                order = json.loads(file.readline())
                file.write(json.dumps(self._do(**order)) + "\n")
                file.flush()

    def _do(self, do: str, **order: object) -> object:
        if do == "heard":
            return self.heard
        if do == "wait":
            with self.news:
                return self.news.wait_for(lambda: self.launcher is not None, 60)
        return {"grow": self._grow, "shrink": self._shrink, "raw": self._raw}[do](**order)

    def _raw(self, line: str) -> None:
        self.launcher.sendall(line.encode() + b"\n")

    def _result(self, change: Grow | Shrink, withdraw_s: float | None) -> Result | None:
        with self.news:
            self.asked = change
            with contextlib.suppress(OSError):  # it comes back
                self.launcher.sendall(encode(change))
            if withdraw_s is not None:
                self.news.wait_for(lambda: change.id in self.results, withdraw_s)
                self.launcher.sendall(encode(Withdraw(change.id)))
            self.news.wait_for(lambda: change.id in self.results, change.within_s + 60)
            return self.results.get(change.id)

    def _grow(self, id: str, add: list[str], within_s: float, withdraw_s: float | None = None):
        began_s = time.time()
        said = slurm(
            "salloc",
            "-N",
            str(len(add)),
            "-w",
            ",".join(add),
            "-t",
            "30",
            "-Q",
            f"--dependency=expand:{self.job}",
            f"--ntasks-per-node={self.tasks}",
            "--no-shell",
            "-J",
            f"helper{id}",
        )
        helper = slurm("squeue", "-h", "-n", f"helper{id}", "-o", "%i", "-t", "R").split()
        if not helper:
            return {"error": said}
        said += slurm("scontrol", "update", f"JobId={helper[0]}", "NumNodes=0")
        granted_s = time.time()
        held = self.held()
        if set(held) != {*self.nodes, *add}:
            return {"error": f"granted {held}: {said}"}
        result = self._result(Grow(id, (*self.nodes, *add), tuple(add), within_s), withdraw_s)
        done_s = time.time()
        if result is None or result.outcome != "done":
            self._release(self.nodes)
        return self._shown(result, granted_s - began_s, done_s - granted_s, time.time() - done_s)

    def _shrink(self, id: str, remove: list[str], within_s: float, withdraw_s: float | None = None):
        rest = tuple(node for node in self.nodes if node not in remove)
        began_s = time.time()
        result = self._result(Shrink(id, rest, tuple(remove), within_s), withdraw_s)
        done_s = time.time()
        if result is not None and result.outcome == "done":
            self._release(rest)
        return self._shown(result, 0, done_s - began_s, time.time() - done_s)

    def _shown(self, result, grant_s, change_s, release_s):
        return {
            "outcome": result and result.outcome, "reason": result and result.reason,
            "nodes": result and list(result.nodes), "held": self.held(),
            "grant_s": grant_s, "change_s": change_s, "release_s": release_s,
        }  # fmt: skip

    def _release(self, rest) -> None:
        # Slurm ignores a list that equals what the job's --nodelist says.
        spelt = ",".join(f"n[{node[1:]}]" for node in rest)
        said = slurm("scontrol", "update", f"JobId={self.job}", f"NodeList={spelt}")
        if set(self.held()) != set(rest):
            print(f"holds {self.held()} instead of {rest}: {said}", file=sys.stderr)

    def held(self) -> list[str]:
        """The nodes that Slurm says the job has."""
        listed = slurm("squeue", "-h", "-j", self.job, "-o", "%N").strip()
        return slurm("scontrol", "show", "hostnames", listed).split()


if __name__ == "__main__":
    stand_in = StandIn(Path(sys.argv[1]), sys.argv[2])
    threading.Thread(target=stand_in.hear, daemon=True).start()
    stand_in.obey()
