# SPDX-License-Identifier: Apache-2.0
"""Holds every report of an agent against the placement of the jobs that it names.

Rules
    1. A statement is a message with a field `job`. It counts only if the controller has placed this
       job on a node for which the agent speaks: on the statement's `node`, or if it has no such
       field, on any of them. All others are taken out of the report.
    2. Statements are found by their fields, in every message that a report can hold, so that no new
       kind of report can be forgotten. A job's nodes are those of the controller's last report:
       what a node says of a job that has left it, or was requeued elsewhere, does not count.
    3. A node may know of a job before the controller has reported it. Statements of `EARLY` kinds
       then count for what they are used for later, which is held against the placement again: a
       launcher when it is chosen (`launcher_table.py`), readings because those of a job are only
       read from its nodes (`measured.py`). Statements of all other kinds do not count.
    4. Reports with refused statements are counted by node and reason. The first of a node is
       logged, the others once a minute; not those on jobs that are unknown, which every start can
       cause.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from bridge.rpc.agents.job_placement import JobPlacement
from bridge.rpc.pb import agent_pb2 as pb
from bridge.rpc.reported.safe_text import printable
from bridge.rpc.transport.complaints import Complaints

EARLY: Final = frozenset({"FromLauncher", "JobUse", "Share"})
MAX_NAMED: Final = 200
"""Number of nodes that are counted by name; all further ones are `others`."""
OTHERS: Final = "others"

ELSEWHERE: Final = "elsewhere"
"""The agent does not speak for a node on which the job is placed."""
UNKNOWN: Final = "unknown job"
"""The controller reports no such running job."""

Speaks = Callable[[str], bool]
"""Whether the agent is the newest one of a node."""


class PlacedReports:
    """The one way by which reports come in; called by the agents' thread.

    Attributes:
        placement: the placement of the running jobs; set by the cycle.
        refused: reports with refused statements, by node and reason.
        tell: called for each of them with node and reason.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Starts before the controller's first report.

        Args:
            clock: monotonic, s.
        """
        self._clock = clock
        self.placement = JobPlacement()
        self.refused: Counter[tuple[str, str]] = Counter()
        self.tell: Callable[[str, str], None] = lambda _node, _reason: None
        self._named: set[str] = set()
        self._complaints = Complaints("agents", lambda _key, _reason: None)

    def admit(self, nodes: Sequence[str], speaks: Speaks, report: pb.AgentReport) -> bool:
        """Takes refused statements out of a report.

        Args:
            report: is changed.

        Returns:
            Whether the report still counts.
        """
        found: dict[str, str] = {}
        counts = self._keep(report, nodes, speaks, found)
        for reason, job in found.items():
            self._refuse(nodes[0], reason, job)
        self._complaints.sum_up(self._clock())
        return counts

    def _keep(
        self, message: Message, nodes: Sequence[str], speaks: Speaks, found: dict[str, str]
    ) -> bool:
        """Whether a message counts; takes out of it what does not, and notes why."""
        shape = _shape(message.DESCRIPTOR)
        if shape.is_statement:
            own = (message.node,) if shape.names_node else nodes  # type: ignore[attr-defined]
            job: str = message.job  # type: ignore[attr-defined]
            if reason := self._problem(job, tuple(filter(speaks, own)), early=shape.is_early):
                found[reason] = job
                return False
        for name in shape.single:
            if message.HasField(name) and not self._keep(
                getattr(message, name), nodes, speaks, found
            ):
                return False
        for name in shape.repeated:
            parts = getattr(message, name)
            refused = [
                at for at, part in enumerate(parts) if not self._keep(part, nodes, speaks, found)
            ]
            for at in reversed(refused):
                del parts[at]
        return True

    def _problem(self, job: str, nodes: Sequence[str], *, early: bool) -> str:
        placed = self.placement.nodes(job)
        if placed is None and nodes:
            return "" if early else UNKNOWN
        return ELSEWHERE if placed is None or placed.isdisjoint(nodes) else ""

    def _refuse(self, node: str, reason: str, job: str) -> None:
        if reason == ELSEWHERE:
            why = f"its report on job {printable(job[:40])}, which is not placed there"
            self._complaints.complain(reason, f"node {node}", self._clock(), why)
        if node not in self._named and len(self._named) >= MAX_NAMED:
            node = OTHERS
        self._named.add(node)
        self.refused[node, reason] += 1
        self.tell(node, reason)


@dataclass(frozen=True)
class _Shape:
    """What messages of a kind may state.

    Attributes:
        is_statement: it names a job.
        is_early: see rule 3.
        single, repeated: fields that may hold statements.
    """

    is_statement: bool
    names_node: bool
    is_early: bool
    single: tuple[str, ...]
    repeated: tuple[str, ...]


@cache
def _shape(kind: Descriptor) -> _Shape:
    names = {field.name for field in kind.fields}
    holders = [field for field in kind.fields if field.message_type and _holds(field.message_type)]
    return _Shape(
        is_statement="job" in names,
        names_node="node" in names,
        is_early=kind.name in EARLY,
        single=tuple(field.name for field in holders if not _is_repeated(field)),
        repeated=tuple(field.name for field in holders if _is_repeated(field)),
    )


def _holds(kind: Descriptor) -> bool:
    """Whether a message of this kind may hold a statement; kinds do not contain themselves."""
    shape = _shape(kind)
    return bool(shape.is_statement or shape.single or shape.repeated)


def _is_repeated(field: FieldDescriptor) -> bool:
    return field.is_repeated
