# SPDX-License-Identifier: Apache-2.0
import numpy as np

from bridge.lab.sim.cluster.power_states import SUSPEND_S, PowerStates
from bridge.model.decisions.power_saving import PowerChanges
from bridge.units import NEVER
from schedbridge_contracts.builders import a_snapshot

TABLE = a_snapshot(nodes=3)().nodes


def ints(*values):
    return np.array(values, dtype=np.int32)


def test_a_node_leaves_is_off_and_comes_back():
    states = PowerStates(3, resume_s=60, now_s=0)
    states.order(PowerChanges(down=ints(1)), 10)
    assert states.on.tolist() == [True, False, True]
    assert states.draws.all()
    shown = states.shown(TABLE, 15).power_saving
    assert shown.off.tolist() == [False, True, False]
    assert shown.resume_s[1] == SUSPEND_S - 5 + 60
    assert states.next_s() == 10 + SUSPEND_S
    states.order(PowerChanges(up=ints(1)), 20)  # it is not down yet
    assert states.happen(10 + SUSPEND_S) == 1
    assert states.draws.tolist() == [True, False, True]
    assert states.next_s() == NEVER
    states.order(PowerChanges(up=ints(1)), 100)
    assert states.draws.all()
    assert states.shown(TABLE, 100).power_saving.ready_s.tolist() == [0, 160, 0]
    states.happen(160)
    assert states.on.all()
    assert states.shown(TABLE, 160).power_saving.idle_since_s.tolist() == [0, 160, 0]


def test_a_node_in_use_stays_on():
    states = PowerStates(3, resume_s=60, now_s=0)
    states.use(np.array([True, False, False]), 5)
    states.order(PowerChanges(down=ints(0)), 5)
    assert states.on.all()
    states.use(np.zeros(3, dtype=bool), 30)
    assert states.shown(TABLE, 31).power_saving.idle_since_s.tolist() == [30, 0, 0]


def test_what_has_not_changed_is_shown_by_the_same_table():
    states = PowerStates(3, resume_s=60, now_s=0)
    shown = states.shown(TABLE, 1)
    assert states.shown(shown, 2) is shown
