# SPDX-License-Identifier: Apache-2.0
"""Counts the processes of jobs for the service, until there are none.

Rules
    1. A count is repeated after `COUNT_S`, then less often, and sent when it changes, until it is 0
       or `COUNTING_S` have passed.
    2. A count names the newest request that came before it was begun. A request that comes during
       a count is answered by the next one.
"""

import asyncio
from collections.abc import Callable, Collection

from bridge.agent.processes import Processes
from bridge.rpc.pb import agent_pb2 as pb

COUNT_S, MAX_COUNT_S, COUNTING_S = 0.05, 1.0, 60.0

_Key = tuple[str, str, int | None]
"""Job, node and user."""


class AgentCounts:
    """The counts of one agent; used in one event loop."""

    def __init__(
        self,
        processes: Processes,
        nodes: Collection[str],
        send: Callable[[pb.AgentReport], object],
    ) -> None:
        """Starts without requests.

        Args:
            nodes: for which the agent reports; requests for others are ignored.
        """
        self._processes, self._nodes, self._send = processes, nodes, send
        self._requests: dict[_Key, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def requested(self, order: pb.CountProcesses) -> None:
        if order.node not in self._nodes:
            return
        key = order.job, order.node, order.uid if order.HasField("uid") else None
        counting = key in self._requests
        self._requests[key] = order.request
        if not counting:
            task = asyncio.create_task(self._count(key))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _count(self, key: _Key) -> None:
        job, node, _ = key
        loop = asyncio.get_running_loop()
        until, last, pause_s = loop.time() + COUNTING_S, (-1, 0), COUNT_S
        try:
            while loop.time() < until:
                request = self._requests[key]
                found = await asyncio.to_thread(self._processes.count, *key)
                if (found, request) != last:
                    last = found, request
                    counted = pb.Processes(job=job, node=node, count=found, request=request)
                    self._send(pb.AgentReport(processes=counted))
                if found:
                    await asyncio.sleep(pause_s)
                    pause_s = min(1.2 * pause_s, MAX_COUNT_S)
                elif self._requests[key] == request:
                    return
        finally:
            del self._requests[key]
