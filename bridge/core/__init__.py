# SPDX-License-Identifier: Apache-2.0
"""The planning kernels, written in C++: availability over time, node choice, trace replay.

This package plans amounts and intervals and knows nothing of Slurm, users or priorities. The rules
every kernel keeps (half-open intervals, depth, saturation at ``NEVER``) stand in ``_core.pyi``.

* ``plan_counts`` and ``map_counts``: interchangeable things, counted; then concrete nodes.
* ``plan_nodes``: nodes with several resources, classes, blackouts, counters, shared or whole.
* ``Book``: the same kept over time: find, book, revoke, replan, undo, ask who stands in the way.
* ``replay_counts``: a whole trace through the same rules, in one call.
* ``UsageVector``: used or free items of one resource over time (the RUSV of OpenCCS).
* ``Tree``: switches; what jobs pay for hops across them, and node sets that pay little.
* ``RepairNetwork``: a network that says where annealing puts jobs back.
* ``search_orders``: the order of jobs whose plan costs least.
* ``RequestTable``: what waiting jobs ask for, worked out once for those that ask alike.
* ``judge``: what is wrong with a plan; it shares nothing with what plans.
* ``Alarm``: what who lives by a clock hands to a kernel; kernels themselves count steps.
* ``HostlistFolder``: sets of node indices as Slurm hostlists.
* ``pack_nodes`` and ``unpack_nodes``: the bitsets in which node sets are given.
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
    LoweredRows,
    NodePlan,
    OrderFound,
    RepairNetwork,
    Replay,
    RequestTable,
    Select,
    Stopped,
    Stores,
    TermMode,
    Tree,
    UsageVector,
    WidthRule,
    judge,
    map_counts,
    plan_counts,
    plan_nodes,
    replay_counts,
    search_orders,
)
from bridge.core.bitsets import pack_nodes, unpack_nodes

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
    "LoweredRows",
    "NodePlan",
    "OrderFound",
    "RepairNetwork",
    "Replay",
    "RequestTable",
    "Select",
    "Stopped",
    "Stores",
    "TermMode",
    "Tree",
    "UsageVector",
    "WidthRule",
    "judge",
    "map_counts",
    "pack_nodes",
    "plan_counts",
    "plan_nodes",
    "replay_counts",
    "search_orders",
    "unpack_nodes",
]
