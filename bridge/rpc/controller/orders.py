# SPDX-License-Identifier: Apache-2.0
"""Orders of operators for the controller, and their results.

Terms
    order       a decision that is not about a job (make or remove a reservation), with a caller
                that waits for its result.

Rules
    1. An order is sent once, with the next reply. Its result wakes the caller.
    2. If the caller gives up before it was sent, it is withdrawn and never carried out.
    3. After a new epoch of the controller, the results of orders already sent are unknown.
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


class PendingOrders:
    """The pending orders; thread-safe, called by operators' threads and by the cycle."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[_Order] = []
        self._sent: dict[int, _Order] = {}

    def carry_out(self, decision: pb.Decision, timeout_s: float) -> pb.Fate:
        """Gives an order and waits for its result.

        Args:
            decision: without id.

        Raises:
            ControllerError: the controller has not called, or has not reported the result.
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
                "the controller has not reported the result: check whether the reservation exists"
            )
        return order.result

    def take(self, next_id: Callable[[], int]) -> list[pb.Decision]:
        with self._lock:
            orders, self._waiting = self._waiting, []
            for order in orders:
                order.decision.id = next_id()
                self._sent[order.decision.id] = order
        return [order.decision for order in orders]

    def close(self, result: pb.Fate) -> bool:
        """Reads a result; False if it does not belong to an order."""
        with self._lock:
            order = self._sent.pop(result.decision_id, None)
        if order is None:
            return False
        order.result = pb.Fate()
        order.result.CopyFrom(result)
        order.done.set()
        return True

    def reset(self) -> None:
        """Marks the results of all sent orders as unknown, because the controller restarted."""
        with self._lock:
            orders, self._sent = list(self._sent.values()), {}
        for order in orders:
            order.done.set()
