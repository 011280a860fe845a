# SPDX-License-Identifier: Apache-2.0
"""The extension's part of a plan: guests that start, run or leave, and limits of hosts."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.sharing.longer_limits import NO_EXTENSIONS, Extensions
from bridge.extensions.sharing.quotas import NO_QUOTAS, Quotas
from bridge.extensions.sharing.rules import NAME
from bridge.model.job_columns import objects
from bridge.model.plan import Plan


@dataclass(frozen=True)
class GuestStart:
    """A waiting job that is to start as a guest.

    Attributes:
        row: the row of the plan, which it replaces.
        nodes: (n,) int32, ascending: some or all of the host's.
        tasks: (n,) int32 on each of them; 0 for jobs without tasks.
        partition: index of the one in which it starts.
        end_s: now + its time limit.
    """

    row: int
    job_id: str
    host_id: str
    nodes: NDArray[np.int32]
    tasks: NDArray[np.int32]
    partition: int
    end_s: int


@dataclass(frozen=True)
class Requeues:
    """Guests that return to the queue, as columns.

    Attributes:
        id: (n,) object (str): running guests, each once.
        reasons: for each, a short sentence for its user.
    """

    id: NDArray[np.object_] = field(default_factory=lambda: np.empty(0, dtype=object))
    reasons: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.id)


NO_REQUEUES: Final = Requeues()


def requeues(rows: list[tuple[str, str]]) -> Requeues:
    """The decisions (id, reason)."""
    return Requeues(objects(job_id for job_id, _ in rows), tuple(text for _, text in rows))


@dataclass(frozen=True)
class SharedNodes:
    """The decisions of a plan on jobs that share nodes.

    Attributes:
        quotas: CPU quotas of jobs that share nodes.
        host_id: (n,) object (str) of the first n rows of the plan: the running job whose guest a
            row starts as, on nodes of the host; empty: an ordinary row, as all further ones are.
            None: all are.
        requeues: guests that go back to the queue.
        extensions: hosts whose time limits are lengthened by what their guests have cost them.
    """

    among_fields: ClassVar[bool] = True
    quotas: Quotas = NO_QUOTAS
    host_id: NDArray[np.object_] | None = None
    requeues: Requeues = NO_REQUEUES
    extensions: Extensions = NO_EXTENSIONS

    def __len__(self) -> int:
        """The number of its decisions; without any it is no part."""
        others = len(self.quotas) + len(self.requeues) + len(self.extensions)
        return others + len(self.guest_starts)

    def host_of(self, row: int) -> str:
        """The host of a row that starts as a guest; empty: it is an ordinary row."""
        return "" if self.host_id is None or row >= len(self.host_id) else str(self.host_id[row])

    @property
    def guest_starts(self) -> NDArray[np.intp]:
        """Rows that start as guests."""
        if self.host_id is None:
            return np.empty(0, dtype=np.intp)
        rows: NDArray[np.intp] = self.host_id.nonzero()[0]
        return rows


NOTHING: Final = SharedNodes()


def shared_of(plan: Plan) -> SharedNodes:
    """What a plan decides on jobs that share nodes."""
    part: SharedNodes = plan.parts.get(NAME, NOTHING)
    return part


def having_shared(plan: Plan, **decisions: Any) -> Plan:
    """The plan with other decisions in these fields of `SharedNodes`."""
    part = replace(shared_of(plan), **decisions)
    return plan.having(NAME, part if len(part) else None)
