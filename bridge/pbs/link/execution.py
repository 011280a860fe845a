# SPDX-License-Identifier: Apache-2.0
"""Carries out decisions of the service: starts after the last check, and announcements.

Rules
    1. A start is sent if the last check admits it, and followed until the job is seen running
       (`starts.py`).
    2. What is not sent is reported with the reason.
    3. Hundreds of starts at once may take longer than the watchdog waits: each is a sign of life.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from bridge.pbs.ifl.port import Code, Ifl
from bridge.pbs.link.announcer import Announcer
from bridge.pbs.link.figures import Figures
from bridge.pbs.link.model import Checked, Model
from bridge.pbs.link.parent import Heartbeat
from bridge.pbs.link.reading import ServerReading
from bridge.pbs.link.registration import Registration
from bridge.pbs.link.starts import Open, OpenStarts
from bridge.pbs.orders import Refusal, StartOrder
from bridge.pbs.tables import Attributes, Tables, text
from bridge.rpc.pb import scheduler_pb2 as pb

_BUSY = {Code.UNAVAILABLE, Code.MOM_REJECTED, Code.NO_MOM}
_STALE = {Code.UNKNOWN_JOB, Code.BAD_STATE, Code.JOB_ALTERED}


@dataclass
class DecisionExecution:
    """Sends what was decided to a server.

    Attributes:
        scheduler: name of the scheduler object.
        clock: monotonic, s.
    """

    scheduler: str
    ifl: Ifl
    registration: Registration
    model: Model
    reading: ServerReading
    starts: OpenStarts
    announcer: Announcer
    heartbeat: Heartbeat
    figures: Figures
    clock: Callable[[], float] = time.monotonic

    def carry_out(self, tables: Tables, reply: pb.CycleReply) -> list[pb.Fate]:
        """Carries out all decisions of a reply; returns the results that are known at once.

        Raises:
            IflError: the server does not answer, or refuses a query.
        """
        began, results = self.clock(), list[pb.Fate]()
        starts = [each for each in reply.decisions if each.WhichOneof("action") == "start"]
        if starts:
            tables = self.reading.read_before_starts()
            checked = self.model.checked(tables)
            for decision in starts:
                self.heartbeat.beat()
                refusal = self._start(tables, checked, decision)
                if refusal is not None:
                    results.append(_result(decision, refusal))
            self.figures.send_ms = (self.clock() - began) * 1e3
        for decision in reply.decisions:
            match decision.WhichOneof("action"):
                case "start":
                    continue
                case "planned_start" | "pending":
                    if decision.job_id in tables.jobs:  # not what stands for a reservation
                        self.announcer.write(*self.model.announcement(tables, decision))
                case other:
                    refusal = Refusal(pb.OUTCOME_INVALID, 0, f"no action '{other}' here")
                    results.append(_result(decision, refusal))
        return results

    def is_off(self, tables: Tables) -> bool:
        """Whether an administrator has switched scheduling off; the server enforces nothing."""
        object_ = tables.server if self.scheduler == "default" else tables.sched
        return text(object_, "scheduling") == "False"

    def _start(self, tables: Tables, checked: Checked, decision: pb.Decision) -> Refusal | None:
        """Sends a start; None: it was accepted, and its result comes later."""
        if self.is_off(tables):
            return Refusal(pb.OUTCOME_BUSY, 0, "scheduling is off (qmgr)")
        found = checked.admit(decision)
        if isinstance(found, Refusal):
            return found
        return self.send(tables, checked, found, decision.id, decision.job_id)

    def send(
        self, tables: Tables, checked: Checked, run: StartOrder, decision_id: int, wire_id: str
    ) -> Refusal | None:
        """Sends an admitted start; None: the server accepted it.

        Args:
            checked: the last check, which admitted it.
            decision_id: the decision id of the service; 0: an operator asked for it.
            wire_id: the job as the service knows it: of a task its array.
        """
        primary = self.registration.primary
        if primary is None or run.job_id in self.starts:
            return Refusal(pb.OUTCOME_BUSY, 0, "a start of it is under way")
        if run.walltime_s is not None:
            limit: Attributes = {"Resource_List": {"walltime": str(run.walltime_s)}}
            if code := self.ifl.alter_checked(primary, run.job_id, limit):
                checked.withdraw(run)
                return Refusal(pb.OUTCOME_REFUSED, code, f"its walltime cannot be set ({code})")
        code = self.ifl.run(primary, run.job_id, run.exec_vnode)
        if code:
            checked.withdraw(run)
            return _refusal(code)
        ran = text(tables.jobs.get(run.job_id, {}), "run_count")
        self.starts.add(
            Open(
                decision_id, wire_id, run.job_id, run.exec_vnode, self.clock(),
                int(ran) if ran.isdecimal() else 0,
            )
        )  # fmt: skip
        if run.job_id == wire_id:
            self.announcer.forget(wire_id)
        self.figures.starts += 1
        return None


def _result(decision: pb.Decision, refusal: Refusal) -> pb.Fate:
    return pb.Fate(
        decision_id=decision.id,
        job_id=decision.job_id,
        outcome=refusal.result,
        code=refusal.code,
        text=refusal.text,
    )


def _refusal(code: int) -> Refusal:
    if code in _STALE:
        return Refusal(pb.OUTCOME_STALE, code, f"the server: not in a state to run ({code})")
    if code in _BUSY:
        return Refusal(pb.OUTCOME_BUSY, code, f"the server: its vnodes are not available ({code})")
    return Refusal(pb.OUTCOME_REFUSED, code, f"the server refuses to run it ({code})")
