# SPDX-License-Identifier: Apache-2.0
"""Searches for the order of jobs whose plan costs least; the rules of ``_core.pyi`` hold.

Words: a *unit* is one job, or several that stay together; the *lead* are units that come first in
every order; to *decode* an order is to book its jobs one after the other, each at its earliest
start, exactly as ``plan_nodes`` does with unlimited depth.
"""

import enum

import numpy as np
from numpy.typing import NDArray

from bridge.core._alarm import Alarm
from bridge.core.node_problem import NodeProblem

class Stopped(enum.IntEnum):
    """Why a search ended."""

    BOUND = 0
    """The bound is met: no plan that books the lead first costs less."""
    EXHAUSTED = 1
    """All orders were tried: none costs less."""
    PATIENCE = 2
    """No improvement for the allowed number of changes."""
    BUDGET = 3

class Decoding(enum.IntEnum):
    """How orders were decoded."""

    LISTS = 0
    """On flat lists with undo: thousands of jobs a millisecond."""
    PLANNER = 1
    """By the planner of ``plan_nodes`` itself, again from the first job that changed: some jobs use
    the same nodes whole and others share them, or jobs request counters.
    """

class OrderFound:
    """What ``search_orders`` found."""

    @property
    def order(self) -> NDArray[np.int32]:
        """(n_units,) units, the lead first."""
    @property
    def start(self) -> NDArray[np.int64]:
        """(n_jobs,) s, in that order; NEVER: none."""
    @property
    def given_cost(self) -> float:
        """Cost of the first order."""
    @property
    def family_cost(self) -> float:
        """Cost of the best order before the search."""
    @property
    def cost(self) -> float:
        """Cost of `order`: the sum of weight * max(0, start - due), or by `halves`.

        2**108 for each start after its latest one, which it could keep behind the lead alone;
        2**100 for each job without a start that could have one behind the lead alone.
        """
    @property
    def bound(self) -> float:
        """No plan that books the lead first costs less."""
    @property
    def decodes(self) -> int:
        """Orders tried, most of them in part."""
    @property
    def booked(self) -> int:
        """Jobs booked for them."""
    @property
    def steps(self) -> int:
        """Work, in steps of about a nanosecond; the same on every machine."""
    @property
    def stopped(self) -> Stopped: ...
    @property
    def decoding(self) -> Decoding: ...

def search_orders(
    problem: NodeProblem,
    *,
    unit_indptr: NDArray[np.int64],
    weight: NDArray[np.int64],
    due: NDArray[np.int64],
    orders: NDArray[np.int32],
    lead: int,
    effort: int,
    steps: int,
    patience: int,
    seed: int,
    alarm: Alarm | None = None,
    latest: NDArray[np.int64] | None = None,
    waited: NDArray[np.int64] | None = None,
    halves: int = 2,
) -> OrderFound:
    """Search for the order of units whose plan costs least.

    The first of `orders` is always decoded; then the others, then changes of the best, until the
    bound is met, there was no improvement for long, or the budget is spent. With at most 7 units
    behind the lead every order is tried instead.

    Args:
        problem: as for ``plan_nodes``; depth UNLIMITED.
        unit_indptr: (n_units + 1,) unit u is the jobs [unit_indptr[u], unit_indptr[u + 1]).
        weight: (n_jobs,) cost of a second of delay, 0 to 2**40.
        due: (n_jobs,) delay counts from here, s.
        orders: (n_orders, n_units) initial orders, one at least.
        lead: number of units that come first, as in the first order.
        effort: most jobs to book; 0: no bound.
        steps: most steps of the decoder; 0: no bound. The same effort, steps and seed give the same
            order everywhere, if there is no alarm.
        patience: consecutive changes without improvement, per unit, that end the search.
        seed: of the changes.
        alarm: ends the search when it expires; None: no time limit.
        latest: (n_jobs,) latest starts, s; NEVER: none. No order is kept that breaks more of them
            than the first one. None: no job has one.
        waited: (n_jobs,) s that a job has waited at `due`, >= 0; None: nothing.
        halves: twice the exponent of waits, 2 to 6: a wait of x costs weight * 3600 * (x / 3600)
            ** (halves / 2), less what `waited` costs.

    Returns:
        Order, starts, cost and bound.

    Raises:
        ValueError: a column has the wrong dtype, shape or value; the text names it.
    """
