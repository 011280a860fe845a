# SPDX-License-Identifier: Apache-2.0
import threading
from itertools import count

import pytest

from bridge.errors import ControllerError
from bridge.rpc.controller import orders as module
from bridge.rpc.controller.orders import PendingOrders, _Order
from bridge.rpc.pb import scheduler_pb2 as pb


def a_decision(name="r"):
    return pb.Decision(unreserve=pb.Unreserve(name=name))


def given(orders, timeout_s=300.0):
    """Gives an order in a thread of its own; the list gets its result or error."""
    found = []

    def give():
        try:
            found.append(orders.carry_out(a_decision(), timeout_s))
        except ControllerError as error:
            found.append(error)

    thread = threading.Thread(target=give)
    thread.start()
    return thread, found


def taken(orders):
    numbers = count(7)
    while not (decisions := orders.take(lambda: next(numbers))):
        pass
    return decisions


def test_an_order_goes_out_once_and_its_fate_wakes_who_waits():
    orders = PendingOrders()
    thread, found = given(orders)
    (decision,) = taken(orders)
    assert (decision.id, decision.unreserve.name) == (7, "r")
    assert orders.take(lambda: 8) == []
    assert not orders.close(pb.Fate(decision_id=6))
    assert orders.close(pb.Fate(decision_id=7, outcome=pb.OUTCOME_REFUSED, text="busy"))
    thread.join()
    assert found[0].text == "busy"
    assert not orders.close(pb.Fate(decision_id=7))


def test_an_order_that_never_went_out_is_taken_back():
    orders = PendingOrders()
    with pytest.raises(ControllerError, match="nothing was done"):
        orders.carry_out(a_decision(), 0.01)
    assert orders.take(lambda: 1) == []


def test_a_result_that_never_came_is_unknown(monkeypatch):
    """The order goes out while its caller waits, and nothing comes back."""
    orders = PendingOrders()

    class GoesOut(threading.Event):
        def wait(self, _timeout_s):
            taken(orders)
            return False

    monkeypatch.setattr(module, "_Order", lambda order: _Order(order, GoesOut()))
    with pytest.raises(ControllerError, match="check whether the reservation exists"):
        orders.carry_out(a_decision(), 60)


def test_a_controller_that_begins_anew_leaves_it_unknown_at_once():
    orders = PendingOrders()
    thread, found = given(orders, threading.TIMEOUT_MAX)
    taken(orders)
    orders.reset()
    thread.join(300)
    assert "check whether the reservation exists" in str(found[0])
