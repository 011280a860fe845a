# SPDX-License-Identifier: Apache-2.0
"""What differs between resource managers, as one port.

Everything that is specific to a resource manager is in the folder of its dialect
(`bridge/slurm`, `bridge/pbs`); other code uses the dialect that the snapshot names. Another
resource manager is another folder, one line in `DIALECTS` and one in `bridge.words`.

The following have the same form for every resource manager and do not need the port:
    constraints     feature expressions (`bridge.planning.requests.features`)
    chunks          select and place statements (`bridge.planning.requests.chunks`)
    sets of nodes   lists in brackets, `n[01-16]` (`bridge.model.hostlist`)
    amounts, times  seconds, MiB, Unix time
The adapter in front of the controller writes these on the wire; for Slurm it is `bridge/shim`.
Tasks, CPUs and memory have the same form, too (`StatedRequest`), but the dialect decides what they
require of a node.

Without a controller (a simulated system, a file checked by hand), the default dialect reads
files: `dialect_named("")`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.model.resources import Chunk, ChunkRequest
from bridge.model.topology import Topology
from bridge.words import Words

if TYPE_CHECKING:
    from bridge.model.snapshot import Snapshot

SLURM = "slurm"
"""The dialect of controllers that name none."""

DIALECTS = {SLURM: "bridge.slurm.dialect:SLURM", "pbs": "bridge.pbs.dialect:PBS"}
"""Name, as in the controller's hello, to the object that implements the port."""


@dataclass(frozen=True)
class ControllerRequest:
    """A request in the terms in which the controller holds it.

    Memory and amounts that are 0 or empty are not stated.
    """

    min_nodes: int
    max_nodes: int
    tasks: int
    cpus_per_task: int
    tasks_per_node: int = 0
    memory_per_node_mib: int = 0
    memory_per_cpu_mib: int = 0
    all_memory: bool = False
    per_node: tuple[tuple[str, int], ...] = ()
    per_task: tuple[tuple[str, int], ...] = ()
    gpus: int = 0
    constraint: str = ""
    node: str = ""
    licences: str = ""
    exclusive: bool = False


class StatedRequest(Protocol):
    """A job's tasks, CPUs and memory as the adapter states them: fields of the wire's `Request`.

    Zero: not stated. The wire's definition explains each field.
    """

    min_nodes: int
    max_nodes: int
    tasks: int
    cpus_per_task: int
    tasks_per_node: int
    min_cpus: int
    min_cpus_per_node: int
    memory_per_node_mib: int
    memory_per_cpu_mib: int


@dataclass(frozen=True, slots=True)
class Accounting:
    """How the controller allocates the CPUs and the memory of the nodes that a job may use.

    Attributes:
        core_cpus: CPUs of the largest core if jobs hold whole cores; otherwise 1.
        cores_differ: some of the nodes have smaller cores.
        memory_consumable: jobs consume memory; otherwise a node only has to be large enough.
        memory_optional: a job that states no memory uses none.
    """

    core_cpus: int = 1
    cores_differ: bool = False
    memory_consumable: bool = True
    memory_optional: bool = False


@dataclass(frozen=True, slots=True)
class NodeDemand:
    """What a job requires of its nodes; as columns of `bridge.model.job.JobTable`.

    Attributes:
        max_nodes: maximum number of nodes.
        cpus_per_node, memory_per_node_mib: needed once on every node.
        tasks: units that may be split over the nodes; 0: none.
        max_tasks_per_node: maximum number of tasks on a node; 0: no bound.
        min_memory_mib: memory that a node must have at all, if jobs do not consume memory.
        exact: the controller takes exactly this on every node; otherwise less on some.
    """

    max_nodes: int
    cpus_per_node: int = 0
    tasks: int = 0
    cpus_per_task: int = 0
    max_tasks_per_node: int = 0
    memory_per_node_mib: int = 0
    memory_per_task_mib: int = 0
    min_memory_mib: int = 0
    exact: bool = True


@dataclass(frozen=True)
class RequestChange:
    """What a user could request instead; fields at their default stay as they are.

    Attributes:
        nodes: minimum and maximum number of nodes.
        malleable: the job's width may change while it runs.
        tasks: their number; where `cpus` is set, as many as make that number of CPUs.
    """

    partition: str = ""
    time_limit_s: int = 0
    nodes: tuple[int, int] | None = None
    malleable: bool = False
    tasks: int = 0
    cpus: int = 0
    chunks: ChunkRequest | None = None


@dataclass(frozen=True)
class ReservationText:
    """A reservation to be made; sets and counts as text, empty where they are not stated."""

    name: str
    start_s: int
    end_s: int
    nodes: str
    partition: str
    users: str
    accounts: str
    licences: str


class Dialect(Protocol):
    """The conventions of one resource manager."""

    @property
    def words(self) -> Words:
        """Terms and commands in messages."""

    def array_of(self, job_id: str) -> str:
        """Returns the id of the array that a task belongs to; of other jobs their own id."""

    def are_array_tasks(self, job_ids: Sequence[str]) -> NDArray[np.bool_]:
        """Tells which ids are those of array tasks, (len(job_ids),) bool."""

    def min_nodes(self, stated: StatedRequest) -> int:
        """Returns the fewest nodes that the tasks of a request fit on; 0: any number."""

    def node_demand(
        self, stated: StatedRequest, min_nodes: int, max_nodes: int, accounting: Accounting
    ) -> NodeDemand:
        """Returns what a job without chunks takes.

        Args:
            min_nodes: lower bound of its width, in place of the request's.
            max_nodes: upper bound, likewise; 0: none.
            accounting: the accounting of the nodes it may use.

        Raises:
            BadRequest: it contradicts itself, or exceeds any machine.
        """

    def state_demand(self, requested: NodeDemand, min_nodes: int) -> ControllerRequest | None:
        """Returns a request of which `node_demand` is the demand; None: there is none."""

    def takes_all_memory(self, accounting: Accounting, *, memory_stated: bool) -> bool:
        """Tells whether a job is given all memory of its nodes because it states none."""

    def check_chunks(self, request: ChunkRequest, stated: StatedRequest) -> None:
        """Compares chunks with the request that the controller holds in their place.

        Raises:
            BadRequest: they mean something else.
        """

    def controller_request(
        self, request: ChunkRequest, generic: frozenset[str]
    ) -> ControllerRequest:
        """States a request as the controller holds it.

        Args:
            request: the chunks.
            generic: names of the generic resources of the cluster; other amounts are features.

        Raises:
            RequestError: the controller cannot hold it.
        """

    def chunk_features(
        self, request: ChunkRequest, chunk: Chunk, generic: frozenset[str]
    ) -> frozenset[str]:
        """Returns what a node must have for a chunk, including amounts that are not resources.

        Raises:
            RequestError: no node has what the chunk asks for.
        """

    def chunk_memory_mib(self, request: ChunkRequest, chunk: Chunk, cpus: int) -> int:
        """Returns the memory that the controller holds for a chunk that gets so many CPUs.

        Only for requests that state memory.
        """

    def read_topology(self, path: Path, nodes: Sequence[str] | None = None) -> Topology:
        """Reads the file in which the controller's administrator describes the switches.

        Args:
            nodes: names of the cluster's nodes; None: those that the file names, in its order.

        Raises:
            ConfigError: it cannot be read, or is invalid.
        """

    def topology_nodes(self, path: Path) -> list[str]:
        """Returns the nodes that such a file names, in its order.

        Raises:
            ConfigError: it cannot be read, or is not such a file.
        """

    def submit_options(self, change: RequestChange) -> str:
        """Returns the options of the submit command that state a change."""

    def reserve_command(self, reservation: ReservationText) -> str:
        """Returns the administrator's command that makes a reservation."""


@lru_cache(maxsize=16)
def dialect_named(name: str) -> Dialect:
    """Returns a dialect by the name in a hello; empty: Slurm's.

    Raises:
        ConfigError: there is no such dialect.
    """
    if (name or SLURM) not in DIALECTS:
        raise ConfigError("dialect", f"'{name[:40]}' is not one of {', '.join(sorted(DIALECTS))}")
    module, _, attribute = DIALECTS[name or SLURM].partition(":")
    found: Dialect = getattr(import_module(module), attribute)
    return found


def dialect_of(snapshot: "Snapshot") -> Dialect:
    """Returns the dialect of the controller that a snapshot is of."""
    return dialect_named(snapshot.dialect)
