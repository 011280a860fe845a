# SPDX-License-Identifier: Apache-2.0
"""The part of the batch interface that the link uses, as a protocol.

Rules of the interface
    1. A connection serves one call at a time; calls on different connections run at the same time.
    2. Actions return the server's error code, 0 for success. Queries raise `IflError`.
    3. A successful action says only that the server has accepted it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from bridge.errors import ControllerError
from bridge.pbs.tables import Attributes, Objects


class Code(IntEnum):
    """Error codes of the server that the link distinguishes (PBSE_...)."""

    NONE = 0
    UNKNOWN_JOB = 15001
    INVALID_REQUEST = 15004
    NO_PERMISSION = 15007
    BAD_HOST = 15008
    SYSTEM = 15010
    BAD_STATE = 15016
    PROTOCOL = 15031
    NO_SERVER = 15034
    UNKNOWN_RESOURCE = 15035
    MOM_REJECTED = 15041
    UNAVAILABLE = 15044
    UNKNOWN_NODE = 15062
    NO_MOM = 15070
    ENTITY_COUNT = 15142
    ENTITY_RESOURCE = 15143
    JOB_ALTERED = 15157
    SCHEDULER_CONNECTED = 15230
    LOST = -1
    """The connection ended, or the library states no code."""


class Command(IntEnum):
    """The commands of the server to its scheduler (SCH_...)."""

    NEW = 1
    TERM = 2
    TIME = 3
    CMD = 5
    CONFIGURE = 6
    QUIT = 7
    RULESET = 8
    FIRST = 9
    JOBRESV = 10
    AJOB = 11
    STARTQ = 12
    MVLOCAL = 13
    ETE_ON = 14
    RESV_RECONFIRM = 15
    RESTART_CYCLE = 16


@dataclass(frozen=True)
class ReceivedCommand:
    """One command.

    Attributes:
        command: its number; newer servers may send others than `Command` has.
        job_id: with `AJOB`, the job that an operator wants to run now.
    """

    command: int
    job_id: str = ""


class IflError(ControllerError):
    """A query or a connection failed.

    Attributes:
        code: the code of the server; -1: the connection is lost.
    """

    def __init__(self, what: str, code: int, message: str) -> None:
        self.code = code
        super().__init__(f"{what}: {message or 'no answer'} ({code})")


class Ifl(Protocol):
    """The functions of libpbs, with connections as integers."""

    def connect(self, server: str) -> int:
        """Opens a connection; empty: the server of pbs.conf.

        Raises:
            IflError: there is none.
        """

    def disconnect(self, connection: int) -> None: ...

    def register(self, scheduler: str, primary: int, secondary: int) -> int:
        """Registers as a scheduler object of the server; the registration is the lock.

        Args:
            scheduler: name of the object: "default".
            secondary: on which commands arrive; its number is a file descriptor.
        """

    def read_command(self, secondary: int) -> ReceivedCommand | None:
        """Reads a command that has arrived; None: the server is gone."""

    def end_cycle(self, secondary: int) -> bool:
        """Tells the server that its command has been handled; False: the server is gone."""

    def stat_server(self, connection: int) -> tuple[str, Attributes]:
        """Returns the server's name and attributes."""

    def stat_scheduler(self, connection: int, name: str) -> Attributes: ...

    def stat_queues(self, connection: int) -> Objects: ...

    def stat_vnodes(self, connection: int) -> Objects: ...

    def stat_reservations(self, connection: int) -> Objects: ...

    def stat_resources(self, connection: int) -> Objects: ...

    def stat_jobs(
        self, connection: int, attributes: Sequence[str], *, changed_since_s: int = 0
    ) -> Objects:
        """Returns jobs that have not ended, arrays, and tasks that have started.

        Args:
            attributes: the ones to state; none: all.
            changed_since_s: only those with this or a later `mtime`, Unix seconds; 0: all.
        """

    def stat_ended(self, connection: int, job_ids: Sequence[str]) -> Objects:
        """Returns the server's records of ended jobs; those that have none are left out."""

    def start_cycle(self, connection: int) -> int:
        """Makes the server start a cycle of its default scheduler (`scheduling` = True)."""

    def run(self, connection: int, job_id: str, exec_vnode: str) -> int:
        """Starts a job; returns when the server has accepted it (pbs_asyrunjob_ack)."""

    def alter(self, connection: int, job_id: str, attributes: Attributes) -> int:
        """Sends new values of attributes without waiting for the answer (pbs_asyalterjob)."""

    def alter_checked(self, connection: int, job_id: str, attributes: Attributes) -> int:
        """Sets attributes (pbs_alterjob)."""

    def signal(self, connection: int, job_id: str, signal: str) -> int:
        """Sends a signal: also "suspend" and "resume"."""

    def rerun(self, connection: int, job_id: str) -> int:
        """Ends a job and puts it back into its queue."""

    def delete(self, connection: int, job_id: str, text: str) -> int:
        """Deletes a job, with a text for its owner."""

    def release_nodes(self, connection: int, job_id: str, vnodes: str) -> int:
        """Takes vnodes, "n2+n3", from a running job."""

    def confirm_reservation(
        self, connection: int, name: str, location: str, start_s: int, extend: str
    ) -> int:
        """Confirms or denies a reservation. A malformed location kills the server."""

    def answer_run(self, connection: int, job_id: str, code: int, message: str) -> int:
        """Answers an operator who waits in qrun."""
