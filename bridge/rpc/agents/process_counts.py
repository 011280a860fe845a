# SPDX-License-Identifier: Apache-2.0
"""How many processes of a job each node still has, as its agent counts them when asked.

Only counts that answer the last request are used: older ones prove nothing. The request is repeated
after `ASK_AGAIN_S`, and whenever the job's launcher gets another order.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bridge.rpc.pb import agent_pb2 as pb

ASK_AGAIN_S = 20.0

JobNode = tuple[str, str]
"""A job, by its number on the nodes, and a node."""


@dataclass
class _Count:
    requested: float
    request: int
    processes: int = -1


class ProcessCounts:
    """Requests to count, and their answers. Its owner's lock protects it."""

    def __init__(self) -> None:
        self._counts: dict[JobNode, _Count] = {}
        self._requests = itertools.count(1)

    def forget(self, which: Callable[[JobNode], bool]) -> None:
        """Counts that prove nothing any more."""
        for key in [key for key in self._counts if which(key)]:
            del self._counts[key]

    def took(self, report: pb.Processes) -> None:
        """Records the count of an agent."""
        requested = self._counts.get((report.job, report.node))
        if requested is not None and report.request in (0, requested.request):
            requested.processes = report.count

    def due(self, job: str, nodes: Iterable[str], now_s: float) -> Sequence[tuple[str, int]]:
        """The nodes to be asked now, each with the number of the request."""
        requested = []
        for node in nodes:
            count = self._counts.get((job, node))
            if count is None or now_s - count.requested > ASK_AGAIN_S:
                request = next(self._requests)
                self._counts[job, node] = _Count(now_s, request)
                requested.append((node, request))
        return requested

    def none_on(self, job: str, nodes: Sequence[str]) -> bool:
        """Whether all have counted none; such counts are used once."""
        if any(self._counts[job, node].processes for node in nodes):
            return False
        for node in nodes:
            self._counts.pop((job, node), None)
        return True
