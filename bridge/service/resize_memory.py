# SPDX-License-Identifier: Apache-2.0
"""Keeps in the memory file when running jobs have changed their widths.

The file keeps it beside what predictors have learnt; policies do not see it.
"""

from dataclasses import replace

from bridge.model.learnt import Learnt
from bridge.ports import State
from bridge.resizing.resize_times import NAME, ResizeTimes


class ResizeMemory:
    """Between the store and what counts changes.

    Attributes:
        others: what the file held when the service started, without it.
    """

    def __init__(self, state: State) -> None:
        """Takes its own part of what the file held."""
        self._times = ResizeTimes()
        self._kept = False
        self.others = self.take(state)

    def of(self, resize_times: ResizeTimes) -> None:
        """From now on this one counts."""
        resize_times.recall(self._times.known)
        self._times = resize_times

    def take(self, state: State) -> State:
        """A state from the store without this part, which is joined with what is known."""
        found = state.learnt.get(NAME)
        if found is None:
            return state
        self._kept = True
        self._times.recall(found.known)
        learnt = {name: known for name, known in state.learnt.items() if name != NAME}
        return replace(state, learnt=learnt)

    def put(self, state: State) -> State:
        """A state for the store, with this part."""
        known = self._times.known
        self._kept = self._kept or bool(known)  # what is forgotten leaves the file, too
        return replace(state, learnt={**state.learnt, NAME: Learnt(known)}) if self._kept else state
