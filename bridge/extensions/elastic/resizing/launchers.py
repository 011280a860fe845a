# SPDX-License-Identifier: Apache-2.0
"""The launchers of malleable jobs and the agents of their nodes, as a port."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

Names = tuple[str, ...]
"""Nodes by name, the job's first node first."""


@dataclass(frozen=True)
class LauncherReport:
    """The report of a launcher on its job when it attached.

    Attributes:
        serial: a new number for each time that it attached.
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
class GrowOrder:
    """New nodes belong to the job: start processes there and let the application join them."""

    id: str
    nodes: Names
    added: Names
    within_s: int


@dataclass(frozen=True)
class ShrinkOrder:
    """The application must leave some nodes."""

    id: str
    nodes: Names
    removed: Names
    within_s: int


@dataclass(frozen=True)
class WithdrawOrder:
    """A change is no longer wanted. The answer is its result."""

    id: str


LauncherOrder = GrowOrder | ShrinkOrder | WithdrawOrder


@dataclass(frozen=True)
class ChangeResult:
    """The end of a change.

    Attributes:
        done: the job's processes run on the nodes of the order; otherwise on the former ones.
        nodes: where they run; None: as `done` says.
    """

    job_id: str
    user: str
    id: str
    done: bool
    reason: str = ""
    nodes: Names | None = None


class Launchers(Protocol):
    """All launchers and agents. No method waits for them.

    A launcher belongs to one job and one user; other claims to the job are ignored.
    """

    def attached(self, job_id: str, user: str) -> LauncherReport | None:
        """The launcher of a user's job; None: there is none, so the job cannot be resized."""

    def results(self) -> Sequence[ChangeResult]:
        """Results that came since the last call."""

    def order(self, job_id: str, user: str, order: LauncherOrder) -> None:
        """Sends an order; it is lost if the launcher is not connected."""

    def vacant(self, job_id: str, user: str, nodes: Names, *, unused: bool = False) -> bool:
        """Whether, by their agents, no process of the job is on these nodes.

        A node without an agent counts as vacant only if the launcher is trusted.

        Args:
            job_id: the job id of a user's job.
            unused: its program has never run there, so nothing is lost if joining processes end
                with the node, and the launcher is trusted.
        """

    def unattended(self, nodes: Names) -> Names:
        """The nodes for which it could not be determined later whether a job has left them."""

    def mtct(self, job_id: str, user: str, *, estimate: bool = False) -> float:
        """Time in MPI over computing time of the job at its present width; -1: unknown.

        With `estimate`: for jobs that are not measured, idle CPU time over busy CPU time.
        """


class Willing:
    """Applications that change at once on request: for simulations and tests."""

    def __init__(self) -> None:
        self._results: list[ChangeResult] = []

    def attached(self, job_id: str, user: str) -> LauncherReport | None:
        del job_id, user
        return LauncherReport()

    def results(self) -> Sequence[ChangeResult]:
        """All orders since the last call have been carried out."""
        found, self._results = self._results, []
        return found

    def order(self, job_id: str, user: str, order: LauncherOrder) -> None:
        self._results.append(ChangeResult(job_id, user, order.id, done=True))

    def vacant(self, job_id: str, user: str, nodes: Names, *, unused: bool = False) -> bool:
        del job_id, user, nodes, unused
        return True

    def unattended(self, nodes: Names) -> Names:
        """No node is unattended."""
        del nodes
        return ()

    def mtct(self, job_id: str, user: str, *, estimate: bool = False) -> float:
        """Nothing is measured."""
        del job_id, user, estimate
        return -1.0


class Absent(Willing):
    """No launcher at all: a service without agents."""

    def attached(self, job_id: str, user: str) -> LauncherReport | None:
        """No job has a launcher."""
        del job_id, user
        return None
