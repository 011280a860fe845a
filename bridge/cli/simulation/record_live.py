# SPDX-License-Identifier: Apache-2.0
"""Recordings of the running service; `schedbridge lab record` without a trace or a system."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from bridge.cli.operators.asking import ask
from bridge.errors import ControllerError
from bridge.recording.recordings import Recording, decode

_WAIT_S = 10


def record_live(
    keep: Callable[[Recording, str], Path],
    cycles: int,
    min_queue: int,
    *,
    patience_s: int,
    config: Path | None,
    socket: Path | None,
) -> None:
    """Requests cycles from the service, one after the other.

    Args:
        keep: writes a recording under a name.
        min_queue: only cycles with at least this many waiting jobs.
        patience_s: how long to wait for each.
        config: the service's configuration, for its address.
        socket: or its operator socket.

    Raises:
        ControllerError: the service does not answer, or had no such cycle in time.
    """
    console = Console(stderr=True)
    with ask(config, socket) as service, console.status("waiting for the next cycle ..."):
        for number in range(1, cycles + 1):
            waited_s = 0
            while not (reply := service.record(min_queue, _WAIT_S)).recording:
                waited_s += _WAIT_S
                if waited_s >= patience_s:
                    raise ControllerError(
                        f"{number - 1} of {cycles} recorded: the service had no further cycle with "
                        f"{min_queue} waiting jobs for {waited_s} s"
                    )
            recording = decode(reply.recording, "the service's answer")
            cluster = recording.origin.get("cluster") or "cluster"
            safe = "".join(char if char.isalnum() or char in "-_" else "_" for char in cluster)
            path = keep(
                replace(recording, path=""),
                f"{safe}-{recording.snapshot.now_s}-{recording.snapshot.generation}",
            )
            print(path)
