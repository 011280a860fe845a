# SPDX-License-Identifier: Apache-2.0
"""Malleable programs without MPI: task farms, Dask, pools of processes.

The launcher (`schedbridge run --engine program`, or with `--worker COMMAND`) runs the program on
the job's first node. There are three ways to learn of changes:

    a socket      Program.change() returns the next one; nothing happens until it is answered
    a file        the environment variable SCHEDBRIDGE_ELASTIC_NODES names it: a node per line
    a signal      `schedbridge run --signal USR1` sends it when that file has changed

    elastic = Program()
    while work:
        change = elastic.change()
        if change is not None:
            stop_using(change.remove)         the tasks there are done, or taken back
            change.done()
        ...
"""

import contextlib
from dataclasses import dataclass, field
from pathlib import Path

from bridge.extensions.elastic.link import LauncherLink, env


@dataclass
class Change:
    """A change of the nodes, which must be answered by `done` or `cannot`."""

    kind: str
    """grow or shrink."""
    nodes: list[str]
    """All afterwards."""
    add: list[str]
    remove: list[str]
    _link: LauncherLink = field(repr=False)
    _id: str = field(repr=False)

    def done(self) -> None:
        """Reports that only workers of the program still run on the removed nodes."""
        self._link.outcome("done", self._id, left=0)

    def cannot(self, reason: str) -> None:
        """Refuses the change; `reason`: one sentence."""
        self._link.outcome("cancelled", self._id, reason=reason)


class Program:
    """The program's connection to its launcher; without a launcher nothing ever changes."""

    def __init__(self) -> None:
        self._link: LauncherLink | None = None
        if env(""):
            with contextlib.suppress(OSError):
                self._link = LauncherLink({"op": "hello", "role": "program", "size": 1})

    @property
    def malleable(self) -> bool:
        """Whether there is a launcher."""
        return self._link is not None

    def change(self, timeout_s: float = 0.0) -> Change | None:
        """The next change, if one is requested within this time."""
        if self._link is None:
            return None
        try:
            request = self._link.requested(timeout_s)
            if request is None or not self._link.may_begin(request["id"]):
                return None
        except OSError:
            self._link = None
            return None
        add, remove = request.get("add", []), request.get("remove", [])
        return Change(request["kind"], request["nodes"], add, remove, self._link, request["id"])

    def need(self, minimum: int, maximum: int) -> None:
        """Tells the scheduler how many nodes the program can use from now on."""
        if self._link is not None:
            self._link.say(op="bounds", min=minimum, max=maximum)

    def fileno(self) -> int:
        """For select: readable when there may be a change. -1 without a launcher."""
        return -1 if self._link is None else self._link.fileno()


def nodes_in_use() -> list[str]:
    """The nodes of the job at this moment, from the launcher's file; empty without a launcher."""
    path = env("NODES")
    try:
        return Path(path).read_text().split() if path else []
    except OSError:
        return []
