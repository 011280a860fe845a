# SPDX-License-Identifier: Apache-2.0
"""The planning kernels, written in C++: availability over time, node choice, trace replay.

This package plans amounts and intervals and knows nothing of Slurm, users or priorities. It imports
nothing of the others. Start with `python/module.cpp`, which has the rules of every kernel
(half-open intervals, depth, saturation at ``NEVER``), then `book/book.hpp`. The module's types are
generated when it is built.

* ``plan_counts`` and ``map_counts``: interchangeable items, counted; then concrete nodes.
* ``plan_nodes``: nodes with several resources, classes, blackouts, counters, shared or whole, as
  a ``NodeProblem`` states them.
* ``Book``: the same, kept over time: find, book, revoke, replan, undo, ask what is in the way.
* ``replay_counts``: a whole trace by the same rules, in one call.
* ``Tree``: switches, the cost of hops across them, and node sets with a low cost.
* ``RepairNetwork``: a network that chooses where annealing puts jobs back.
* ``search_orders``: the order of jobs whose plan has the least cost.
* ``choose_widths``: numbers of nodes of jobs within a corridor of power.
* ``RequestTable``: requests of waiting jobs, evaluated once for equal ones.
* ``judge``: what is wrong with a plan; it shares no code with the planners.
* ``Alarm``: a deadline from a clock, handed to a kernel; kernels themselves count steps.
* ``HostlistFolder``: sets of node indices as Slurm hostlists.
* ``write_announcements``: planned starts and reasons in the encoding of the wire.
* ``group_numbers`` and ``group_objects``: which entries are the same.
* ``match_ids``: the rows of jobs in the table of an earlier cycle.
* ``read_status_lists``: a C library's lists of objects with attributes, as dictionaries.
* ``pack_nodes`` and ``unpack_nodes``: the bitsets in which node sets are passed.
"""

from bridge.core._core import (
    NEVER,
    UNLIMITED,
    UNPLANNED,
    Alarm,
    Arrangement,
    Blocked,
    Book,
    Bookings,
    BookPlan,
    ClockAlarm,
    Decoding,
    Fault,
    HopMetric,
    HostlistFolder,
    Kept,
    LoweredRows,
    NodePlan,
    OrderFound,
    RepairNetwork,
    Replay,
    RequestTable,
    Select,
    Stopped,
    TermMode,
    Tree,
    WidthRule,
    WidthsFound,
    choose_widths,
    due_announcements,
    group_numbers,
    group_objects,
    judge,
    map_counts,
    match_ids,
    plan_counts,
    plan_nodes,
    replay_counts,
    search_orders,
    write_announcements,
)
from bridge.core.bitsets import pack_nodes, unpack_nodes
from bridge.core.node_problem import NodeProblem

__all__ = [
    "NEVER",
    "UNLIMITED",
    "UNPLANNED",
    "Alarm",
    "Arrangement",
    "Blocked",
    "Book",
    "BookPlan",
    "Bookings",
    "ClockAlarm",
    "Decoding",
    "Fault",
    "HopMetric",
    "HostlistFolder",
    "Kept",
    "LoweredRows",
    "NodePlan",
    "NodeProblem",
    "OrderFound",
    "RepairNetwork",
    "Replay",
    "RequestTable",
    "Select",
    "Stopped",
    "TermMode",
    "Tree",
    "WidthRule",
    "WidthsFound",
    "choose_widths",
    "due_announcements",
    "group_numbers",
    "group_objects",
    "judge",
    "map_counts",
    "match_ids",
    "pack_nodes",
    "plan_counts",
    "plan_nodes",
    "replay_counts",
    "search_orders",
    "unpack_nodes",
    "write_announcements",
]
