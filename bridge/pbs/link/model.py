# SPDX-License-Identifier: Apache-2.0
"""The loop's interface to the pure half: tables to messages, and decisions to requests.

`bridge.pbs.report` and `bridge.pbs.decisions` implement it; tests use simpler ones.
"""

from typing import Protocol

from bridge.pbs.link.stream import Reported
from bridge.pbs.orders import Confirmation, Refusal, StartOrder
from bridge.pbs.tables import Attributes, Tables
from bridge.rpc.pb import scheduler_pb2 as pb


class Checked(Protocol):
    """The last check of decisions, against the newest tables; books what it admits."""

    def admit(self, decision: pb.Decision) -> StartOrder | Refusal: ...

    def withdraw(self, run: StartOrder) -> None:
        """Takes back a start that the server refused."""

    def run_now(self, job_id: str) -> StartOrder | Refusal:
        """Finds vnodes for a job that an operator runs now."""

    def resume(self, job_id: str) -> Refusal | None:
        """Checks whether a suspended job may use its vnodes again; None: it may."""


class Model(Protocol):
    """The pure half of the link."""

    def hello(self) -> pb.HelloRequest:
        """The hello, without the server's name."""

    def end(self) -> None:
        """Saves what is to outlive this process."""

    def report(self, tables: Tables) -> Reported:
        """Returns the tables as messages; unchanged ones are the same objects."""

    def checked(self, tables: Tables) -> Checked:
        """Returns the last check against some tables."""

    def announcement(self, tables: Tables, decision: pb.Decision) -> tuple[str, Attributes]:
        """Returns the job and the attributes that show a planned start, or a reason."""

    def reservation(self, tables: Tables, name: str) -> Confirmation | None:
        """Answers an unconfirmed reservation; None: it needs no answer."""

    def ended(self, job_id: str, attributes: Attributes, end_s: int) -> pb.EndedJob | None:
        """Returns the run of a job that held vnodes, for predictions; None: it did not run."""
