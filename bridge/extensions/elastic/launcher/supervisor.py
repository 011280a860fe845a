# SPDX-License-Identifier: Apache-2.0
"""The parent of a launcher: starts it, and starts it again if it is killed.

It holds the listening sockets, so that the program can always connect, and takes over the steps of
a launcher that dies (it is their subreaper). It has no other state.
"""

import contextlib
import ctypes
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from bridge.extensions.elastic.launcher.options import Folder, Options
from bridge.interpreter import python

PR_SET_CHILD_SUBREAPER: Final = 36
PAUSE_S: Final = 0.1
MAX_DEATHS: Final = 30
"""A launcher that dies this often in a row, each time within a second, is not restarted."""


def supervise(options: Options, base: Path) -> int:
    """Runs a program to its end and returns its exit code.

    Args:
        base: where to make the run's directory: local to this node.
    """
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Nobody can guess the name and make it first.
    path = Path(tempfile.mkdtemp(prefix=f"schedbridge-{options.job}-", dir=base))
    folder = Folder(path)
    local = socket.socket(socket.AF_UNIX)
    local.bind(str(folder.socket))
    remote = socket.create_server(("", 0), backlog=1024)
    local.listen(16)
    tcp = f"{socket.gethostname()}:{remote.getsockname()[1]}"
    folder.write(replace(options, tcp=tcp, token=secrets.token_hex(16)))
    try:
        return _keep_running(folder, [local, remote])
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _keep_running(folder: Folder, listeners: list[socket.socket]) -> int:
    fds = [listener.fileno() for listener in listeners]
    child: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, _: object) -> None:
        if child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, pass_on)
    deaths = 0
    while True:
        began_s = time.monotonic()
        child = subprocess.Popen(
            python("-m", "bridge.extensions.elastic.launcher", str(folder.path), *map(str, fds)),
            pass_fds=fds,
        )
        with contextlib.suppress(OSError):  # for people; a disk may be full
            (folder.path / "launcher.pid").write_text(str(child.pid))
        _wait_for(child)
        code = folder.ended()
        if code is not None:
            return code
        deaths = deaths + 1 if time.monotonic() - began_s < 1.0 else 0
        if deaths > MAX_DEATHS:
            _say("the launcher dies again and again")
            return 1
        _say("the launcher died and is started again")
        time.sleep(PAUSE_S)


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        print(f"schedbridge run: {text}", file=sys.stderr, flush=True)


def _wait_for(child: "subprocess.Popen[bytes]") -> None:
    """Waits for the launcher, and reaps the steps of earlier ones meanwhile."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child.pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return
