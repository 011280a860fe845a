# SPDX-License-Identifier: Apache-2.0
"""Counts of processes: which request each answers."""

import asyncio
from collections.abc import Callable

import pytest

from bridge.agent import counts
from bridge.agent.counts import AgentCounts
from bridge.agent.processes import Processes
from bridge.rpc.pb import agent_pb2 as pb


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "COUNT_S", 0.0)


class Found(Processes):
    """Counts that are given; before some of them ends, something happens."""

    def __init__(self, *found: int, during: Callable[[int], None] = lambda _: None) -> None:
        super().__init__()
        self.left, self.during = list(found), during

    def count(self, job: str, node: str, uid: int | None = None) -> int:
        self.during(len(self.left))
        return self.left.pop(0)


def reported(found: Found, *orders: pb.CountProcesses, later: pb.CountProcesses | None = None):
    """Request and count of each report; `later` comes while the first count is made."""

    async def run() -> list[tuple[int, int]]:
        sent: list[pb.AgentReport] = []
        own = AgentCounts(found, ("n1",), sent.append)
        loop, arrived = asyncio.get_running_loop(), []
        if later is not None:

            def during(left: int) -> None:
                if not arrived:
                    arrived.append(left)
                    asyncio.run_coroutine_threadsafe(ask(later), loop).result()

            found.during = during

        async def ask(order: pb.CountProcesses) -> None:
            own.requested(order)

        for order in orders:
            own.requested(order)
        while own._tasks:
            await asyncio.gather(*own._tasks)
        return [(one.processes.request, one.processes.count) for one in sent]

    return asyncio.run(run())


def request(number: int, node: str = "n1") -> pb.CountProcesses:
    return pb.CountProcesses(job="7", node=node, request=number)


def test_changes_are_reported_until_nobody_is_left():
    assert reported(Found(3, 3, 1, 0), request(5)) == [(5, 3), (5, 1), (5, 0)]


def test_a_request_during_a_count_is_answered_by_the_next_count():
    assert reported(Found(0, 0), request(1), later=request(2)) == [(1, 0), (2, 0)]
    assert reported(Found(4, 4, 0), request(1), later=request(2)) == [(1, 4), (2, 4), (2, 0)]


def test_the_newest_of_several_requests_is_answered():
    assert reported(Found(0), request(1), request(2)) == [(2, 0)]


def test_other_nodes_are_not_its_business():
    assert reported(Found(), request(1, "n2")) == []
