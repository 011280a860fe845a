# SPDX-License-Identifier: Apache-2.0
"""The training environment: annealing of many windows at once.

Terms
    board      one window being annealed: the sequence of its nodes, their jobs, a temperature.
    episode    one move of the annealing: one or two jobs are removed and put back, largest first.
    view       the nodes that the network sees: up to Q idle ones from an offset on, cyclically.
    state      (4, Q): for each node its switch and pod, then the nodes needed by this job and by
               the other one still to be put back, relative to `LARGEST`; 0 beyond the view.

Rules
    1. Switches and pods are numbered from 0 in order of appearance in the view (a switch that
       appears again gets a new number), and divided by `NUMBERS`.
    2. If more than Q nodes are idle, the offset is random.
    3. A move is kept or undone by the Metropolis rule at the board's temperature, so that training
       sees the states that annealing meets. A board gets another window after some moves.
    4. The reward of an episode is the reduction of its jobs' cost, per thousand, given at the end.
       The former cost does not depend on the choices, so the optimum is that of the paper's reward
       (minus the new cost), with less variance.

Costs are those of the metric `code` without rounding. Those of `paper` differ by a factor and a
constant; the nodes of a pod differ, so boards of both trees are mixed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.papers.placement.neural_weights import LARGEST, NUMBERS, Q
from bridge.papers.placement.training.windows import MAX_JOBS, TrainingWindow

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]

LONGEST = 256
"""Most nodes of a sequence; longer ones are cut to a stretch of this length."""
MOVES = 100
"""Mean number of moves before a board gets another window."""
HOTTEST, COLDEST = 2500.0, 2.5
_UNIT = 1000.0
_NOBODY, _OUTSIDE = -1, -2


@dataclass
class TrainingStep:
    """One decision: what the network sees, on which boards.

    Attributes:
        state: (n, 4, Q).
        legal: (n, Q) which first nodes exist.
        boards: (n,) whose.
        last: (n,) whether it ends the episode.
    """

    state: Floats
    legal: NDArray[np.bool_]
    boards: Ints
    last: NDArray[np.bool_]


class Boards:
    """The boards; see the module."""

    def __init__(self, windows: Sequence[TrainingWindow], n: int, seed: int) -> None:
        self._windows = windows
        self._rng = np.random.default_rng(seed)
        self._n = n
        self._leaf = np.zeros((n, LONGEST), dtype=np.int64)
        self._pod = np.zeros((n, LONGEST), dtype=np.int64)
        self._owner = np.full((n, LONGEST), _OUTSIDE, dtype=np.int8)
        self._sizes = np.zeros((n, MAX_JOBS), dtype=np.int64)
        self._paid = np.zeros((n, MAX_JOBS))
        self._heat = np.zeros(n)
        self._out = np.full((n, 2), -1, dtype=np.int64)  # jobs removed, the larger first
        self._offset = np.zeros(n, dtype=np.int64)
        self._row = np.zeros((n, LONGEST), dtype=np.int64)  # idle positions come first
        self._idle = np.zeros(n, dtype=np.int64)
        self._deal(np.arange(n))

    def _deal(self, boards: Ints) -> None:
        """New windows for some boards, with jobs placed in order on the first nodes."""
        for b in boards.tolist():
            window = self._windows[int(self._rng.integers(len(self._windows)))]
            leaf, pod = window.leaf, window.pod
            if len(leaf) > LONGEST:
                first = int(self._rng.integers(len(leaf)))
                stretch = (first + np.arange(LONGEST)) % len(leaf)
                leaf, pod = leaf[np.sort(stretch)], pod[np.sort(stretch)]
            m = len(leaf)
            self._leaf[b, :m], self._pod[b, :m] = _numbered(leaf), _numbered(pod)
            self._owner[b] = _OUTSIDE
            self._owner[b, :m] = _NOBODY
            self._sizes[b] = 0
            sizes = self._rng.permutation(window.sizes)
            self._sizes[b, : len(sizes)] = sizes
            self._owner[b, : sizes.sum()] = np.repeat(np.arange(len(sizes)), sizes)
        heats = self._rng.uniform(np.log(COLDEST), np.log(HOTTEST), len(boards))
        self._heat[boards] = np.exp(heats)
        for job in range(MAX_JOBS):
            holds = self._owner[boards] == job
            self._paid[boards, job] = self._costs(boards, holds, self._sizes[boards, job])

    def _costs(self, boards: Ints, holds: NDArray[np.bool_], sizes: Ints) -> NDArray[np.float64]:
        """The cost of a job of each board at its positions."""
        saved = np.zeros(len(boards))
        at, position = np.nonzero(holds)
        for numbers in (self._leaf, self._pod):
            keys = at * LONGEST + numbers[boards[at], position]
            counts = np.bincount(keys, minlength=len(boards) * LONGEST)
            saved += (counts.reshape(len(boards), LONGEST) ** 2).sum(axis=1)
        n = np.maximum(sizes, 1)
        cost: NDArray[np.float64] = np.where(sizes > 0, _UNIT * (2.5 * n - 0.5 - saved / n), 0.0)
        return cost

    def begin(self) -> None:
        """Removes one or two jobs from every board."""
        self._deal(np.flatnonzero(self._rng.random(self._n) < 1 / MOVES))
        present = self._sizes > 0
        order = np.argsort(self._rng.random(present.shape) + ~present, axis=1)[:, :2]
        two = (self._rng.random(self._n) < 0.5) & (present.sum(axis=1) > 1)
        self._out = np.where(np.stack([np.ones_like(two), two], axis=1), order, -1)
        swap = two & (self._size_of(0) < self._size_of(1))
        self._out[swap] = self._out[swap, ::-1]
        self._before, self._paid_before = self._owner.copy(), self._paid.copy()
        for which in range(2):
            out = (self._owner == self._out[:, which, None]) & (self._out[:, which, None] >= 0)
            self._owner[out] = _NOBODY

    def _size_of(self, which: int) -> Ints:
        job = self._out[:, which]
        return np.where(job >= 0, self._sizes[np.arange(self._n), job], 0)

    def look(self, which: int) -> TrainingStep:
        """The decisions about the first (0) or the second (1) removed job of each board."""
        boards = np.flatnonzero(self._out[:, which] >= 0)
        busy = self._owner[boards] != _NOBODY
        row = np.argsort(busy, axis=1, kind="stable")
        idle = (~busy).sum(axis=1)
        offset = np.where(idle > Q, self._rng.integers(0, LONGEST, len(boards)) % idle, 0)
        self._row[boards], self._idle[boards], self._offset[boards] = row, idle, offset
        place = (offset[:, None] + np.arange(Q)) % np.maximum(idle, 1)[:, None]
        view = np.take_along_axis(row, place, axis=1)
        legal = np.arange(Q) < idle[:, None]
        state = np.zeros((len(boards), 4, Q), dtype=np.float32)
        for channel, numbers in enumerate((self._leaf, self._pod)):
            seen = np.take_along_axis(numbers[boards], view, axis=1)
            state[:, channel, 1:] = np.cumsum(seen[:, 1:] != seen[:, :-1], axis=1) / NUMBERS
        state[:, 2] = self._size_of(which)[boards, None] / LARGEST
        if which == 0:
            state[:, 3] = self._size_of(1)[boards, None] / LARGEST
        state *= legal[:, None]
        last = (self._out[boards, 1] < 0) | (which == 1)
        return TrainingStep(state, legal, boards, last)

    def prices(self, step: TrainingStep, which: int) -> Floats:
        """The cost of each board's job at each place of its view.

        Returns:
            (n, Q) per thousand; infinite where there is no node.
        """
        boards, sizes = step.boards, self._size_of(which)[step.boards]
        n, each = len(boards), np.arange(len(boards))
        reach = (self._offset[boards, None] + np.arange(Q + int(sizes.max(initial=0)) + 1)) % (
            np.maximum(self._idle[boards], 1)[:, None]
        )
        line = np.take_along_axis(self._row[boards], reach, axis=1)
        saved = np.zeros((n, Q))
        for numbers in (self._leaf, self._pod):
            switch = np.take_along_axis(numbers[boards], line, axis=1)
            counts = np.zeros((n, LONGEST), dtype=np.int64)
            at, k = np.nonzero(np.arange(switch.shape[1]) < sizes[:, None])
            np.add.at(counts, (at, switch[at, k]), 1)
            now = (counts**2).sum(axis=1)
            for first in range(Q):  # a sliding window: one node leaves, one enters
                saved[:, first] += now
                leaves, comes = switch[:, first], switch[each, first + sizes]
                counts[each, leaves] -= 1
                now = now - 2 * counts[each, leaves] - 1
                now = now + 2 * counts[each, comes] + 1
                counts[each, comes] += 1
        prices: NDArray[np.float64] = (2.5 * sizes - 0.5)[:, None] - saved / sizes[:, None]
        prices[~step.legal] = np.inf
        return prices.astype(np.float32)

    def put(self, step: TrainingStep, which: int, chosen: Ints) -> None:
        """Puts a job of each board back at the chosen place of its view."""
        boards = step.boards
        job, sizes = self._out[boards, which], self._size_of(which)[boards]
        reach = np.arange(int(sizes.max(initial=0)))
        place = (self._offset[boards] + chosen)[:, None] + reach
        row = np.take_along_axis(self._row[boards], place % self._idle[boards, None], axis=1)
        at, k = np.nonzero(reach < sizes[:, None])
        self._owner[boards[at], row[at, k]] = job[at]
        holds = self._owner[boards] == job[:, None]
        self._paid[boards, job] = self._costs(boards, holds, sizes)

    def end(self) -> Floats:
        """Ends the moves: returns the rewards of all boards and undoes rejected moves."""
        before, after = self._paid_before.sum(axis=1), self._paid.sum(axis=1)
        gain: NDArray[np.float64] = before - after
        keep = self._rng.random(self._n) < np.exp(np.minimum(gain / self._heat, 0.0))
        self._owner[~keep] = self._before[~keep]
        self._paid[~keep] = self._paid_before[~keep]
        gain /= _UNIT
        return gain.astype(np.float32)


def _numbered(switches: NDArray[np.int32]) -> Ints:
    """Numbers the distinct switches from 0."""
    return np.unique(switches, return_inverse=True)[1].astype(np.int64)
