# SPDX-License-Identifier: Apache-2.0
"""The service and the link beside a real server."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.real_pbs.server import wait_for
from tests.real_pbs.world import USERS

_RUN = Path("/var/spool/schedbridge")
COMMAND = [sys.executable, "-m", "bridge.cli.main"]


class Bridge:
    """`schedbridge serve` and `schedbridge pbs-link`.

    Attributes:
        service, link: the processes; None: not running.
    """

    def __init__(
        self, policy: str = "conservative", link_options: tuple[str, ...] = (), user: str = ""
    ) -> None:
        """Prepares them.

        Args:
            policy: of the service.
            link_options: more options of the link.
            user: who runs both; empty: root.
        """
        self._user: dict[str, Any] = {}
        number = USERS[user] if user else 0
        if user:
            self._user = {"user": number, "group": number, "extra_groups": []}
        self.service: subprocess.Popen[bytes] | None = None
        self.link: subprocess.Popen[bytes] | None = None
        self._options = link_options
        for name in ("controller", "operator"):
            (_RUN / name).mkdir(parents=True, exist_ok=True)
        (_RUN / "controller").chmod(0o700)
        (_RUN / "operator").chmod(0o755)
        for folder in (_RUN, _RUN / "controller", _RUN / "operator"):
            os.chown(folder, number, number)
        self.config = _RUN / "bridge.yaml"
        self.config.write_text(
            f"policy: {policy}\n"
            f"controller: {{socket: {_RUN}/controller/bridge.sock}}\n"
            f"operator: {{socket: {_RUN}/operator/operator.sock}}\n"
            f"memory: {{path: {_RUN}/memory.sqlite}}\n",
            encoding="utf-8",
        )
        self.socket = _RUN / "controller/bridge.sock"
        self.log = _RUN / "link.log"
        self.service_log = _RUN / "service.log"

    def start_service(self) -> None:
        """Starts the service, and waits until it listens."""
        with self.service_log.open("ab") as log:
            self.service = subprocess.Popen(
                [*COMMAND, "serve", "--config", str(self.config)], stderr=log, **self._user
            )
        wait_for("the service", self.socket.exists)

    def start_link(self) -> None:
        """Starts the link, and waits until it is registered."""
        already = self.registrations()
        with self.log.open("ab") as log:
            self.link = subprocess.Popen(
                [*COMMAND, "pbs-link", "--service", str(self.socket), *self._options],
                stderr=log, **self._user,
            )  # fmt: skip
        wait_for("a registered link", lambda: self.registrations() > already)

    def registrations(self) -> int:
        """How often a link has registered."""
        return self.log.read_text().count("registered as scheduler") if self.log.exists() else 0

    def link_pid(self) -> int:
        """The process of the link itself, a child of its supervisor."""
        assert self.link is not None
        return next(
            int(pid)
            for pid in children(self.link.pid)
            if b"bridge.pbs.link" in Path(f"/proc/{pid}/cmdline").read_bytes()
        )

    def ask(self, *words: str) -> str:
        """Runs a command of an operator; returns what it printed."""
        done = subprocess.run(
            [*COMMAND, *words, "--config", str(self.config)], capture_output=True, text=True,
            check=False, env={**os.environ, "COLUMNS": "160"},
        )  # fmt: skip
        return done.stdout + done.stderr

    def stop(self) -> None:
        """Ends both."""
        for process in (self.link, self.service):
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.send_signal(signal.SIGCONT)
                process.wait(30)
        self.link = self.service = None


def children(pid: int) -> list[str]:
    """The children of a process."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
