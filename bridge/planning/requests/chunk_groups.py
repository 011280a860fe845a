# SPDX-License-Identifier: Apache-2.0
"""Chunks in the columns of a cluster, and any job of the queue as groups of chunks for the book.

Rules
    1. A job that asks in chunks has one group for each kind of them.
    2. A job without tasks has one group: as many chunks as its least nodes, scattered.
    3. A job with tasks has one group: its tasks, free, within its bounds on nodes and on tasks on
       each node. What it needs once on every node is `per_node`.
    4. A chunk's CPUs are rounded up to whole cores where jobs hold whole cores.
    5. A chunk's memory is what the controller will hold for it (`bridge.dialect`), so that the
       controller accepts a start that fits by the plan.
    6. `group=rack` is one alternative for each feature `rack=...` that any node has; where there
       is none, it is the feature `rack`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.dialect import dialect_named
from bridge.errors import RequestError
from bridge.model.node import CPUS, MEMORY_MIB
from bridge.model.resources import Arrangement, ChunkRequest, LoweredChunks
from bridge.model.snapshot import Snapshot
from bridge.planning.requests.chunks import format_request


@dataclass(frozen=True)
class ChunkGroups:
    """One job's groups; G of them, R resources.

    Attributes:
        counts: (G,) int64 chunks.
        wants: (G, R) int64 of each chunk.
        features: (G,) constraint of each group; see `LoweredChunks.features`.
        per_node: (R,) int64 needed once on every node used.
        min_nodes, max_nodes: bounds of the width.
        max_per_node: most chunks on one node; 0: no bound.
    """

    counts: NDArray[np.int64]
    wants: NDArray[np.int64]
    features: tuple[str, ...]
    arrangement: Arrangement
    exclusive: bool
    per_node: NDArray[np.int64]
    min_nodes: int
    max_nodes: int
    max_per_node: int


def chunk_groups(snapshot: Snapshot, row: int) -> ChunkGroups:
    """Returns one pending job of a snapshot as groups of chunks."""
    jobs = snapshot.jobs
    lowered: LoweredChunks | None = jobs.chunks[row]
    exclusive = bool(jobs.exclusive[row])
    if lowered is not None:
        request = lowered.request
        arrangement, n_chunks = request.place.arrangement, request.n_chunks
        if request.kinds[0].host:
            arrangement = Arrangement.PACK  # on the node that the job requires
        scatter = arrangement is Arrangement.SCATTER
        return ChunkGroups(
            counts=np.array([kind.count for kind in request.kinds], dtype=np.int64),
            wants=np.array(lowered.wants, dtype=np.int64),
            features=lowered.features,
            arrangement=arrangement,
            exclusive=exclusive,
            per_node=np.array(lowered.per_node, dtype=np.int64),
            min_nodes=n_chunks if scatter else 1,
            max_nodes=1 if arrangement is Arrangement.PACK else n_chunks,
            max_per_node=1 if scatter else 0,
        )
    tasks = int(jobs.tasks[row])
    want = jobs.per_task[row] if tasks else jobs.per_node[row]
    return ChunkGroups(
        counts=np.array([tasks or jobs.min_nodes[row]], dtype=np.int64),
        wants=want.reshape(1, -1).copy(),
        features=(str(jobs.features[row]),),
        arrangement=Arrangement.FREE if tasks else Arrangement.SCATTER,
        exclusive=exclusive,
        per_node=jobs.per_node[row].copy() if tasks else np.zeros_like(want),
        min_nodes=int(jobs.min_nodes[row]),
        max_nodes=int(jobs.max_nodes[row]),
        max_per_node=int(jobs.max_tasks_per_node[row]) if tasks else 1,
    )


@dataclass(frozen=True)
class ClusterWords:
    """The properties of a cluster that lowering depends on.

    Attributes:
        column: generic resource to its column of the resource vectors.
        threads: multiple to which a chunk's CPUs are rounded up.
        memory_consumable: memory is a consumable resource; otherwise chunks take none.
        dialect: the controller's dialect (`bridge.dialect`).
    """

    column: Mapping[str, int]
    n_resources: int
    threads: int = 1
    memory_consumable: bool = True
    features: frozenset[str] = frozenset()
    dialect: str = ""

    @property
    def generic(self) -> frozenset[str]:
        """Names of the generic resources."""
        return frozenset(self.column)


def lower_chunks(
    request: ChunkRequest,
    cluster: ClusterWords,
    *,
    constraint: str = "",
    memory_per_node_mib: int = 0,
    memory_per_cpu_mib: int = 0,
) -> LoweredChunks:
    """Lowers a request.

    Args:
        request: the chunks.
        constraint: the controller's constraint; contains what all chunks request.
        memory_per_node_mib: the controller's value where the chunks state no memory.

    Raises:
        RequestError: this cluster does not have it, or the controller cannot represent it.
    """
    dialect = dialect_named(cluster.dialect)
    kinds, generic = request.kinds, cluster.generic
    held = dialect.controller_request(request, generic)
    if held.constraint and constraint != held.constraint:
        raise _refused(
            request, f"the controller has the constraint '{constraint}', not '{held.constraint}'"
        )
    base = _grouped(request, constraint, cluster.features, dialect.words.node)
    common = set(held.constraint.split("&"))
    stated = any(kind.mem_mib for kind in kinds)
    per_node = [0] * cluster.n_resources
    if cluster.memory_consumable and not stated:
        per_node[MEMORY_MIB] = memory_per_node_mib
    wants, constraints = [], []
    for kind in kinds:
        want = [0] * cluster.n_resources
        want[CPUS] = -(-kind.ncpus // cluster.threads) * cluster.threads
        if cluster.memory_consumable:
            want[MEMORY_MIB] = (
                dialect.chunk_memory_mib(request, kind, want[CPUS])
                if stated
                else want[CPUS] * memory_per_cpu_mib
            )
        for name, number in kind.amounts:
            if name in generic:
                want[cluster.column[name]] += number
        wants.append(tuple(want))
        own = dialect.chunk_features(request, kind, generic)
        if unknown := sorted(own - cluster.features):
            raise _refused(
                request, f"no {dialect.words.node} has the feature or resource '{unknown[0]}'"
            )
        constraints.append(_and(base, sorted(own - common)))
    return LoweredChunks(request, tuple(wants), tuple(constraints), tuple(per_node))


@dataclass(frozen=True)
class ChunkColumns:
    """A request in the other columns of `bridge.model.job.JobTable`, named as there."""

    min_nodes: int
    max_nodes: int
    tasks: int
    features: str
    per_node: tuple[int, ...]
    per_task: tuple[int, ...]


def chunk_columns(lowered: LoweredChunks) -> ChunkColumns:
    """States chunks of one kind exactly; for several kinds, a conservative upper bound.

    In the bound each chunk is as large as the largest in every resource; on one node, their sum.
    """
    request, kinds = lowered.request, lowered.request.kinds
    n_chunks, arrangement = request.n_chunks, request.place.arrangement
    by_resource = list(zip(*lowered.wants, strict=True))
    maximum = tuple(max(column) for column in by_resource)
    zero = (0,) * len(maximum)
    nodes, tasks, per_node, per_task = n_chunks, 0, maximum, zero
    if arrangement is Arrangement.PACK or n_chunks == 1 or kinds[0].host:
        nodes = 1
        per_node = tuple(
            sum(kind.count * n for kind, n in zip(kinds, column, strict=True))
            for column in by_resource
        )
    elif arrangement is Arrangement.FREE:
        tasks, per_node, per_task = n_chunks, zero, maximum
    return ChunkColumns(
        min_nodes=nodes if arrangement is Arrangement.SCATTER else 1,
        max_nodes=nodes,
        tasks=tasks,
        features=lowered.features[0] if len(kinds) == 1 else "",
        per_node=tuple(a + b for a, b in zip(per_node, lowered.per_node, strict=True)),
        per_task=per_task,
    )


def _grouped(request: ChunkRequest, constraint: str, known: Iterable[str], node: str) -> str:
    """The constraint with the alternatives of `group` (rule 6)."""
    name = request.place.group
    if not name:
        return constraint
    if "|" in constraint or "[" in constraint:
        raise _refused(request, "group= and alternatives in the constraint cannot be combined")
    known = frozenset(known)
    family = sorted(feature for feature in known if feature.startswith(f"{name}="))
    if not family and name not in known:
        text = f"no {node} has a feature '{name}=...' or '{name}' to group by"
        raise _refused(request, text)
    if not family:
        return _and(constraint, [name])
    return "[" + "|".join(_and(constraint, [feature]) for feature in family) + "]"


def _and(constraint: str, more: list[str]) -> str:
    """Adds required features to a constraint, in each of its alternatives."""
    if not more:
        return constraint
    words = "&".join(more)
    if not constraint:
        return words
    if constraint.startswith("["):
        return "[" + "|".join(f"{part}&{words}" for part in constraint[1:-1].split("|")) + "]"
    return f"({constraint})&{words}" if "|" in constraint else f"{constraint}&{words}"


def _refused(request: ChunkRequest, problem: str) -> RequestError:
    return RequestError(format_request(request), 0, problem)
