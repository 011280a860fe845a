# SPDX-License-Identifier: Apache-2.0
"""The plan that is kept from cycle to cycle and, serialized, over a restart.

Format: a line of JSON (version, names, layouts, a checksum of the columns, and last a checksum of
the line so far, which earlier versions did not write), then columns of little-endian int32 and
int64. Any other input is refused as a whole, with the reason.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge import json_text
from bridge.core import Blocked
from bridge.model.plan import Plan
from bridge.model.resources import Arrangement
from bridge.planning.queue.columns import by_appearance
from bridge.planning.queue.layout_options import Group, Layout
from bridge.planning.scheduler.book_handover import Handover
from bridge.planning.scheduler.placements import Placement, PlacementColumns, PlacementsById

VERSION = 1
MAX_BYTES = 1 << 28
"""Longer inputs are refused."""
_COLUMNS = (
    ("start_s", "<i8"), ("alternative", "<i4"), ("choice", "<i4"), ("layout", "<i4"),
    ("late", "<i4"), ("blocked", "<i4"), ("constraint", "<i4"), ("width", "<i4"),
    ("nodes", "<i4"), ("groups", "<i4"), ("chunks", "<i4"),
)  # fmt: skip
"""The last three have one entry for each entry of a placement, the others one for each job."""
_BY_JOB = 8
_HEAD_CRC = b',"head_crc":'
_MAX = 1 << 31
_MAX_WANTED = 1 << 40
"""Amounts and counts in layouts are smaller."""


@dataclass(frozen=True)
class KeptPlan:
    """Placements of jobs, by id, and the names of the nodes.

    Attributes:
        handover: the book that holds them, for the next cycle; not serialized.
    """

    names: tuple[str, ...]
    placements: Mapping[str, Placement]
    handover: Handover = field(default_factory=Handover, compare=False, repr=False)

    @cached_property
    def by_id(self) -> PlacementsById:
        """The placements as columns."""
        if isinstance(self.placements, PlacementsById):
            return self.placements
        columns = PlacementColumns.of(list(self.placements.values()))
        return PlacementsById(self.placements, columns)

    def relocated(
        self, ids: NDArray[np.object_], plan: Plan, image: NDArray[np.int32]
    ) -> "KeptPlan":
        """A copy with the jobs of a plan on other nodes.

        Args:
            ids: (n_rows,) of the jobs.
            image: (nnz,) the new node of each of its node entries.
        """
        width = np.diff(plan.indptr)
        changed = np.repeat(np.arange(len(plan)), width)[image != plan.nodes]
        placements = dict(self.placements)
        for row in np.unique(changed).tolist():
            placement = placements.get(ids[row])
            if placement is None or placement.start_s != plan.start_s[row]:
                continue
            own = slice(int(plan.indptr[row]), int(plan.indptr[row + 1]))
            to = image[own][np.searchsorted(plan.nodes[own], placement.nodes)]
            order = np.lexsort((placement.groups, to))
            placements[ids[row]] = replace(
                placement,
                nodes=to[order],
                groups=placement.groups[order],
                chunks=placement.chunks[order],
            )
        return KeptPlan(self.names, placements)


def to_bytes(plan: KeptPlan) -> bytes:
    """Writes a plan. O(jobs + nodes)."""
    kept = plan.by_id.columns
    layout_rows, layout = by_appearance(kept.layout)
    layouts: dict[tuple[object, ...], int] = {}
    number = [
        layouts.setdefault(_layout_words(kept.layouts[at]), len(layouts))
        for at in kept.layout[layout_rows].tolist()
    ]
    key_rows, constraint = by_appearance(kept.constraint)
    keys = [kept.constraint_keys[at] for at in kept.constraint[key_rows].tolist()]
    columns = (
        kept.start_s, kept.alternative, kept.layout_index,
        np.array(number, dtype=np.int64)[layout], kept.late, kept.blocked, constraint,
        np.diff(kept.indptr), kept.nodes, kept.groups, kept.chunks,
    )  # fmt: skip
    body = b"".join(
        np.ascontiguousarray(column, dtype=kind).tobytes()
        for column, (_, kind) in zip(columns, _COLUMNS, strict=True)
    )
    head = {
        "version": VERSION,
        "crc": zlib.crc32(body),
        "nodes": plan.names,
        "jobs": plan.by_id.ids,
        "entries": len(kept.nodes),
        "layouts": list(layouts),
        "ceilings": keys,
    }
    line = json.dumps(head, separators=(",", ":")).encode()
    return line[:-1] + _HEAD_CRC + str(zlib.crc32(line)).encode() + b"}\n" + body


def _layout_words(layout: Layout) -> tuple[object, ...]:
    groups = tuple(
        (group.count, group.want, group.max_per_node, group.tasks, group.kind)
        for group in layout.groups
    )
    return (int(layout.arrangement), layout.exclusive, layout.nodes, groups)


def from_bytes(value: bytes) -> KeptPlan:
    """Reads what `to_bytes` wrote.

    Raises:
        ValueError: the input is not a valid plan; with the reason.
    """
    if len(value) > MAX_BYTES:
        raise ValueError(f"it is longer than {MAX_BYTES} bytes")
    line, _, body = value.partition(b"\n")
    try:
        head = json_text.load(line)
        version = head["version"]
    except OSError as error:
        raise ValueError(f"its header {(error.strerror or '').lower()}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError("it is not a plan") from error
    if version != VERSION:
        raise ValueError(f"it has version {version!r}, this service writes {VERSION}")
    before, mark, _ = line.rpartition(_HEAD_CRC)
    if mark and zlib.crc32(before + b"}") != head.get("head_crc"):
        raise ValueError("its checksum is wrong")
    try:
        return _read(head, body)
    except (KeyError, TypeError, IndexError, OverflowError) as error:
        raise ValueError("its header is invalid") from error


def _read(head: dict[str, Any], body: bytes) -> KeptPlan:
    names, jobs = _texts(head["nodes"]), _texts(head["jobs"])
    constraints = _texts(head["ceilings"])
    if zlib.crc32(body) != head["crc"]:
        raise ValueError("its checksum is wrong")
    layouts = [_layout(*words) for words in head["layouts"]]
    column = _columns(body, len(jobs), int(head["entries"]))
    width = column["width"]
    if (width < 1).any() or int(width.sum()) != len(column["nodes"]):
        raise ValueError("its placements do not add up")
    groups = np.array([len(layout.groups) for layout in layouts], dtype=np.int64)
    for name, maximum in (
        ("nodes", len(names)), ("layout", len(layouts)), ("constraint", len(constraints)),
        ("late", 2), ("blocked", max(Blocked) + 1), ("alternative", 1 << 20), ("choice", 1 << 20),
    ):  # fmt: skip
        _within(name, column[name], maximum)
    _within("groups", column["groups"], np.repeat(groups[column["layout"]], width))
    _within("chunks", column["chunks"] - 1, 1 << 30)
    _within("start_s", column["start_s"], 1 << 40)
    columns = PlacementColumns(
        start_s=column["start_s"],
        alternative=column["alternative"],
        layout_index=column["choice"],
        layout=column["layout"].astype(np.int64),
        late=column["late"].astype(bool),
        blocked=column["blocked"].astype(np.int8),
        constraint=column["constraint"].astype(np.int64),
        indptr=np.concatenate(([0], np.cumsum(width))).astype(np.int64),
        nodes=column["nodes"],
        groups=column["groups"],
        chunks=column["chunks"],
        layouts=tuple(layouts),
        constraint_keys=constraints,
    )
    return KeptPlan(names, PlacementsById(jobs, columns))


def _columns(body: bytes, n_jobs: int, n_entries: int) -> dict[str, NDArray[Any]]:
    found, at = {}, 0
    for index, (name, kind) in enumerate(_COLUMNS):
        count = n_jobs if index < _BY_JOB else n_entries
        size = count * np.dtype(kind).itemsize
        if count < 0 or at + size > len(body):
            raise ValueError("it is cut off")
        read = np.frombuffer(body, dtype=kind, count=count, offset=at)
        found[name] = read.astype(read.dtype.newbyteorder("="))
        at += size
    if at != len(body):
        raise ValueError("it is too long")
    return found


def _within(name: str, column: NDArray[Any], maximum: int | NDArray[np.int64]) -> None:
    if ((column < 0) | (column >= maximum)).any():
        raise ValueError(f"its column {name} has a number that refers to nothing")


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError("its header is invalid")
    return tuple(value)


def _layout(arrangement: int, exclusive: bool, nodes: int, groups: list[list[Any]]) -> Layout:
    read = tuple(
        Group(
            class_=0,  # classes are renumbered in every cycle
            count=int(count),
            want=tuple(int(amount) for amount in want),
            max_per_node=int(max_per_node),
            tasks=int(tasks),
            kind=int(kind),
        )
        for count, want, max_per_node, tasks, kind in groups
    )
    if not read:
        raise ValueError("it has a layout without chunks")
    counts = [count for one in read for count in (one.count, one.max_per_node, one.tasks)]
    if not all(0 <= count < _MAX for count in (*counts, nodes)):
        raise ValueError("it has a layout with a number that refers to nothing")
    if not all(0 <= amount < _MAX_WANTED for one in read for amount in one.want):
        raise ValueError("it has a layout that requests what no node has")
    if not all(-1 <= one.kind < _MAX for one in read):
        raise ValueError("it has a layout of an unknown kind")
    return Layout(read, Arrangement(arrangement), bool(exclusive), int(nodes))
