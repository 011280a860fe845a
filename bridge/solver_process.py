# SPDX-License-Identifier: Apache-2.0
"""A solver that can be killed: CP-SAT in a separate process, which reports each better solution.

Rules
    1. The process is started for the first model, or earlier by `warm_up`, and then kept. It is
       replaced when it was killed or has died; after that, `warm_up` also starts a spare one. A
       process that is not ready yet is waited for, within the budget.
    2. The process is asked to stop shortly before the budget is spent. If it has not answered by
       `OVERRUN` of the budget after that, it is killed, and the last reported solution is used. So
       nothing depends on CP-SAT keeping its time limit.
    3. Without a budget the model is solved in this process.
    4. The process ends when this process ends or closes the pipe.

On the pipes there are frames: a length, then as many bytes. To the process: budget, effort, seed,
search, model. From it: one letter (R ready, I a better solution, D done, F failed), then two
doubles (objective, bound) and the values.
"""

import contextlib
import logging
import os
import select
import struct
import subprocess
import threading
import time
import weakref
from dataclasses import dataclass, field
from queue import SimpleQueue

import numpy as np

from bridge.core import ClockAlarm
from bridge.interpreter import python
from bridge.model.decisions.answer import CRASH, INFEASIBLE, STARTING, TIMEOUT, Answer
from bridge.ports import SolverRequest

_log = logging.getLogger(__name__)

OVERRUN = 0.03
"""Share of the budget by which the process may exceed it."""
HEADROOM = 0.05
"""Share of the budget that is reserved for returning the answer."""

_LENGTH = struct.Struct("<Q")
_REQUESTED = struct.Struct("<ddqQ")  # budget, effort, seed, length of the search text
_TOLD = struct.Struct("<cdd")
_PROGRAM = "from bridge.solver_process import answer_models; answer_models()"


class ChildSolver:
    """Solves in a separate process; see `bridge.ports.Solver`.

    Attributes:
        killed: number of processes that were killed because they exceeded their time.
    """

    def __init__(self) -> None:
        self.killed = 0
        self._began = time.monotonic()
        self._child: _Child | None = None
        self._spare: _Child | None = None
        self._living: list[_Child] = []
        self._dying: list[_Child] = []
        self._replaced = False
        weakref.finalize(self, _kill_all, self._living)

    def begin(self) -> None:
        self._began = time.monotonic()

    def elapsed_s(self) -> float:
        """Wall-clock time since it began."""
        return time.monotonic() - self._began

    def alarm(self, left_s: float) -> ClockAlarm:
        """An alarm by the wall clock."""
        return ClockAlarm(max(0, round(left_s * 1e6)))

    def warm_up(self) -> None:
        """Starts the process, without waiting for it."""
        self._dying = [child for child in self._dying if child.process.poll() is None]
        if self._child is None:
            self._child = self._new()
        elif self._replaced and self._spare is None:
            self._spare = self._new()

    def wait_ready(self, max_s: float) -> None:
        """Waits until the process, if one was started, is ready."""
        if self._child is not None:
            self._child.wait_ready(time.monotonic() + max_s)

    def close(self) -> None:
        """Ends the process."""
        _kill_all(self._living)
        _kill_all(self._dying)
        self._child = self._spare = None

    def solve(self, request: SolverRequest) -> Answer:
        """Returns the best solution that came in time."""
        requested_at = time.monotonic()
        if not request.budget_s:
            from bridge.planning.dispatch.cp_sat import InProcess  # noqa: PLC0415  slow to import

            return InProcess().solve(request)
        until = requested_at + request.budget_s * (1 + OVERRUN)
        self.warm_up()
        child = self._child
        assert child is not None
        if not child.wait_ready(until):
            if child.dead:
                _log.error("the solver's process died before it was ready")
                self._replace()
                return Answer(None, problem=CRASH)
            return Answer(None, problem=STARTING)
        left_s = request.budget_s * (1 - HEADROOM) - (time.monotonic() - requested_at)
        if not child.ask(request, max(left_s, 0.001), until):
            killed = not child.dead
            self.killed += killed
            self._replace()
            return Answer(None, killed=killed, problem=TIMEOUT if killed else CRASH)
        answer = child.answer(until)
        if not child.done:
            if child.dead:
                _log.error("the solver's process died while it solved")
                self._replace()
                return answer
            self.killed += 1
            self._replace()
        return answer

    def _replace(self) -> None:
        gone = self._child
        if gone is not None:
            self._living.remove(gone)
            gone.end()
            self._dying.append(gone)
        self._replaced = True
        self._child, self._spare = self._spare or self._new(), None

    def _new(self) -> "_Child":
        child = _Child()
        self._living.append(child)
        return child


def _kill_all(living: "list[_Child]") -> None:
    while living:
        living.pop().kill()


@dataclass
class _Best:
    """The best solution that came so far."""

    values: "np.ndarray[tuple[int], np.dtype[np.int64]] | None" = None
    objective: float = float("inf")
    bound: float = float("-inf")


@dataclass
class _Child:
    """One process and the pipes to it.

    Attributes:
        ready: it has said so.
        done: it has answered what it was asked last.
        dead: it has closed its pipe.
    """

    ready: bool = False
    done: bool = True
    dead: bool = False
    process: "subprocess.Popen[bytes]" = field(init=False)
    _buffer: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        self.process = subprocess.Popen(
            python("-c", _PROGRAM),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # this process handles an interrupt at the terminal
        )
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)

    def kill(self) -> None:
        """Ends it, and waits until it is gone."""
        self.end()
        self.process.wait()

    def end(self) -> None:
        """Ends it at once."""
        self.dead = True
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()

    def wait_ready(self, until: float) -> bool:
        """Waits until it reports that it is ready; False: it did not in time."""
        while not self.ready:
            frame = self._frame(until)
            if frame is None:
                return False
            self.ready = frame[:1] == b"R"
        return True

    def ask(self, request: SolverRequest, budget_s: float, until: float) -> bool:
        """Sends a model; False: it was not taken in time."""
        search, model = request.search.encode(), str(request.model.proto).encode()
        body = _REQUESTED.pack(budget_s, request.effort, request.seed, len(search)) + search + model
        left = memoryview(_LENGTH.pack(len(body)) + body)
        assert self.process.stdin is not None
        pipe = self.process.stdin.fileno()
        self.done = False
        while left:
            _, writable, _ = select.select([], [pipe], [], max(until - time.monotonic(), 0))
            if not writable:
                return False
            try:
                left = left[os.write(pipe, left) :]
            except BrokenPipeError:
                self.dead = True
                return False
        return True

    def answer(self, until: float) -> Answer:
        """Reads solutions until it is done, or the time is up."""
        best = _Best()
        while (frame := self._frame(until)) is not None:
            kind, objective, bound = _TOLD.unpack_from(frame)
            best.bound = max(best.bound, bound)
            if len(frame) > _TOLD.size and objective < best.objective:
                best.values = np.frombuffer(frame, dtype=np.int64, offset=_TOLD.size)
                best.objective = objective
            if kind in (b"D", b"F"):
                self.done = True
                if best.values is None:
                    return Answer(None, problem=INFEASIBLE if kind == b"F" else TIMEOUT)
                proved = best.bound >= best.objective
                return Answer(best.values, best.objective, best.bound, proved)
        if best.values is None:
            return Answer(None, killed=not self.dead, problem=CRASH if self.dead else TIMEOUT)
        return Answer(best.values, best.objective, best.bound, killed=not self.dead)

    def _frame(self, until: float) -> bytes | None:
        """The next frame; None: none came in time, or the process is dead."""
        assert self.process.stdout is not None
        pipe = self.process.stdout.fileno()
        while True:
            if len(self._buffer) >= _LENGTH.size:
                end = _LENGTH.size + _LENGTH.unpack_from(self._buffer)[0]
                if len(self._buffer) >= end:
                    frame = bytes(self._buffer[_LENGTH.size : end])
                    del self._buffer[:end]
                    return frame
            readable, _, _ = select.select([pipe], [], [], max(until - time.monotonic(), 0))
            if not readable:
                return None
            got = os.read(pipe, 1 << 20)
            if not got:
                self.dead = True
                return None
            self._buffer += got


# ------------------------------------------------------------------ in the other process


def answer_models() -> None:
    """Solves the models on standard input, until that is closed."""
    reading, writing = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # keep what libraries print out of the frames
    requested: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(reading, requested), daemon=True).start()

    from ortools.sat.python.cp_model import CpModel  # noqa: PLC0415  what makes it slow to start

    from bridge.planning.dispatch.cp_sat import run  # noqa: PLC0415

    def tell(kind: bytes, objective: float, bound: float, values: bytes = b"") -> None:
        frame = _TOLD.pack(kind, objective, bound) + values
        left = memoryview(_LENGTH.pack(len(frame)) + frame)
        while left:
            left = left[os.write(writing, left) :]

    tell(b"R", 0.0, 0.0)
    while True:
        body = requested.get()
        budget_s, effort, seed, length = _REQUESTED.unpack_from(body)
        text = _REQUESTED.size + length
        began = time.monotonic()
        model = CpModel()
        model.proto.parse_text_format(body[text:].decode())
        answer = run(
            model,
            effort=effort,
            budget_s=max(budget_s - (time.monotonic() - began), 0.001),
            seed=seed,
            search=body[_REQUESTED.size : text].decode(),
            incumbent=lambda values, objective, bound: tell(
                b"I", objective, bound, values.tobytes()
            ),
        )
        values = b"" if answer.values is None else answer.values.tobytes()
        kind = b"F" if answer.problem == INFEASIBLE else b"D"
        tell(kind, answer.objective, answer.bound, values)


def _listen(pipe: int, requested: "SimpleQueue[bytes]") -> None:
    """Puts requests into the queue; when the input ends, this process ends."""
    while True:
        head = _exactly(pipe, _LENGTH.size)
        requested.put(_exactly(pipe, _LENGTH.unpack(head)[0]))


def _exactly(pipe: int, length: int) -> bytes:
    found = bytearray()
    while len(found) < length:
        got = os.read(pipe, length - len(found))
        if not got:
            os._exit(0)
        found += got
    return bytes(found)
