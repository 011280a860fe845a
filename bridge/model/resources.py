# SPDX-License-Identifier: Apache-2.0
"""A request in chunks: resources that are needed together on one node, and their placement.

Terms
    chunk       a set of resources that is taken as a whole from one node, never split.
    kind        identical chunks; a request is a list of kinds with their counts.
    place       how chunks may share nodes: with each other (`arrangement`) and with other jobs
                (`exclusive`).
    job-wide    licences: taken from the cluster, not from a node.

Source: Keller, JSSPP 2017, section 3 (OpenCCS), and the select and place statements of PBS.
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property


class Arrangement(IntEnum):
    """How the chunks of one job share nodes with each other."""

    FREE = 0
    """Several may share a node."""
    PACK = 1
    """All on one node."""
    SCATTER = 2
    """One per node."""


@dataclass(frozen=True)
class Place:
    """The placement of chunks.

    Attributes:
        exclusive: the job takes its nodes whole.
        shared: the user stated it; the same as not exclusive, but contradicts `exclusive`.
        group: all nodes have the same value of this feature family (`rack`: all `rack=3`), or
            all have this feature; empty: any nodes.
    """

    arrangement: Arrangement = Arrangement.FREE
    exclusive: bool = False
    shared: bool = False
    group: str = ""


@dataclass(frozen=True)
class Chunk:
    """`count` chunks of one kind.

    Attributes:
        ncpus: CPUs of each chunk, at least 1.
        mem_mib: memory of each; 0: not stated.
        amounts: other things counted on a node, name and number, ascending by name. A name that
            is not a generic resource of the cluster means the feature `name=number`.
        mpiprocs: processes to start in each; 0: not stated, one.
        ompthreads: threads of each process; 0: not stated.
        features: what the node must have, ascending: `bigmem`, `net=IB`.
        host: the node it must be on; empty: any.
    """

    count: int = 1
    ncpus: int = 1
    mem_mib: int = 0
    amounts: tuple[tuple[str, int], ...] = ()
    mpiprocs: int = 0
    ompthreads: int = 0
    features: tuple[str, ...] = ()
    host: str = ""


@dataclass(frozen=True)
class ChunkRequest:
    """The request of one job.

    Attributes:
        chunks: at least one, in the user's order.
        licences: name and number, ascending by name.
    """

    chunks: tuple[Chunk, ...]
    place: Place = Place()
    licences: tuple[tuple[str, int], ...] = ()

    @cached_property
    def kinds(self) -> tuple[Chunk, ...]:
        """The chunks with equal ones merged, in order of first appearance."""
        counts: dict[Chunk, int] = {}
        for chunk in self.chunks:
            kind = replace(chunk, count=1)
            counts[kind] = counts.get(kind, 0) + chunk.count
        return tuple(replace(kind, count=count) for kind, count in counts.items())

    @cached_property
    def n_chunks(self) -> int:
        return sum(chunk.count for chunk in self.chunks)

    @cached_property
    def n_cpus(self) -> int:
        return sum(chunk.count * chunk.ncpus for chunk in self.chunks)


@dataclass(frozen=True)
class LoweredChunks:
    """A request in the columns of one cluster; K kinds, R resources.

    Attributes:
        wants: (K, R) demand of a chunk of each kind, as the controller will hold it.
        features: (K,) constraint of each kind. Where it has alternatives (`[a|b]`) all kinds have
            as many, and all chunks of the job match the one at the same position.
        per_node: (R,) needed once on every node.
    """

    request: ChunkRequest
    wants: tuple[tuple[int, ...], ...]
    features: tuple[str, ...]
    per_node: tuple[int, ...]
