# SPDX-License-Identifier: Apache-2.0
"""Entries of the power corridor after a restart of the service."""

import json

from bridge.extensions.power.corridor.corridor_switch import CorridorSwitch, EntryStore
from bridge.extensions.power.corridor.entry_log import Author, Wish
from bridge.extensions.power.rules import NodePower, PowerRules, power_of, with_power
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import Site
from bridge.registry import PRESETS, build
from bridge.rpc.controller.policy_switch import PolicySwitch
from bridge.safe_cycle.decider import Decider

NOW_S = 1_790_000_000
ROOT = Author("root", "operator.socket")


class Memory:
    """What is stored over restarts."""

    def __init__(self):
        self.text = None

    def keep(self, text):
        self.text = text

    def corridor(self):
        """That of a service that starts, and the rules that it obeys."""
        found = [self.text]
        rules = PowerRules(node_types=(NodePower("all", NodeSet(), 70, 250),))
        decider = Decider(build(PRESETS["easy"]), site=with_power(Site(), rules))
        kept = EntryStore(lambda: found.pop() if found else None, self.keep)
        switch = PolicySwitch(PRESETS["easy"], decider)
        return CorridorSwitch(switch, kept, now_s=lambda: NOW_S), decider


def upper_w(corridor, decider):
    """The upper bound that a cycle obeys."""
    corridor.bear(NOW_S)
    return power_of(decider.site).corridor.at(NOW_S)[1]


def test_an_entry_that_is_damaged_leaves_the_others_in_force():
    """The last that can be read bounds power, and the next one is entered after all."""
    memory = Memory()
    corridor, _ = memory.corridor()
    for watts in (900, 800, 700, 600):
        corridor.enter([Wish(0, upper_w=watts)], ROOT)
    sound = json.loads(memory.text)
    for name, odd in (("upper_w", "x"), ("end_s", -1), ("id", 2), ("id", 99), ("reason", 7)):
        stored = json.loads(json.dumps(sound))
        stored["entries"][3][name] = odd
        memory.text = json.dumps(stored)
        corridor, decider = memory.corridor()
        assert upper_w(corridor, decider) == 700, name
        assert [entry.id for entry in corridor.entry_log().entries] == [1, 2, 3], name
        (entry,) = corridor.enter([Wish(0, upper_w=500)], ROOT)
        assert (entry.id, upper_w(corridor, decider)) == (5, 500), name
