# SPDX-License-Identifier: Apache-2.0
"""The launchers of malleable jobs and the agents of their nodes, as a port."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

Names = tuple[str, ...]
"""Nodes by name, the job's first node first."""


@dataclass(frozen=True)
class Attached:
    """What a launcher said of its job when it attached.

    Attributes:
        serial: another number for each time that it attached.
        nodes: where the job's processes run; None: on all that the job holds.
        engine: how the application changes its width.
        pending: id of the change that it works on; empty: none.
        pending_nodes: all nodes that the job has after this change.
        min_nodes, max_nodes: what the application can use at present; 0: not stated.
    """

    serial: int = 0
    nodes: Names | None = None
    engine: str = ""
    pending: str = ""
    pending_nodes: Names = ()
    min_nodes: int = 0
    max_nodes: int = 0


@dataclass(frozen=True)
class Grow:
    """New nodes belong to the job: start processes there and let the application join them."""

    id: str
    nodes: Names
    added: Names
    within_s: int


@dataclass(frozen=True)
class Shrink:
    """The application is to leave some nodes."""

    id: str
    nodes: Names
    removed: Names
    within_s: int


@dataclass(frozen=True)
class Withdraw:
    """A change is no longer wanted. It is answered by its result."""

    id: str


Order = Grow | Shrink | Withdraw


@dataclass(frozen=True)
class Result:
    """How a change ended.

    Attributes:
        done: the job's processes run on the nodes of the order; otherwise on those of before.
        nodes: where they run; None: as `done` says.
    """

    job_id: str
    user: str
    id: str
    done: bool
    reason: str = ""
    nodes: Names | None = None


class Launchers(Protocol):
    """All launchers and agents. Nothing here waits for any of them.

    A launcher is one of a job and a user: others that claim the job are ignored.
    """

    def numbered(self, numbers: Mapping[str, str]) -> None:
        """What the controller says of tasks of arrays: the number by which nodes know each.

        A launcher that claims such a task speaks for it only from within the job of this number.
        """

    def attached(self, job_id: str, user: str) -> Attached | None:
        """The launcher of a user's job; None: there is none, so the job cannot be resized."""

    def results(self) -> Sequence[Result]:
        """Results that came since the last call."""

    def order(self, job_id: str, user: str, order: Order) -> None:
        """Sends an order; it is lost if the launcher is not there at the moment."""

    def vacant(self, job_id: str, user: str, nodes: Names, *, unused: bool = False) -> bool:
        """Whether no process of the job is on these nodes, as their agents say.

        A node without an agent counts as vacant only where the launcher's word is enough.

        Args:
            job_id: of a user's job.
            user: of the job.
            nodes: that it is to give back.
            unused: its program has never run there, so that nothing is lost if processes that were
                to join it end with the node: the launcher's word is enough.
        """

    def unattended(self, nodes: Names) -> Names:
        """Those of the nodes of which nobody could say later whether a job has left them."""

    def mtct(self, job_id: str, user: str, *, estimate: bool = False) -> float:
        """Time in MPI over computing time of the job at its present width; -1: unknown.

        With `estimate`: time without using the CPU over the time with it, of jobs not measured.
        """


class Willing:
    """Applications that do at once what they are asked for: simulations, and tests."""

    def __init__(self) -> None:
        self._results: list[Result] = []

    def numbered(self, numbers: Mapping[str, str]) -> None:
        """Nobody claims anything."""
        del numbers

    def attached(self, job_id: str, user: str) -> Attached | None:
        """Every job has a launcher."""
        del job_id, user
        return Attached()

    def results(self) -> Sequence[Result]:
        """All orders since the last call have been carried out."""
        found, self._results = self._results, []
        return found

    def order(self, job_id: str, user: str, order: Order) -> None:
        """Carries it out."""
        self._results.append(Result(job_id, user, order.id, done=True))

    def vacant(self, job_id: str, user: str, nodes: Names, *, unused: bool = False) -> bool:
        """They are."""
        del job_id, user, nodes, unused
        return True

    def unattended(self, nodes: Names) -> Names:
        """There are none."""
        del nodes
        return ()

    def mtct(self, job_id: str, user: str, *, estimate: bool = False) -> float:
        """Nothing is measured."""
        del job_id, user, estimate
        return -1.0


class Absent(Willing):
    """No launcher at all: a service without agents."""

    def attached(self, job_id: str, user: str) -> Attached | None:
        """No job has one."""
        del job_id, user
        return None
