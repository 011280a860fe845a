# SPDX-License-Identifier: Apache-2.0
"""Malleable MPI programs in Python: the four routines over mpi4py.

    elastic = Elastic()                      init_adapt
    if elastic.joining:
        adapt = True
    else:
        adapt, elastic.shared["step"], elastic.kept["rows"] = False, 0, set_up(elastic.comm)
    while adapt or elastic.shared["step"] < last:
        if adapt:
            with elastic.window() as window:         adapt_begin ... adapt_commit
                move_blocks(window, elastic.kept, "rows", count)
        compute(elastic.comm, elastic.kept["rows"])
        elastic.shared["step"] += 1
        adapt = elastic.probe()              probe_adapt
    elastic.finalize()

`shared` holds data that are equal in all processes, `kept` the data of each process; both may hold
anything that can be pickled. A leaving process ends by SystemExit at the end of the window. The
rules are those of bridge/extensions/elastic/library/bridge_elastic.h.
"""

import contextlib
import os
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpi4py import MPI

from bridge.extensions.elastic.link import ANSWER_S, LauncherLink, env, node, say_remotely

ACCEPT_S = "20"
"""After these the new processes are given up."""


@dataclass
class Window:
    """The data between begin and commit."""

    merged: Any
    """All former and new processes."""
    before: list[int]
    """Ranks in `merged` of those that have data, in their order."""
    after: list[int]
    """Ranks in `merged` of those that will have it."""
    phase: int
    """In joining processes that of the running ones."""
    kind: str = ""


class Elastic:
    """This process as part of a program whose width changes."""

    def __init__(self) -> None:
        self.comm = MPI.COMM_WORLD.Dup()
        self.shared: dict[str, Any] = {}
        self.kept: dict[str, Any] = {}
        self.joining, self._engine = False, ""
        self._link: LauncherLink | None = None
        self._port, self._park, self._id = "", "", ""
        self._requested: Any = None
        role = env("ROLE") if env("") else ""
        if role == "test":
            self._self_test()
        elif role == "joiner":
            self.joining, self._engine, self._id = True, "join", env("ID")
            self.comm.Barrier()
            if self.comm.rank == 0:
                self._say_ready()
        elif role == "main":
            self._introduce()

    # ------------------------------------------------------------------ the beginning

    def _introduce(self) -> None:
        engine: str | None = ""
        whole = self.comm.size == int(env("SIZE"))
        if whole and self.comm.rank == 0:
            engine = self._hello()
        elif not whole and os.environ.get("SLURM_PROCID", "0") == "0":
            self._hello()
        engine = self.comm.bcast(engine)
        if engine is None or not whole:
            self._leave()
        self._engine = engine or ""
        if self._engine and env("PARKED"):
            self.joining, self._park, self._id = True, env("PARKED"), env("ID")

    def _hello(self) -> str | None:
        """Rank 0 introduces the program; the engine, or none if it is to end at once."""
        if env("ENGINE") != "relaunch":
            with _errors_return(MPI.COMM_SELF), contextlib.suppress(MPI.Exception):
                self._port = MPI.Open_port()
        hello = {"op": "hello", "role": "main", "size": self.comm.size, "port": self._port}
        hello["step"] = env("STEP")
        try:
            self._link = LauncherLink(hello)
            while (message := self._link.hear(ANSWER_S)) is not None:
                if message["op"] == "end":
                    return None
                if message["op"] == "test" and self._port:
                    _meet(MPI.COMM_SELF, self._port, accept=True)
                if message["op"] == "start":
                    return str(message["engine"])
        except OSError:
            pass
        return ""

    def _self_test(self) -> None:
        if self.comm.rank == 0 and os.environ.get("SLURM_PROCID", "0") == "0":
            joined = False
            if self.comm.size == int(env("SIZE")) and env("PORT"):
                merged = _meet(MPI.COMM_SELF, env("PORT"), accept=False)
                joined = merged is not None
            with contextlib.suppress(OSError):
                LauncherLink({"op": "tested", "size": self.comm.size, "joined": joined})
        self._leave()

    def _say_ready(self) -> None:
        for _ in range(20):
            stream = say_remotely("ready")
            with contextlib.suppress(OSError):
                if stream is not None and stream.recv(1):
                    return

    def _leave(self) -> None:
        if not MPI.Is_finalized():
            MPI.Finalize()
        raise SystemExit(0)

    # ------------------------------------------------------------------ probe

    def probe(self) -> bool:
        """Whether to change now; the same in all processes."""
        if self.joining or not self._engine:
            return self.joining
        requested = None
        if self.comm.rank == 0 and self._link is not None:
            with contextlib.suppress(OSError):
                requested = self._link.requested()
                if requested is not None and not self._link.may_begin(requested["id"]):
                    requested = None
        self._requested = self.comm.bcast(requested)
        if self._requested is not None:
            self._id, self._park = self._requested["id"], self._requested["park"]
        return self._requested is not None

    def need(self, minimum: int, maximum: int) -> None:
        """Tells the scheduler how many nodes the program can use from now on."""
        if self.comm.rank == 0 and self._link is not None:
            self._link.say(op="bounds", min=minimum, max=maximum)

    # ------------------------------------------------------------------ the window

    @contextlib.contextmanager
    def window(self, phase: int = 0) -> Iterator[Window]:
        """Opens the window, and closes it at the end of the block."""
        window = self._begin(phase)
        yield window
        self._commit(window)
        self.joining, self._requested = False, None

    def _begin(self, phase: int) -> Window:
        if self.joining and self._engine == "relaunch":
            return self._returned()
        if self.joining or (self._requested["kind"] == "grow" and self._engine == "join"):
            return self._joined(phase)
        if self._requested["kind"] == "shrink":
            leaves = node() in self._requested["remove"]
            all_leave = self.comm.allgather(leaves)
            after = [rank for rank, leaving in enumerate(all_leave) if not leaving]
            return Window(self.comm, list(range(self.comm.size)), after, phase, "shrink")
        if all(self.comm.allgather(self._parked(self.comm.rank, self.comm.size, phase))):
            self._end_parked()
        return self._called_off(phase, "The data could not be kept in memory.")

    def _called_off(self, phase: int, why: str) -> Window:
        self._say("cancelled", reason=why)
        same = list(range(self.comm.size))
        return Window(self.comm, same, same, phase, "")

    def _joined(self, phase: int) -> Window:
        port = env("PORT") if self.joining else self._port
        before = None if self.joining else (self.comm.size, phase, self.shared)
        merged = _meet(self.comm, port, accept=not self.joining)
        if merged is None:
            if self.joining:
                self._leave()
            return self._called_off(phase, "The new processes did not connect.")
        size, phase, self.shared = merged.bcast(before)
        return Window(merged, list(range(size)), list(range(merged.size)), phase, "grow")

    def _file(self) -> Path:
        return Path(self._park) / f"{node()}.{os.environ.get('SLURM_LOCALID', '0')}.pickle"

    def _parked(self, rank: int, size: int, phase: int) -> bool:
        try:
            Path(self._park).mkdir(mode=0o700, exist_ok=True)
            if Path(self._park).lstat().st_uid != os.getuid():
                return False
            with self._file().open("wb") as file:
                pickle.dump((rank, size, phase, self.shared, self.kept), file, protocol=5)
        except OSError:
            return False
        return True

    def _end_parked(self) -> None:
        self.comm.Barrier()
        self._say("parked")
        self._leave()

    def _returned(self) -> Window:
        """After a relaunch: the processes that find data are the former ones."""
        rank, phase, shared = None, 0, None
        if self._file().exists():
            if Path(self._park).lstat().st_uid != os.getuid():
                self.comm.Abort(1)
            with self._file().open("rb") as file:
                rank, _, phase, shared, self.kept = pickle.load(file)
        each = self.comm.allgather(rank)
        found = sorted((old, new) for new, old in enumerate(each) if old is not None)
        if not found or [old for old, _ in found] != list(range(len(found))):
            self.comm.Abort(1)
        before = [new for _, new in found]
        phase, self.shared = self.comm.bcast((phase, shared), root=before[0])
        return Window(self.comm, before, list(range(self.comm.size)), phase, "return")

    def _commit(self, window: Window) -> None:
        left = 0
        if window.kind == "grow":
            self.comm.Disconnect()
            self.comm = window.merged
        elif window.kind == "shrink":
            left = self._commit_leaving(window)
        elif window.kind == "return":
            # All have their data. It is dropped once the launcher was told: until then it may
            # start the program again, and that would find nothing.
            self.comm.Barrier()
            self._say("done", left=0)
            self.comm.Barrier()
            with contextlib.suppress(OSError):
                self._file().unlink()
            with contextlib.suppress(OSError):
                Path(self._park).rmdir()
        if window.kind in ("grow", "shrink"):
            self._say("done", left=left)

    def _commit_leaving(self, window: Window) -> int:
        old, rank = self.comm, self.comm.rank
        stays = rank in window.after
        if self._engine == "relaunch":
            if stays and not self._parked(
                window.after.index(rank), len(window.after), window.phase
            ):
                self.comm.Abort(1)
            self._end_parked()
        connection = None if stays else say_remotely("leaving", id=self._id)
        comm = old.Split(0 if stays else MPI.UNDEFINED, rank)
        old.Disconnect()
        if not stays:
            if connection is not None:
                # The launcher sees by its end that the process is gone, and nothing earlier may
                # end it: Python would close a socket some time before the process is.
                connection.detach()
            self._leave()
        self.comm = comm
        return len(window.before) - len(window.after)

    def _say(self, op: str, **more: Any) -> None:
        if self._link is not None:
            self._link.outcome(op, self._id, **more)

    def finalize(self) -> None:
        """Ends MPI."""
        if self._link is not None:
            self._link.say(op="bye")
            self._link.close()
        self.comm.Disconnect()
        MPI.Finalize()


@contextlib.contextmanager
def _errors_return(comm: Any) -> Iterator[None]:
    """Errors become exceptions, also where the program has made them fatal."""
    handlers = [(one, one.Get_errhandler()) for one in (comm, MPI.COMM_WORLD)]
    for one, _ in handlers:
        one.Set_errhandler(MPI.ERRORS_RETURN)
    try:
        yield
    finally:
        for one, handler in handlers:
            one.Set_errhandler(handler)


def _meet(comm: Any, port: str, *, accept: bool) -> Any:
    """The merged communicator of accepting and connecting processes, or none.

    Only the port of rank 0 matters.
    """
    with _errors_return(comm):
        try:
            if accept:
                inter = comm.Accept(port, MPI.Info.Create({"timeout": ACCEPT_S}))
            else:
                inter = comm.Connect(port)
            merged = inter.Merge(not accept)
            inter.Disconnect()
        except MPI.Exception:
            return None
    return merged


def move_blocks(window: Window, kept: dict[str, Any], name: str, count: int) -> None:
    """Redistributes an array whose rows are held in blocks to the new processes.

    Part p of P holds the rows from count*p//P to count*(p+1)//P. `kept[name]` is this process's
    part, a NumPy array (rows, ...); joining processes need not have one.
    """
    import numpy as np  # noqa: PLC0415 - for those who use it

    merged = window.merged
    shape = merged.bcast(
        (kept[name].shape[1:], kept[name].dtype) if merged.rank == window.before[0] else None,
        root=window.before[0],
    )
    parts = []
    for ranks in (window.before, window.after):
        part = ranks.index(merged.rank) if merged.rank in ranks else None
        parts.append(_span(count, part, len(ranks)))
    sends = [np.empty((0, *shape[0]), shape[1])] * merged.size
    for part, rank in enumerate(window.after):
        low, high = _overlap(parts[0], _span(count, part, len(window.after)))
        if high > low:
            sends[rank] = kept[name][low - parts[0][0] : high - parts[0][0]]
    pieces = merged.alltoall(sends)
    kept[name] = np.concatenate([pieces[rank] for rank in window.before])


def _span(count: int, part: int | None, parts: int) -> tuple[int, int]:
    return (0, 0) if part is None else (count * part // parts, count * (part + 1) // parts)


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return max(one[0], other[0]), min(one[1], other[1])


__all__ = ["Elastic", "Window", "move_blocks"]
