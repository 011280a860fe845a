# SPDX-License-Identifier: Apache-2.0
"""What `schedbridge_contracts.reference_planner` plans, its results, and what it holds meanwhile.

Times are seconds from now; nodes are positions.
"""

from collections.abc import Iterable
from typing import NamedTuple

from bridge.core import NEVER

Amounts = tuple[int, ...]
"""By resource, or by counter."""
Tasks = dict[int, int]
"""How many tasks are, or would fit, on each node."""
ALLOWED_WIDTH = (
    lambda k: True,
    lambda k: k in (1, 2, 4, 8, 16, 32, 64),
    lambda k: k % 2 == 0,
    lambda k: k % 2 == 1,
    lambda k: k in (1, 8, 27, 64),
)
"""Whether a job may have k nodes, by `bridge.core.WidthRule`."""


class Running(NamedTuple):
    end: int
    exclusive: bool
    uses: dict[int, Amounts]  # by node
    counters: Amounts


class Alternative(NamedTuple):
    node_class: int
    time_limit: int
    min_nodes: int
    max_nodes: int
    latest: int = NEVER


class Job(NamedTuple):
    alternatives: list[Alternative]
    per_node: Amounts
    tasks: int  # 0: it counts none
    per_task: Amounts
    max_tasks: int  # on a node; 0: no limit
    exclusive: bool
    not_before: int
    width_rule: int
    required: int  # of `Problem.required`; -1: none
    counters: Amounts
    beside_depth: bool = False

    def allows_width(self, k: int) -> bool:
        return ALLOWED_WIDTH[self.width_rule](k)


class Problem(NamedTuple):
    now: int  # absolute
    depth: int
    select: int
    capacity: list[Amounts]
    rank: list[int]
    running: list[Running]
    classes: list[set[int]]
    blackouts: list[tuple[int, int, int, set[int]]]  # class, start, end, nodes
    counters: list[int]  # e.g. licences
    required: list[set[int]]
    jobs: list[Job]


class Result(NamedTuple):
    start: int
    alternative: int
    nodes: Tasks
    why: int
    counter: int
    fit_now: int  # nodes
    missed: int = NEVER  # the start that would be too late


class Holder(NamedTuple):
    """Who is on a node from `start` to `end`."""

    start: int
    end: int
    exclusive: bool
    use: Amounts


class Pool(NamedTuple):
    nodes: list[int]  # in the order in which they are taken
    booked: list[tuple[int, int, int, "Option"]]  # start, end, width


class Option(NamedTuple):
    """An alternative of the job at a position of the queue, and the pool of its nodes."""

    at: int
    job: Job
    alternative: Alternative
    pool: Pool | None = None


def peak(held: Iterable[tuple[int, int, int]], start: int, end: int) -> int:
    """The largest sum of what is held (from, to, amount) at any second of [start, end)."""
    held = [each for each in held if each[0] < end and start < each[1]]
    instants = {max(since, start) for since, _, _ in held}
    return max((sum(n for a, b, n in held if a <= at < b) for at in instants), default=0)
