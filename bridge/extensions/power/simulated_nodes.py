# SPDX-License-Identifier: Apache-2.0
"""Simulated nodes that are powered down and up again.

Rules
    1. An unused node that is ordered down suspends for `SUSPEND_S` and is then off. A node that is
       off and ordered up resumes for the given time. Other orders do nothing.
    2. A node draws its idle power unless it is off, also while it suspends or resumes.
    3. No job starts on a node that is not on.
"""

from dataclasses import replace
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.power.changes import changes_of
from bridge.extensions.power.columns import NAME, PowerSaving, saving_of
from bridge.model.node import NodeTable
from bridge.model.plan import Plan
from bridge.units import NEVER

SUSPEND_S: Final = 30


class _State(IntEnum):
    ON = 0
    LEAVING = 1
    OFF = 2
    RESUMING = 3


_WORDS: Final = {
    _State.ON: "UP",
    _State.LEAVING: "UP+POWERING_DOWN",
    _State.OFF: "UP+POWERED_DOWN",
    _State.RESUMING: "UP+POWERING_UP",
}


class SimulatedPower:
    """The states of all nodes."""

    def __init__(self, n_nodes: int, resume_s: int, now_s: int) -> None:
        """All are on.

        Args:
            resume_s: time to power a node up.
            now_s: since when they are idle.
        """
        self._resume_s = resume_s
        self._state = np.full(n_nodes, _State.ON, dtype=np.int8)
        self._until_s = np.full(n_nodes, NEVER, dtype=np.int64)
        self._idle_since_s = np.full(n_nodes, now_s, dtype=np.int64)
        self._busy = np.zeros(n_nodes, dtype=bool)
        self.ordered_down = self.ordered_up = 0

    @property
    def on(self) -> NDArray[np.bool_]:
        """(n_nodes,) where jobs can start."""
        on: NDArray[np.bool_] = self._state == _State.ON
        return on

    @property
    def draws(self) -> NDArray[np.bool_]:
        """(n_nodes,) which draw their idle power."""
        draws: NDArray[np.bool_] = self._state != _State.OFF
        return draws

    def next_s(self) -> int:
        """When a node changes its state by itself."""
        return int(self._until_s.min(initial=NEVER))

    def happen(self, now_s: int, busy: NDArray[np.bool_]) -> int:
        """Applies due changes, and records the nodes that jobs use; returns how many changed."""
        due = self._until_s <= now_s
        left, back = due & (self._state == _State.LEAVING), due & (self._state == _State.RESUMING)
        self._until_s[due] = NEVER
        self._state[left] = _State.OFF
        self._state[back], self._idle_since_s[back] = _State.ON, now_s
        self._idle_since_s[self._busy & ~busy] = now_s
        self._busy = busy
        return int(due.sum())

    def obey(self, plan: Plan, now_s: int) -> None:
        """Orders nodes down and up as a plan says (rule 1)."""
        changes = changes_of(plan)
        down = np.zeros(len(self._state), dtype=bool)
        down[changes.down] = True
        down &= (self._state == _State.ON) & ~self._busy
        self._state[down], self._until_s[down] = _State.LEAVING, now_s + SUSPEND_S
        up = np.zeros(len(self._state), dtype=bool)
        up[changes.up] = True
        up &= self._state == _State.OFF
        self._state[up], self._until_s[up] = _State.RESUMING, now_s + self._resume_s
        self.ordered_down += int(down.sum())
        self.ordered_up += int(up.sum())

    def objection(self, nodes: NDArray[np.int32]) -> str | None:
        """Why no job can start on some nodes (rule 3); None: one can."""
        return None if self.on[nodes].all() else "uses a node that is powered off"

    def shown(self, nodes: NodeTable, now_s: int) -> NodeTable:
        """The nodes with their states, as the controller reports them."""
        state, whole_s = self._state, SUSPEND_S + self._resume_s
        resume_s = np.full(len(state), whole_s, dtype=np.int64)
        resume_s[state == _State.OFF] = self._resume_s
        leaving, resuming = state == _State.LEAVING, state == _State.RESUMING
        resume_s[leaving] = self._until_s[leaving] - now_s + self._resume_s
        off = ~self.on
        saving = PowerSaving(
            can=np.ones(len(state), dtype=bool),
            off=off,
            resume_s=resume_s,
            ready_s=np.where(resuming, self._until_s, 0),
            idle_since_s=np.where(off | self._busy, 0, self._idle_since_s),
        )
        before = saving_of(nodes)
        if before is not None and all(
            np.array_equal(getattr(before, name), getattr(saving, name))
            for name in PowerSaving.__dataclass_fields__
        ):
            return nodes
        words = tuple(
            _WORDS[_State(one)] if was.startswith("UP") else was
            for one, was in zip(state.tolist(), nodes.state, strict=True)
        )
        return replace(nodes, state=words).having(NAME, saving)
