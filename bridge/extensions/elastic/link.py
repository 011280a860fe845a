# SPDX-License-Identifier: Apache-2.0
"""A program's connection to its launcher, for the Python interfaces; the C library has its own.

`LauncherLink` finds a launcher that was restarted, introduces the program to it, and repeats the
last result.
"""

import json
import os
import socket
import time
from typing import Any, Final

from bridge.extensions.elastic.lines import MAX_LINE

ANSWER_S: Final = 60.0
"""Maximum time for a restarted launcher to come back."""


def env(name: str) -> str:
    """A variable set by the launcher; empty if there is no launcher."""
    return os.environ.get(f"SCHEDBRIDGE_ELASTIC{name and '_' + name}", "")


def node() -> str:
    """The name of this node, as Slurm knows it."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


class LauncherLink:
    """Lines to and from the launcher, in the process that represents the program."""

    def __init__(self, hello: dict[str, Any]) -> None:
        """Connects and says hello.

        Raises:
            OSError: there is no launcher.
        """
        self._hello, self._outcome = hello, dict[str, Any]()
        self._stream, self._rest = self._connected(), b""
        self.say(**hello)

    def _connected(self) -> socket.socket:
        stream = socket.socket(socket.AF_UNIX)
        try:
            stream.connect(env(""))
        except OSError:
            stream.close()
            raise
        return stream

    def fileno(self) -> int:
        """For select: readable when the launcher has sent a line, or is gone."""
        return self._stream.fileno()

    def say(self, **message: Any) -> None:
        """Sends a line; one that is lost with the launcher is sent again if necessary."""
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        try:
            self._stream.sendall(line)
        except OSError:
            self._stream.close()

    def outcome(self, op: str, number: str, **more: Any) -> None:
        """Reports the result of a change."""
        self._outcome = {"op": op, "id": number, **more}
        self.say(**self._outcome)

    def hear(self, timeout_s: float = 0.0, repeat: dict[str, Any] | None = None) -> Any:
        """The next line, or none in this time.

        Args:
            repeat: line to repeat to a launcher that was restarted meanwhile.

        Raises:
            OSError: there is no launcher any more.
        """
        until_s = time.monotonic() + timeout_s
        while True:
            line, found, rest = self._rest.partition(b"\n")
            if found:
                self._rest = rest
                return json.loads(line)
            try:
                left_s = until_s - time.monotonic()
                self._stream.settimeout(max(left_s, 0.0))
                data = self._stream.recv(MAX_LINE)
            except (BlockingIOError, TimeoutError):
                return None
            except OSError:
                data = b""
            finally:
                if self._stream.fileno() >= 0:
                    self._stream.settimeout(None)
            if data:
                self._rest += data
                continue
            self._stream.close()
            self._stream, self._rest = self._connected(), b""
            self.say(**{**self._hello, "again": True})
            for message in (self._outcome, repeat):
                if message:
                    self.say(**message)

    def may_begin(self, number: str) -> bool:
        """Asks whether to begin; the launcher may have cancelled the change."""
        question = {"op": "begin", "id": number}
        self.say(**question)
        while (message := self.hear(ANSWER_S, question)) is not None:
            if message.get("id") == number and message["op"] in ("go", "no"):
                return bool(message["op"] == "go")
        self.outcome("cancelled", number, reason="The launcher did not answer.")
        return False

    def requested(self, timeout_s: float = 0.0) -> Any:
        """The requested change, if there is one, or the first within this time."""
        found = None
        while (message := self.hear(0.0 if found else timeout_s)) is not None:
            if message["op"] == "adapt":
                found = message
            elif message["op"] == "withdraw" and found and message["id"] == found["id"]:
                found = None
        return found

    def close(self) -> None:
        """Ends the connection."""
        self._stream.close()


def say_remotely(op: str, **more: str) -> socket.socket | None:
    """From another node than the first: a line with the job's token; the connection stays open."""
    host, _, port = env("TCP").rpartition(":")
    try:
        stream = socket.create_connection((host, int(port)), timeout=10.0)
        message = {"op": op, "id": env("ID"), "token": env("TOKEN"), **more}
        stream.sendall(json.dumps(message).encode() + b"\n")
    except (OSError, ValueError):
        return None
    return stream
