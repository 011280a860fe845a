# SPDX-License-Identifier: Apache-2.0
"""What a reader found: the jobs, and the entries that it could not read.

An entry stops no other, whatever it holds: `take` is the one way by which readers make records.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bridge.files import MemoryBudget, held_bytes, history_budget
from bridge.lab.sim.workloads.records.job_record import JobRecord, Outage, ReservationRecord
from bridge.line_text import on_one_line

MAX_MESSAGES = 20

_T = TypeVar("_T")


@dataclass
class AccountingRecords:
    """Records, and faults of the input.

    Attributes:
        jobs: id to the latest record of the job.
        outages, reservations: in the order of the input.
        faults: how many entries could not be read.
        messages: on the first of them, each with its place.
        repeated: records of a job that a later one replaced.
    """

    reader: str
    jobs: dict[str, JobRecord] = field(default_factory=dict)
    outages: list[Outage] = field(default_factory=list)
    reservations: list[ReservationRecord] = field(default_factory=list)
    faults: int = 0
    messages: list[str] = field(default_factory=list)
    repeated: int = 0
    budget: MemoryBudget = field(default_factory=history_budget)

    def take(
        self, where: str, add: Callable[[_T], None], make: Callable[..., _T], *given: Any
    ) -> None:
        """Makes a record of an entry and adds it; one of which none can be made is a fault.

        Args:
            where: the entry's place in the input.
            make: makes the record, or raises anything.
            given: to `make`.

        Raises:
            OSError: the records would need too much memory.
        """
        try:
            record = make(*given)
        except Exception as error:
            self.fault(where, error if str(error) else type(error).__name__)
        else:
            add(record)

    def add(self, job: JobRecord) -> None:
        """Takes a job; of several records of one job the last counts.

        Raises:
            OSError: the records would need too much memory.
        """
        if job.id not in self.jobs:
            self._count(job)
        self.repeated += job.id in self.jobs
        self.jobs[job.id] = job

    def add_outage(self, outage: Outage) -> None:
        """Takes an outage; raises as `add`."""
        self._count(outage)
        self.outages.append(outage)

    def add_reservation(self, reservation: ReservationRecord) -> None:
        """Takes a reservation; raises as `add`."""
        self._count(reservation)
        self.reservations.append(reservation)

    def _count(self, record: JobRecord | Outage | ReservationRecord) -> None:
        self.budget.take(held_bytes(list(vars(record).values())))

    def fault(self, where: str, what: object) -> None:
        """Counts an entry that cannot be read."""
        self.faults += 1
        if len(self.messages) < MAX_MESSAGES:
            text = f"{where}: {str(what)[:200]}".encode("utf-8", "backslashreplace").decode()
            self.messages.append(on_one_line(text))

    def join(self, other: "AccountingRecords") -> None:
        """Takes what another reading found."""
        for job in other.jobs.values():
            self.add(job)
        for outage in other.outages:
            self.add_outage(outage)
        for reservation in other.reservations:
            self.add_reservation(reservation)
        self.faults += other.faults
        self.messages = (self.messages + other.messages)[:MAX_MESSAGES]
        self.repeated += other.repeated
