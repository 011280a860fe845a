# SPDX-License-Identifier: Apache-2.0
"""What the server asks of its scheduler besides scheduling.

Rules
    1. A job that an operator runs (`qrun`) is run at once, and the operator is answered.
    2. A job that a manager wants to resume is resumed when its vnodes have room again.
    3. Reservations that wait for an answer are confirmed or denied; one that still waits then is
       answered again after `ANSWER_S`, a degraded one after `DEGRADED_S`.
    4. The server answers a resume when the moms of the job have. Only the registered connection may
       send it, so that a mom that does not answer would block the link: after `RESUME_S` the
       registration has to be renewed, and the job is not resumed for `RESUME_AGAIN_S`.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bridge.pbs.ifl.port import Code, Ifl
from bridge.pbs.link.deadline import within
from bridge.pbs.link.execution import DecisionExecution
from bridge.pbs.link.model import Checked, Model
from bridge.pbs.link.reading import ServerReading
from bridge.pbs.link.registration import Registration
from bridge.pbs.orders import Confirmation, Refusal, StartOrder
from bridge.pbs.tables import Tables, text

_log = logging.getLogger(__name__)

RESUME_S, RESUME_AGAIN_S = 3.0, 300.0
ANSWER_S, DEGRADED_S = 5.0, 60.0
_UNCONFIRMED, _DEGRADED = {"1", "11"}, {"10", "12"}
_SUSPENDED_BY_SCHEDULER = "45"


@dataclass
class ServerRequests:
    """Answers the server.

    Attributes:
        wake: set when something has changed.
        clock: monotonic, s.
        within: makes a call that may not return in time; None: it has not.
    """

    ifl: Ifl
    registration: Registration
    model: Model
    reading: ServerReading
    execution: DecisionExecution
    wake: threading.Event
    clock: Callable[[], float] = time.monotonic
    within: Callable[[float, Callable[[], int]], int | None] = within
    _answer_due_s: dict[str, float] = field(default_factory=dict)
    _resume_due_s: dict[str, float] = field(default_factory=dict)

    def answer(self, tables: Tables) -> bool:
        """Answers everything; False: the registration has to be renewed (rule 4)."""
        commands, primary = self.registration.commands, self.registration.primary
        if commands is None or primary is None:
            return True
        checked: Checked | None = None
        while commands.wanted:
            checked = checked or self.model.checked(tables)
            self._run_now(tables, checked, commands.wanted.popleft(), primary)
        for job_id, job in tables.jobs.items():
            if text(job, "substate") == _SUSPENDED_BY_SCHEDULER:
                checked = checked or self.model.checked(tables)
                if checked.resume(job_id) is None and not self._resume(primary, job_id):
                    return False
        for name, reservation in tables.reservations.items():
            new = text(reservation, "reserve_state") in _UNCONFIRMED
            degraded = text(reservation, "reserve_substate") in _DEGRADED
            if (new or degraded) and self._may_confirm(name, ANSWER_S if new else DEGRADED_S):
                self._confirm(primary, name, self.model.reservation(tables, name))
        return True

    def _run_now(self, tables: Tables, checked: Checked, job_id: str, primary: int) -> None:
        found = checked.run_now(job_id)
        if isinstance(found, StartOrder):
            refused = self.execution.send(tables, checked, found, 0, job_id)
            found = refused if refused is not None else found
        code = found.code or int(Code.UNAVAILABLE) if isinstance(found, Refusal) else 0
        why = found.text if isinstance(found, Refusal) else ""
        self.ifl.answer_run(primary, job_id, code, why)
        _log.info("qrun %s: %s", job_id, why or "started")

    def _resume(self, primary: int, job_id: str) -> bool:
        """Resumes a suspended job; False: its moms have not answered in time."""
        now = self.clock()
        if now < self._resume_due_s.get(job_id, now):
            return True
        code = self.within(RESUME_S, lambda: self.ifl.signal(primary, job_id, "resume"))
        self.wake.set()
        if code is not None:
            _log.info("resume %s: %s", job_id, code or "accepted")
            return True
        _log.warning("resume %s: no answer of its moms within %g s: registering again", job_id,
                     RESUME_S)  # fmt: skip
        self._resume_due_s = {each: at for each, at in self._resume_due_s.items() if at > now}
        self._resume_due_s[job_id] = now + RESUME_AGAIN_S
        return False

    def _may_confirm(self, name: str, wait_s: float) -> bool:
        now = self.clock()
        if now < self._answer_due_s.get(name, now):
            return False
        self._answer_due_s = {each: at for each, at in self._answer_due_s.items() if at > now}
        self._answer_due_s[name] = now + wait_s
        return True

    def _confirm(self, primary: int, name: str, answer: Confirmation | None) -> None:
        if answer is None:
            return
        code = self.ifl.confirm_reservation(
            primary, name, answer.location, answer.start_s, answer.extend
        )
        if code:
            _log.warning("reservation %s: the server refuses the answer (%d)", name, code)
        self.reading.expect_change()
        self.wake.set()
