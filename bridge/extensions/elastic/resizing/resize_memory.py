# SPDX-License-Identifier: Apache-2.0
"""Keeps the times of changes of width in the memory file.

The file keeps them with the knowledge of predictors; policies do not see them.
"""

from dataclasses import replace

from bridge.extensions.elastic.resizing.resize_times import NAME, ResizeTimes
from bridge.model.learnt import Learnt
from bridge.ports import State


class ResizeMemory:
    """Connects the store and the counter of changes.

    Attributes:
        others: the contents of the file at the start of the service, without this part.
    """

    def __init__(self, state: State) -> None:
        """Takes its part of the file's contents."""
        self._times = ResizeTimes()
        self._kept = False
        self.others = self.take(state)

    def of(self, resize_times: ResizeTimes) -> None:
        """Uses this counter from now on."""
        resize_times.recall(self._times.known)
        self._times = resize_times

    def take(self, state: State) -> State:
        """Merges this part of a stored state; returns the state without it."""
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
        self._kept = self._kept or bool(known)  # forgotten changes are removed from the file, too
        return replace(state, learnt={**state.learnt, NAME: Learnt(known)}) if self._kept else state
