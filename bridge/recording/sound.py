# SPDX-License-Identifier: Apache-2.0
"""Checks whether a snapshot and a plan are consistent, before any kernel reads them.

This covers only what kernels require: equal lengths of columns, ascending offsets, valid indexes,
amounts that are not negative. `bridge.check.legality` checks whether a plan is legal.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import fields

from bridge.core import Tree
from bridge.extension_packages import installed
from bridge.model.job import COLUMNS, RUNNING_COLUMNS, Ending, Hold, WidthRule
from bridge.model.job_columns import AMOUNTS, VECTORS, Column, Unit
from bridge.model.parts import is_among_fields
from bridge.model.plan import Plan
from bridge.model.resources import LoweredChunks
from bridge.model.snapshot import Snapshot
from bridge.model.sound_columns import (
    MAX,
    ColumnFault,
    amounts,
    indexes,
    length,
    offsets,
    width,
)
from bridge.units import NEVER


def unsound(snapshot: Snapshot, plan: Plan) -> ColumnFault | None:
    """The first fault; None if both are consistent."""
    return next(_faults(snapshot, plan), None)


def _faults(snapshot: Snapshot, plan: Plan) -> Iterator[ColumnFault]:
    yield from _nodes(snapshot)
    # Nodes, partitions and licences first, as the other checks count them.
    yield from _partitions_and_reservations(snapshot)
    yield from _switches(snapshot)
    yield from _jobs(snapshot)
    yield from _running(snapshot)
    for each in fields(snapshot.ended):
        column = getattr(snapshot.ended, each.name)
        yield from length(f"snapshot.ended.{each.name}", column, len(snapshot.ended))
    yield from indexes("snapshot.ended.ending", snapshot.ended.ending, len(Ending))
    yield from _plan(snapshot, plan)


def _nodes(snapshot: Snapshot) -> Iterator[ColumnFault]:
    nodes, count = snapshot.nodes, len(snapshot.nodes.names)
    if len(snapshot.resources) < 2:
        yield "snapshot.resources", "must begin with cpus and mem_mib"
    if not 0 <= snapshot.now_s < MAX:
        yield "snapshot.now_s", "is not a possible instant"
    if not 0 <= snapshot.generation < 1 << 64:
        yield "snapshot.generation", "is not a possible count"
    for name in ("usable", "weight", "features", "state", "capacity"):
        yield from length(f"snapshot.nodes.{name}", getattr(nodes, name), count)
    for part_name, part in nodes.parts.items():
        for each in dataclasses.fields(part):
            yield from length(
                f"snapshot.nodes.{part_name}.{each.name}", getattr(part, each.name), count
            )
    yield from width("snapshot.nodes.capacity", nodes.capacity, len(snapshot.resources))
    yield from amounts("snapshot.nodes.capacity", nodes.capacity)
    if len(set(nodes.names)) < count:
        yield "snapshot.nodes.names", "names a node twice"
    yield from length("snapshot.licence_total", snapshot.licence_total, len(snapshot.licences))
    yield from amounts("snapshot.licence_total", snapshot.licence_total)


def _partitions_and_reservations(snapshot: Snapshot) -> Iterator[ColumnFault]:
    count = len(snapshot.nodes)
    for i, partition in enumerate(snapshot.partitions):
        yield from indexes(f"snapshot.partitions[{i}].nodes", partition.nodes, count)
        for name in ("min_nodes", "max_nodes", "max_time_s", "default_time_s", "priority_tier"):
            if not 0 <= getattr(partition, name) < MAX:
                yield f"snapshot.partitions[{i}].{name}", "is not a possible amount"
    for i, kept in enumerate(snapshot.reservations):
        yield from indexes(f"snapshot.reservations[{i}].nodes", kept.nodes, count)
        if not -MAX < kept.start_s <= kept.end_s <= NEVER:
            yield f"snapshot.reservations[{i}].end_s", "is before its start, or no instant"
        if len(kept.licences) not in (0, len(snapshot.licences)):
            yield f"snapshot.reservations[{i}].licences", "does not fit the snapshot's licences"
        yield from amounts(f"snapshot.reservations[{i}].licences", kept.licences)


def _switches(snapshot: Snapshot) -> Iterator[ColumnFault]:
    if (topology := snapshot.topology) is None:
        return
    count = len(topology.names)
    yield from length("snapshot.topology.parent", topology.parent, count)
    yield from length("snapshot.topology.leaf_of_node", topology.leaf_of_node, len(snapshot.nodes))
    if len(set(topology.names)) < count:
        yield "snapshot.topology.names", "names a switch twice"
    try:
        Tree(topology.parent, topology.leaf_of_node)
    except ValueError as error:
        yield "snapshot.topology", str(error)


def _jobs(snapshot: Snapshot) -> Iterator[ColumnFault]:
    jobs, count = snapshot.jobs, len(snapshot.jobs)
    for each in fields(jobs):
        yield from length(f"snapshot.jobs.{each.name}", getattr(jobs, each.name), count)
    yield from _columns("snapshot.jobs", jobs, COLUMNS, snapshot)
    if (jobs.min_nodes < 1).any() or (jobs.max_nodes < jobs.min_nodes).any():
        yield "snapshot.jobs.min_nodes", "must be 1 or more and not above max_nodes"
    yield from indexes("snapshot.jobs.hold", jobs.hold, len(Hold))
    yield from indexes("snapshot.jobs.width_rule", jobs.width_rule, len(WidthRule))
    if not all(jobs.partitions):
        yield "snapshot.jobs.partitions", "names none for some job"
    for row, requested in enumerate(jobs.chunks):
        if requested is not None and not _fits(requested, len(snapshot.resources)):
            yield f"snapshot.jobs.chunks[{row}]", "does not fit the snapshot's resources"


def _fits(requested: LoweredChunks, width: int) -> bool:
    """Whether a request in chunks is valid in a cluster with `width` resources."""
    kinds = requested.request.kinds
    rows = (*requested.wants, requested.per_node)
    return (
        len(kinds) == len(requested.wants) == len(requested.features) > 0
        and all(len(row) == width and 0 <= min(row) <= max(row) < MAX for row in rows)
        and all(0 < chunk.count < MAX for chunk in requested.request.chunks)
    )


def _running(snapshot: Snapshot) -> Iterator[ColumnFault]:
    running, count = snapshot.running, len(snapshot.running)
    held = {"indptr": count + 1, "nodes": len(running.nodes), "use": len(running.nodes)}
    for each in fields(running):
        size = held.get(each.name, count)
        yield from length(f"snapshot.running.{each.name}", getattr(running, each.name), size)
    yield from width("snapshot.running.use", running.use, len(snapshot.resources))
    yield from amounts("snapshot.running.use", running.use)
    yield from offsets("snapshot.running.indptr", running.indptr, len(running.nodes))
    yield from indexes("snapshot.running.nodes", running.nodes, len(snapshot.nodes))
    yield from _columns("snapshot.running", running, RUNNING_COLUMNS, snapshot)
    yield from indexes("snapshot.running.width_rule", running.width_rule, len(WidthRule))


def _columns(
    field: str, table: object, columns: Sequence[Column], snapshot: Snapshot
) -> Iterator[ColumnFault]:
    """The fault in the values of columns, by their units."""
    widths = {Unit.RESOURCES: len(snapshot.resources), Unit.LICENCES: len(snapshot.licences)}
    rows = {
        Unit.PARTITION: len(snapshot.partitions), Unit.RESERVATION: len(snapshot.reservations),
        Unit.PARTITIONS: len(snapshot.partitions), Unit.NODES: len(snapshot.nodes),
        Unit.NODE: len(snapshot.nodes),
    }  # fmt: skip
    for each in columns:
        name, column = f"{field}.{each.name}", getattr(table, each.name)
        if each.unit in (Unit.PARTITION, Unit.RESERVATION, Unit.NODE):
            yield from indexes(name, column, rows[each.unit], none=True)
        elif each.unit is Unit.CODE:
            yield from indexes(name, column, each.maximum + 1, none=True)
        elif each.unit in rows:
            for row, named in enumerate(column):
                if not all(0 <= index < rows[each.unit] for index in named):
                    yield f"{name}[{row}]", f"points outside of {rows[each.unit]}"
        elif each.unit in (Unit.INSTANT, Unit.DEADLINE):
            yield from amounts(name, column, past=True)
        elif each.unit in AMOUNTS:
            if each.unit in VECTORS:
                yield from width(name, column, widths[each.unit])
            yield from amounts(name, column)


def _plan(snapshot: Snapshot, plan: Plan) -> Iterator[ColumnFault]:
    count = len(plan.job)
    for name in ("start_s", "end_s", "partition", "reasons"):
        yield from length(f"plan.{name}", getattr(plan, name), count)
    yield from length("plan.indptr", plan.indptr, count + 1)
    yield from offsets("plan.indptr", plan.indptr, len(plan.nodes))
    yield from length("plan.tasks", plan.tasks, len(plan.nodes))
    if plan.groups is not None:
        yield from length("plan.groups", plan.groups, len(plan.nodes))
    yield from indexes("plan.job", plan.job, len(snapshot.jobs))
    yield from indexes("plan.nodes", plan.nodes, len(snapshot.nodes))
    yield from indexes("plan.partition", plan.partition, len(snapshot.partitions), none=True)
    if (predicted := plan.predicted) is not None:  # in files under the key `believed`
        for name, column, count in (
            ("run_s", predicted.run_s, len(snapshot.jobs)),
            ("end_s", predicted.end_s, len(snapshot.running)),
        ):
            yield from length(f"plan.believed.{name}", column, count)
            yield from amounts(f"plan.believed.{name}", column, past=True)
    yield from _changes(snapshot, plan)
    if plan.now_s != snapshot.now_s:
        yield "plan.now_s", "is not the snapshot's"


def _changes(snapshot: Snapshot, plan: Plan) -> Iterator[ColumnFault]:
    """The fault in resizes, and in parts."""
    for name, resizes in (("resizes", plan.resizes), ("returns", plan.returns)):
        count = len(resizes.job)
        for column in ("by_s", "reasons", "end_s"):
            yield from length(f"plan.{name}.{column}", getattr(resizes, column), count)
        yield from length(f"plan.{name}.indptr", resizes.indptr, count + 1)
        yield from offsets(f"plan.{name}.indptr", resizes.indptr, len(resizes.nodes))
        yield from indexes(f"plan.{name}.job", resizes.job, len(snapshot.running))
        yield from indexes(f"plan.{name}.nodes", resizes.nodes, len(snapshot.nodes))
    widths = plan.start_widths
    yield from indexes("plan.start_widths.job", widths.job, len(snapshot.jobs))
    for column in ("nodes", "time_limit_s"):
        yield from length(f"plan.start_widths.{column}", getattr(widths, column), len(widths.job))
        yield from amounts(f"plan.start_widths.{column}", getattr(widths, column))
    for name, part in plan.parts.items():
        check = installed().by_name[name].check
        faults = () if check is None else check.made().faults(snapshot, plan)
        where = "plan" if is_among_fields(type(part)) else f"plan.{name}"
        yield from ((f"{where}.{column}", problem) for column, problem in faults)
