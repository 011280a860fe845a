# SPDX-License-Identifier: Apache-2.0
"""Users take turns, however much one of them asks."""

import asyncio
import threading

import pytest

from bridge.rpc.transport.fair_queue import FairQueue


def test_who_comes_late_with_little_does_not_wait_for_who_asked_much():
    done = []

    async def run():
        queue, gate = FairQueue(1, "test"), threading.Event()
        first = queue.put("greedy", gate.wait)  # the thread is taken until all have come
        greedy = [queue.put("greedy", lambda n=n: done.append(("greedy", n))) for n in range(50)]
        modest = queue.put("modest", lambda: done.append(("modest", 0)))
        other = queue.put("other", lambda: done.append(("other", 0)))
        gate.set()
        await asyncio.gather(first, *greedy, modest, other)

    asyncio.run(run())
    assert len(done) == 52
    assert {("modest", 0), ("other", 0)} <= set(done[:3])
    assert [n for user, n in done if user == "greedy"] == list(range(50))


def test_who_does_not_wait_any_more_costs_nothing():
    done = []

    async def run():
        queue, gate = FairQueue(1, "test"), threading.Event()
        first = queue.put("a", gate.wait)
        gone = queue.put("b", lambda: done.append("gone"))
        gone.cancel()
        stays = queue.put("c", lambda: done.append("stays"))
        gate.set()
        await asyncio.gather(first, stays)

    asyncio.run(run())
    assert done == ["stays"]


def test_what_fails_fails_for_its_caller_alone():
    async def run():
        queue = FairQueue(2, "test")
        wrong = queue.put("a", lambda: 1 // 0)
        right = queue.put("a", lambda: 7)
        with pytest.raises(ZeroDivisionError):
            await wrong
        return await right

    assert asyncio.run(run()) == 7
