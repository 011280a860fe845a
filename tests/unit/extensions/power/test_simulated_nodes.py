# SPDX-License-Identifier: Apache-2.0
import numpy as np

from bridge.extensions.power.changes import PowerChanges, with_changes
from bridge.extensions.power.columns import saving_of
from bridge.extensions.power.simulated_nodes import SUSPEND_S, SimulatedPower
from bridge.model.plan import Plan
from bridge.units import NEVER
from schedbridge_contracts.builders import a_snapshot

TABLE = a_snapshot(nodes=3)().nodes


def ints(*values):
    return np.array(values, dtype=np.int32)


IDLE = np.zeros(3, dtype=bool)


def obey(states, now_s, **changes):
    states.obey(with_changes(Plan.without_rows(now_s), PowerChanges(**changes)), now_s)


def shown_saving(states, now_s):
    return saving_of(states.shown(TABLE, now_s))


def test_a_node_leaves_is_off_and_comes_back():
    states = SimulatedPower(3, resume_s=60, now_s=0)
    obey(states, 10, down=ints(1))
    assert states.on.tolist() == [True, False, True]
    assert states.objection(ints(0, 1)) == "uses a node that is powered off"
    assert states.objection(ints(0, 2)) is None
    assert states.draws.all()
    shown = shown_saving(states, 15)
    assert shown.off.tolist() == [False, True, False]
    assert shown.resume_s[1] == SUSPEND_S - 5 + 60
    assert states.next_s() == 10 + SUSPEND_S
    obey(states, 20, up=ints(1))  # it is not down yet
    assert states.happen(10 + SUSPEND_S, IDLE) == 1
    assert states.draws.tolist() == [True, False, True]
    assert states.next_s() == NEVER
    obey(states, 100, up=ints(1))
    assert states.draws.all()
    assert shown_saving(states, 100).ready_s.tolist() == [0, 160, 0]
    states.happen(160, IDLE)
    assert states.on.all()
    assert shown_saving(states, 160).idle_since_s.tolist() == [0, 160, 0]


def test_a_node_in_use_stays_on():
    states = SimulatedPower(3, resume_s=60, now_s=0)
    states.happen(5, np.array([True, False, False]))
    obey(states, 5, down=ints(0))
    assert states.on.all()
    states.happen(30, IDLE)
    assert shown_saving(states, 31).idle_since_s.tolist() == [30, 0, 0]


def test_what_has_not_changed_is_shown_by_the_same_table():
    states = SimulatedPower(3, resume_s=60, now_s=0)
    shown = states.shown(TABLE, 1)
    assert states.shown(shown, 2) is shown
