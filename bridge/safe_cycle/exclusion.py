# SPDX-License-Identifier: Apache-2.0
"""Snapshots without some of their rows (suspects that may make planning fail).

| suspect | a snapshot without it |
|---|---|
| waiting job | has no such row; `whole` adds a row without a start to the plan |
| ended job | has no such row: nothing is learnt from it |
| running job | has its nodes closed; the job counts for limits and ends in the far future |
| reservation | has its nodes closed and its licences taken |
| node | has it closed |

Nothing is planned on what an excluded row holds, so a plan for the reduced snapshot is valid for
the full one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.model.plan import Plan
from bridge.model.reasons import Reason
from bridge.model.snapshot import Reservation, Snapshot
from bridge.units import DAY_S, NEVER

FAR_S = 365 * DAY_S


class RowKind(IntEnum):
    """The table that a suspect is a row of."""

    PENDING = 0
    ENDED = 1
    RUNNING = 2
    RESERVATION = 3
    NODE = 4


RowsByKind = Mapping[RowKind, Iterable[int]]
"""Suspects, by kind."""

_OF_NO_REQUEST = frozenset(
    {"priority", "hold", "hold_text", "array_tasks", "array_startable", "eligible_s"}
)
"""Columns that change while a job waits without a change of its request."""
RELEASED = " (released nodes)"
"""Behind the id of a job, for the nodes that it is giving back."""
_CLOSED = "closed: planning failed with it"


def count(snapshot: Snapshot, kind: RowKind) -> int:
    tables = snapshot.jobs, snapshot.ended, snapshot.running, snapshot.reservations, snapshot.nodes
    return len(tables[kind])


def name_of(snapshot: Snapshot, kind: RowKind, row: int) -> str:
    """Returns the name or job id of a suspect."""
    if kind is RowKind.NODE:
        return snapshot.nodes.names[row]
    if kind is RowKind.RESERVATION:
        return snapshot.reservations[row].name
    tables = snapshot.jobs, snapshot.ended, snapshot.running
    name = str(tables[kind].id[row])
    return name + RELEASED if kind is RowKind.RUNNING and snapshot.running.releasing[row] else name


def mark_of(snapshot: Snapshot, kind: RowKind, row: int) -> str:
    """Returns a text that changes when a suspect or its partition changes."""
    if kind is RowKind.NODE:
        nodes = snapshot.nodes
        return repr((nodes.capacity[row].tolist(), sorted(nodes.features[row])))
    if kind is RowKind.RESERVATION:
        return repr(_plain(snapshot.reservations[row]))
    if kind is RowKind.PENDING:
        own = [_plain(snapshot.partitions[at]) for at in snapshot.jobs.partitions[row]]
        return repr((_row(snapshot.jobs, row, _OF_NO_REQUEST), own))
    if kind is RowKind.ENDED:
        return repr(_row(snapshot.ended, row, frozenset()))
    running = snapshot.running
    held = slice(int(running.indptr[row]), int(running.indptr[row + 1]))
    wide = frozenset({"indptr", "nodes", "use"})
    if running.releasing[row]:  # such nodes are late a second later, too
        wide |= {"end_s"}
    return repr(
        (_row(running, row, wide), running.nodes[held].tolist(), running.use[held].tolist())
    )


def _row(table: Any, row: int, without: frozenset[str]) -> list[Any]:
    return [
        _plain(getattr(table, column.name)[row])
        for column in fields(table)
        if column.name not in without
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if hasattr(value, "__dataclass_fields__"):
        return [_plain(getattr(value, each.name)) for each in fields(value)]
    return value


def without(snapshot: Snapshot, suspects: RowsByKind) -> Snapshot:
    """Leaves jobs and reservations out, and closes nodes."""
    if not suspects:
        return snapshot
    rows = {kind: np.array(sorted(suspects.get(kind, ())), dtype=np.intp) for kind in RowKind}
    closed = np.zeros(len(snapshot.nodes), dtype=bool)
    changed: dict[str, Any] = {}
    if len(rows[RowKind.PENDING]):
        changed["jobs"] = _left(snapshot.jobs, rows[RowKind.PENDING])
    if len(rows[RowKind.ENDED]):
        changed["ended"] = _left(snapshot.ended, rows[RowKind.ENDED])
    closed[rows[RowKind.NODE]] = True
    if len(rows[RowKind.RUNNING]):
        changed["running"] = _quiet_running(snapshot, rows[RowKind.RUNNING], closed)
    if len(rows[RowKind.RESERVATION]):
        kept = list(snapshot.reservations)
        total = snapshot.licence_total.copy()
        for at in rows[RowKind.RESERVATION].tolist():
            closed[kept[at].nodes] = True
            if len(kept[at].licences):
                total = np.maximum(total - np.maximum(kept[at].licences, 0), 0)
            nobody = np.zeros(0, dtype=np.int32)
            nothing = np.zeros_like(kept[at].licences)
            kept[at] = Reservation(f"#{at}", snapshot.now_s, snapshot.now_s + 1, nobody, nothing)
        changed |= {"reservations": tuple(kept), "licence_total": total}
    if closed.any():
        nodes = snapshot.nodes
        changed["nodes"] = replace(
            nodes,
            usable=nodes.usable & ~closed,
            state=tuple(
                _CLOSED if shut else state
                for state, shut in zip(nodes.state, closed.tolist(), strict=True)
            ),
        )
    return replace(snapshot, **changed) if changed else snapshot


def _left(table: Any, rows: NDArray[np.intp]) -> Any:
    """A table without some rows."""
    stays = np.ones(len(table), dtype=bool)
    stays[rows] = False
    return replace(
        table, **{column.name: getattr(table, column.name)[stays] for column in fields(table)}
    )


def _quiet_running(snapshot: Snapshot, rows: NDArray[np.intp], closed: NDArray[np.bool_]) -> Any:
    """Returns running jobs with harmless values in some rows, and closes their nodes."""
    running, now_s = snapshot.running, snapshot.now_s
    owner = np.repeat(np.arange(len(running)), np.diff(running.indptr))
    own = np.isin(owner, rows)
    held = running.nodes[own]
    closed[held] = True
    quiet = {
        name: getattr(running, name).copy() for name in ("name", "start_s", "end_s", "licences")
    }
    quiet["name"][rows] = ""
    quiet["start_s"][rows] = np.clip(running.start_s[rows], 0, now_s)
    quiet["end_s"][rows] = np.maximum(np.clip(running.end_s[rows], 0, now_s + FAR_S), now_s + 1)
    for name in ("min_nodes", "max_nodes"):  # it keeps the nodes that it has
        quiet[name] = getattr(running, name).copy()
        quiet[name][rows] = 0
    quiet["licences"][rows] = np.clip(running.licences[rows], 0, snapshot.licence_total)
    everywhere, elsewhere = snapshot.nodes.capacity.sum(axis=0), running.use_elsewhere.copy()
    elsewhere[rows] = np.clip(elsewhere[rows], 0, everywhere)
    quiet["nodes_elsewhere"] = running.nodes_elsewhere.copy()
    quiet["nodes_elsewhere"][rows] = np.clip(running.nodes_elsewhere[rows], 0, len(snapshot.nodes))
    use = running.use.copy()
    use[own] = np.clip(use[own], 0, snapshot.nodes.capacity[held])
    return replace(running, **quiet, use=use, use_elsewhere=elsewhere)


def whole(snapshot: Snapshot, plan: Plan, reasons: Mapping[int, Reason]) -> Plan:
    """Extends a plan to waiting jobs that were left out.

    Args:
        plan: made without these jobs.
        reasons: rows of `snapshot.jobs` that were left out, and why they do not start.
    """
    if not reasons:
        return plan
    missing = np.array(sorted(reasons), dtype=np.int32)
    known = np.delete(np.arange(len(snapshot.jobs), dtype=np.int32), missing)
    more = len(missing)
    predicted = plan.predicted
    if predicted is not None:
        run_s = np.zeros(len(snapshot.jobs), dtype=np.int64)
        run_s[known] = predicted.run_s
        predicted = replace(predicted, run_s=run_s)
    return replace(
        plan,
        job=np.concatenate((known[plan.job], missing)),
        start_s=np.concatenate((plan.start_s, np.full(more, NEVER, dtype=np.int64))),
        end_s=np.concatenate((plan.end_s, np.zeros(more, dtype=np.int64))),
        partition=np.concatenate((plan.partition, np.full(more, -1, dtype=np.int32))),
        indptr=np.concatenate((plan.indptr, np.full(more, plan.indptr[-1], dtype=np.int64))),
        reasons=(*plan.reasons, *(reasons[row] for row in missing.tolist())),
        predicted=predicted,
    )


def nothing(snapshot: Snapshot, policy: str, reason: Reason) -> Plan:
    """Returns a plan without any start."""
    empty = np.zeros(0, dtype=np.int64)
    ints = empty.astype(np.int32)
    nobody = np.arange(len(snapshot.jobs))
    start = Plan(
        snapshot.now_s,
        policy,
        ints,
        empty,
        empty,
        ints,
        np.zeros(1, dtype=np.int64),
        ints,
        ints,
        (),
    )
    return whole(snapshot, start, dict.fromkeys(nobody.tolist(), reason))
