# SPDX-License-Identifier: Apache-2.0
"""The machine of the service: the real session, decider, announcements and store, without sockets.

The service's modules see this machine's clock and disk, and one thread: the store's writer runs
when the schedule lets it. The process can be killed at the n-th line it executes.
"""

import queue
import sqlite3
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import bridge
from bridge.errors import BridgeError
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.site_rules.rules_text import PlanningSection
from bridge.registry import build, parse_policy
from bridge.rpc.controller.announcements import Announcements
from bridge.rpc.controller.cycles import CycleReport, Cycles
from bridge.rpc.controller.policy_switch import PolicySwitch
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.session import Session
from bridge.rpc.transport.status_codes import code_of
from bridge.safe_cycle.decider import Decider
from bridge.state.store import AGAIN_S, LINGER_S, Store
from tests.simulation.whole.disk import Disk
from tests.simulation.whole.history import History
from tests.simulation.whole.network import Failed
from tests.simulation.whole.schedule import Clock, Schedule

BOOT_MS = 1_500
RETRY_S = 30
_PACKAGE = str(Path(bridge.__file__).parent)


class Crash(BaseException):
    """The process is killed here."""


class _Idle(BaseException):
    """The writer has nothing to do, for so many seconds at least."""

    def __init__(self, for_s: float | None = None) -> None:
        self.for_s = for_s


class _Queue:
    """`queue.SimpleQueue` for one thread."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()

    def put(self, item: Any) -> None:
        self._items.append(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if self._items:
            return self._items.popleft()
        if not block or (timeout is not None and timeout <= 0):
            raise queue.Empty
        raise _Idle(timeout)

    def get_nowait(self) -> Any:
        return self.get(block=False)

    def empty(self) -> bool:
        return not self._items

    def qsize(self) -> int:
        return len(self._items)


class _Event:
    """`threading.Event` that nobody else sets while one waits for it."""

    def __init__(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        del timeout
        return self._set

    def set(self) -> None:
        self._set = True

    def clear(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set


class _Thread:
    """`threading.Thread` that runs when it is let, until it would wait."""

    made: list["_Thread"] = []  # noqa: RUF012

    def __init__(self, target: Callable[..., None], name: str = "", daemon: bool = False,
                 args: tuple[Any, ...] = ()) -> None:  # fmt: skip
        del name, daemon
        self._target, self._args = target, args
        self._ended = False
        _Thread.made.append(self)

    def start(self) -> None:
        self.run_until_idle()

    def run_until_idle(self) -> float | None:
        """Returns after how many seconds it would go on by itself; None: it would not."""
        if self._ended:
            return None
        try:
            self._target(*self._args)
        except _Idle as idle:
            return idle.for_s
        self._ended = True
        return None

    def is_alive(self) -> bool:
        return not self._ended

    def join(self, timeout: float | None = None) -> None:
        del timeout
        self.run_until_idle()


class _Module:
    """A module with some names replaced."""

    def __init__(self, module: Any, **replaced: Any) -> None:
        self._module = module
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


@contextmanager
def one_thread(clock: Clock, disk: Disk) -> Iterator[None]:
    """Gives the service's modules this machine's clock and disk, and its store no thread."""
    threads = _Module(threading, Thread=_Thread, Event=_Event)
    queues = _Module(queue, SimpleQueue=_Queue)
    changed: list[tuple[Any, str, Any]] = []
    for name, module in list(sys.modules.items()):
        if not name.startswith("bridge."):
            continue
        for attribute, real, replaced in (
            ("time", time, clock), ("sqlite3", sqlite3, disk),
            ("threading", threading, threads), ("queue", queue, queues),
        ):  # fmt: skip
            if getattr(module, attribute, None) is real:
                if attribute in ("threading", "queue") and name != "bridge.state.store":
                    continue
                changed.append((module, attribute, real))
                setattr(module, attribute, replaced)
    try:
        yield
    finally:
        for module, attribute, real in changed:
            setattr(module, attribute, real)


class Host:
    """Lives of the service, one after the other.

    Attributes:
        clock: of this machine.
        up: the service runs.
        policy, rules: what its configuration says.
        kill_at: the process dies at this line of the next call, or of the writer's next turn.
        stalled_until_ms: it does not answer before.
    """

    def __init__(
        self, schedule: Schedule, history: History, disk: Disk, *, policy: str | dict[str, Any],
        rules: dict[str, Any], seed: int,
    ) -> None:  # fmt: skip
        self.clock = Clock(schedule)
        self.up = False
        self.policy, self.rules = policy, rules
        self.kill_at: tuple[str, int, float | None, int] | None = None
        self._schedule, self._history, self._disk, self._seed = schedule, history, disk, seed
        self._life = 0
        self._failures = 0
        self._call = 0

    def _note(self, kind: str, **what: Any) -> None:
        self._history.add(self._schedule.now_ms, kind, **what)

    # ------------------------------------------------------------ lives

    def boot(self) -> None:
        """Starts the service; tries again in a while if that is impossible."""
        if self.up:
            return
        _Thread.made.clear()
        self._life += 1
        self._again_ms = -1
        try:
            self._store = Store(self._disk.path)
            state = self._store.state()
        except Exception as error:
            if not isinstance(error, BridgeError):
                self._note("exception", method="start", text=f"{type(error).__name__}: {error}")
            self._note("no_service", life=self._life, why=str(error))
            self._disk.release()
            self._schedule.after(5_000, self.boot)
            return
        spec, planning = parse_policy(self.policy), PlanningSection.model_validate(self.rules)
        self._decider = Decider(build(spec), state, seed=self._seed, site=planning.site())
        self._store.watch(lambda: self._decider.state)
        self._switch = PolicySwitch(spec, self._decider, planning=planning.plain())
        self._failures = 0
        self._cycles = Cycles(
            self._decide,
            session=Session(RETRY_S, clock=self.clock.monotonic),
            announcements=Announcements(),
            service="schedbridge",
            policy=self._switch.name,
            site=lambda: self._decider.site,
            observers=(self,),
        )
        self.up = True
        self._note(
            "service_up", life=self._life, epoch=self._cycles.service_epoch,
            policy=self._switch.name(), rules=self.rules, on_disk=self._disk.written(),
            carried=self._carried(),
        )  # fmt: skip

    def _decide(self, snapshot: Snapshot) -> Plan:
        self._decider.state = self._store.catch_up(self._decider.state)
        return self._decider.decide(snapshot)

    def stop(self, again_ms: int = BOOT_MS) -> None:
        """Ends the service in an orderly way, as SIGTERM does."""
        if not self.up:
            return
        self.up = False
        self._store.close()
        carried = self._carried()
        self._disk.release()
        self._note("service_down", life=self._life, how="stopped", on_disk=self._disk.written(),
                   carried=carried)  # fmt: skip
        self._schedule.after(again_ms, self.boot)

    def _carried(self) -> dict[str, int] | None:
        """Announced starts that the policy keeps to; None where the file cannot hold them."""
        if self._disk.full or self._store.problem:
            return None
        return dict(self._decider.state.promises.start_s)

    def die(self, cut: float | None, again_ms: int, where: str = "") -> None:
        """The process is killed, or (`cut`) the machine loses power."""
        if not self.up:
            return
        self.up = False
        said = self._disk.crash(cut)
        how = "killed" if cut is None else "power"
        self._note("service_down", life=self._life, how=how, files=said, where=where,
                   on_disk=self._disk.written())  # fmt: skip
        self._schedule.after(again_ms, self.boot)

    @contextmanager
    def _mortal(self, what: str) -> Iterator[None]:
        """Where the process may be killed; raises `Crash` if it is."""
        if self.kill_at is None or self.kill_at[0] != what:
            yield
            return
        _, line, cut, again_ms = self.kill_at
        self.kill_at = None
        left = line
        where = "after its last line"

        def trace(frame: FrameType, event: str, _arg: object) -> Any:
            nonlocal left, where
            if not frame.f_code.co_filename.startswith(_PACKAGE):
                return None
            if event == "line":
                left -= 1
                if left == 0:
                    name = frame.f_code.co_filename.removeprefix(_PACKAGE)
                    where = f"bridge{name}:{frame.f_lineno}"
                    raise Crash
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            yield
        except Crash:
            pass
        finally:
            sys.settrace(before)
        self.die(cut, again_ms, f"{what}: {where}")
        raise Crash

    # ------------------------------------------------------------ work

    def serve(self, method: str, data: bytes, number: int, waits: Callable[[], bool]) -> bytes:
        """Answers a call.

        Raises:
            Failed: as the caller sees it.
        """
        if not self.up:
            raise Failed("UNAVAILABLE", "nobody answers")
        self._call = number
        try:
            with self._mortal("call"):
                if method == "Hello":
                    hello = pb.HelloRequest.FromString(data)
                    welcome = self._cycles.greet(hello).SerializeToString()
                    self._note("greeted", call=number, epoch=hello.epoch)
                    return welcome
                reply = self._cycles.run(pb.CycleRequest.FromString(data), waits)
            self._note_reply(number, reply)
            return reply.SerializeToString()
        except Crash:
            raise Failed("UNAVAILABLE", "connection closed") from None
        except BridgeError as error:
            code = code_of(error).name
            self._note("refused_call", call=number, method=method, code=code, text=str(error))
            raise Failed(code, str(error)) from None
        except Exception as error:
            self._note(
                "exception", call=number, method=method, text=f"{type(error).__name__}: {error}"
            )
            raise Failed("INTERNAL", str(error)) from None

    def _note_reply(self, number: int, reply: pb.CycleReply) -> None:
        if reply.need_full or not reply.service_epoch:
            self._note("need_full" if reply.need_full else "not_wanted", call=number)
            return
        starts, plans, others = [], {}, 0
        for decision in reply.decisions:
            kind = decision.WhichOneof("action")
            if kind == "start":
                starts.append(
                    [decision.id, decision.job_id, decision.job_version, decision.start.nodes,
                     decision.start.partition]
                )  # fmt: skip
            elif kind == "planned_start":
                plans[decision.job_id] = decision.planned_start.start_s
            else:
                others += 1
                if kind == "pending":
                    plans[decision.job_id] = 0
        self._note(
            "reply", call=number, life=self._life, epoch=reply.service_epoch,
            generation=reply.generation, wake_s=reply.wake_after_s, starts=starts, plans=plans,
            ids=[decision.id for decision in reply.decisions], known=self._known(),
        )  # fmt: skip
        if self._decider.failures > self._failures:
            plan = self._cycles.published.plan if self._cycles.published else None
            self._note("failed", call=number, notes=list(plan.notes) if plan else [])
            self._failures = self._decider.failures

    def _known(self) -> dict[str, Any]:
        """The world that was planned: usable nodes and their CPUs, who waits, who holds nodes."""
        if self._cycles.published is None:
            return {}
        snapshot = self._cycles.published.snapshot
        nodes, jobs = snapshot.nodes, snapshot.jobs
        table = zip(nodes.names, nodes.usable.tolist(), nodes.capacity[:, 0].tolist(), strict=True)
        return {
            "nodes": {name: cpus for name, usable, cpus in table if usable},
            "waiting": sorted(jobs.id.tolist()),
            "begins": dict(zip(jobs.id.tolist(), jobs.begin_s.tolist(), strict=True)),
            "holding": sorted(snapshot.running.id.tolist()),
            "rooms": {room.name: room.up for room in snapshot.partitions},
        }

    def cycle(self, report: CycleReport) -> None:
        """Takes note of a finished cycle (`bridge.rpc.controller.cycles.Observer`)."""
        if report.results:
            counted = {f"{name} {code}": n for (name, code), n in report.results.items()}
            self._note("counted", call=self._call, life=self._life, counted=counted)
        if report.happened is not None:
            self._store.took(report.happened)
            life = self._life
            self._schedule.after(int(LINGER_S * 1000), lambda: self._write(life))

    def _write(self, life: int) -> None:
        """Lets the store's writer run until it has nothing to do."""
        if not self.up or life != self._life:
            return
        now_ms, again = self._schedule.now_ms, False
        try:
            with self._mortal("write"):
                for thread in _Thread.made:
                    again_s = thread.run_until_idle()
                    if again_s is None:
                        continue
                    again, due_ms = True, now_ms + int(again_s * 1000) + 1
                    if not now_ms < self._again_ms <= due_ms:
                        self._again_ms = due_ms
                        self._schedule.at(due_ms, lambda: self._write(life))
        except Crash:
            return
        since_ms = now_ms - self._disk.freed_ms
        waits = again and since_ms <= 1000 * AGAIN_S  # it writes again by itself, in time
        full = self._disk.full or waits or bool(self._store.problem)
        self._note("written", life=life, full=full, on_disk=self._disk.written())

    # ------------------------------------------------------------ operators

    def set_policy(self, policy: str) -> None:
        """`schedbridge policy set`, and the same in the configuration file."""
        self.policy = policy
        if self.up:
            self._switch.replace(policy, self._cycles)
        self._note("policy", name=policy)

    def set_rules(self, rules: dict[str, Any]) -> None:
        """Edits the section `planning` and sends SIGHUP."""
        self.rules = rules
        if self.up:
            self._switch.obey(PlanningSection.model_validate(rules), self._cycles)
        self._note("rules", rules=rules)

    def step_clock(self, seconds: int) -> None:
        self.clock.offset_ms += seconds * 1000
        self._note("clock", who="service", step_s=seconds)
