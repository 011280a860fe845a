# SPDX-License-Identifier: Apache-2.0
"""The changes of a snapshot since the last report: a number for each job, rows of nodes."""

import zlib
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import COLUMNS
from bridge.model.job_columns import Source
from bridge.model.parts import Parts
from bridge.model.snapshot import Snapshot

_PRINTED = tuple(
    each for each in COLUMNS if each.is_number and each.source in (Source.MESSAGE, Source.REQUEST)
)


def pending_fingerprints(snapshot: Snapshot) -> NDArray[np.int64]:
    """For each waiting job a number that changes with its reported fields."""
    jobs = snapshot.jobs
    mark = np.zeros(len(jobs), dtype=np.int64)
    for each in _PRINTED:
        column = getattr(jobs, each.name)
        same_size = column.dtype == np.uint64
        mark = (mark ^ (column.view(np.int64) if same_size else column)) * 1_000_003
    return mark


def _running_fingerprints(snapshot: Snapshot) -> NDArray[np.int64]:
    """For each running job a number that changes with its reported fields."""
    running = snapshot.running
    sums = np.concatenate(([0], np.cumsum(running.nodes.astype(np.int64) * running.nodes + 1)))
    held = sums[running.indptr[1:]] - sums[running.indptr[:-1]]
    mark: NDArray[np.int64] = (running.start_s * 1_000_003 ^ running.end_s) * 1_000_003 ^ held
    mark = mark * 2 + running.adapting
    mark = (mark * 31 + running.hosted_s) * 31 + running.hosted_since_s
    for row in running.host_id.nonzero()[0].tolist():
        mark[row] = mark[row] * 31 + zlib.crc32(running.host_id[row].encode())
    return mark


def holders(snapshot: Snapshot) -> tuple[dict[str, int], dict[str, list[int]]]:
    """Running jobs in table order with their fingerprints, and the rows they are releasing."""
    running, fingerprints = snapshot.running, _running_fingerprints(snapshot).tolist()
    holding: dict[str, int] = {}
    released: dict[str, list[int]] = {}
    for row, (job_id, releasing) in enumerate(
        zip(running.id.tolist(), running.releasing.tolist(), strict=True)
    ):
        if releasing:
            holding[job_id] = holding[job_id] * 31 + fingerprints[row]
            released.setdefault(job_id, []).append(row)
        else:
            holding[job_id] = fingerprints[row]
    return holding, released


def changed_nodes(last: Snapshot, snapshot: Snapshot) -> list[int]:
    """Rows of the nodes that have changed; names and resources are the same."""
    before, now = last.nodes, snapshot.nodes
    differs = (before.capacity != now.capacity).any(axis=1)
    differs |= (before.usable != now.usable) | (before.weight != now.weight)
    if before.parts is not now.parts:
        differs |= _other_parts(before.parts, now.parts, len(differs))
    words = (before.features, before.state) != (now.features, now.state)
    if words:
        differs |= np.fromiter(
            (
                before.features[row] != now.features[row] or before.state[row] != now.state[row]
                for row in range(len(now))
            ),
            dtype=bool,
            count=len(now),
        )
    rows: list[int] = np.flatnonzero(differs).tolist()
    return rows


def _other_parts(before: Parts, now: Parts, n_nodes: int) -> NDArray[np.bool_]:
    """(n_nodes,) which nodes differ in columns of extensions."""
    differs = np.zeros(n_nodes, dtype=bool)
    if before.keys() != now.keys():
        return ~differs
    for name, part in now.items():
        for each in fields(part):
            differs |= getattr(before[name], each.name) != getattr(part, each.name)
    return differs
