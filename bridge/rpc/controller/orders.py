# SPDX-License-Identifier: Apache-2.0
"""What operators have the controller do beside its jobs, and what became of it.

Words
    order       a decision about no job (make or remove a reservation) that somebody waits for.

Rules
    1. An order goes out with the next reply, once. Its result wakes whoever waits.
    2. Who gives up before it went out takes it back: then it is never carried out.
    3. A new epoch of the controller leaves the result of what was sent unknown.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from bridge.errors import ControllerError
from bridge.rpc.pb import scheduler_pb2 as pb


@dataclass(eq=False)
class _Order:
    decision: pb.Decision
    done: threading.Event = field(default_factory=threading.Event)
    result: pb.Fate | None = None


class Orders:
    """Orders on their way; called by operators' threads and by the cycle."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[_Order] = []
        self._sent: dict[int, _Order] = {}

    def carry_out(self, decision: pb.Decision, timeout_s: float) -> pb.Fate:
        """Gives an order and waits for its result.

        Args:
            decision: without id.
            timeout_s: how long.

        Raises:
            ControllerError: the controller has not called, or has not said what became of it.
        """
        order = _Order(decision)
        with self._lock:
            self._waiting.append(order)
        order.done.wait(timeout_s)
        with self._lock:
            if order in self._waiting:
                self._waiting.remove(order)
                raise ControllerError(
                    f"the controller has not called for {timeout_s:g} s: nothing was done"
                )
            self._sent.pop(order.decision.id, None)
        if order.result is None:
            raise ControllerError(
                "the controller has not reported the result: look whether the reservation is there"
            )
        return order.result

    def take(self, next_id: Callable[[], int]) -> list[pb.Decision]:
        """The orders for the next reply."""
        with self._lock:
            orders, self._waiting = self._waiting, []
            for order in orders:
                order.decision.id = next_id()
                self._sent[order.decision.id] = order
        return [order.decision for order in orders]

    def close(self, result: pb.Fate) -> bool:
        """Takes note of a fate; False if it is none of an order's."""
        with self._lock:
            order = self._sent.pop(result.decision_id, None)
        if order is None:
            return False
        order.result = pb.Fate()
        order.result.CopyFrom(result)
        order.done.set()
        return True

    def reset(self) -> None:
        """The controller has begun anew: the results of what was sent will not come."""
        with self._lock:
            orders, self._sent = list(self._sent.values()), {}
        for order in orders:
            order.done.set()
