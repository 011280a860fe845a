# SPDX-License-Identifier: Apache-2.0
"""A store whose policies' state can be changed in place, for tests of the file."""

import bridge.state.store
from bridge.model.learnt import Learning, Learnt
from bridge.ports import Promises, State


class Taught:
    """What one predictor has learnt, and learns."""

    def __init__(self, learnt):
        self._learnt = learnt

    def learn(self, key, value):
        learning = Learning(self._learnt)
        learning.learn("", key, value)
        self._learnt = learning.done()

    def forget(self, key):
        learning = Learning(self._learnt)
        learning.known.pop(key)
        self._learnt = learning.done()

    @property
    def known(self):
        return dict(self._learnt.known)

    def done(self):
        return self._learnt


class Held:
    """What policies carry, as a service's decider holds it."""

    def __init__(self, state):
        self.take(state)

    def take(self, state):
        self.planned_start_s = dict(state.promises.start_s)
        self.kept_plan = state.promises.kept_plan
        self._learnt = {name: Taught(one) for name, one in state.learnt.items()}

    def state(self):
        learnt = {name: one.done() for name, one in self._learnt.items()}
        return State(Promises("openccs", self.planned_start_s, self.kept_plan), learnt)

    @property
    def learnt(self):
        return {predictor: learnt.known for predictor, learnt in self._learnt.items()}

    def learnt_by(self, predictor):
        return self._learnt.setdefault(predictor, Taught(Learnt()))


class Store(bridge.state.store.Store):
    """Saves what `memory` returns, from its first call on."""

    held = None

    def memory(self):
        if self.held is None:
            self.held = Held(self.state())
            self.watch(self.held.state)
        return self.held

    def catch_up(self):
        if self.held is None:
            super().catch_up(State())
        else:
            self.held.take(super().catch_up(self.held.state()))
