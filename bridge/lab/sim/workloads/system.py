# SPDX-License-Identifier: Apache-2.0
"""The simulated machine; `bridge.lab.sim.workloads.requests` makes the requests of a trace's jobs.

Two kinds
    pool        N identical nodes of one processor; a job holds as many whole nodes as it has
                processors. The machine of the literature on traces, and the default.
    described   nodes and partitions from a YAML file; a job has one task for each processor, and
                the tasks share nodes with other jobs unless `whole_nodes` is set.

A description with all keys:

    name: two islands
    nodes:
      - {names: "thin[001-064]", cpus: 16, memory_mib: 65536, weight: 1}
      - {names: "gpu[1-4]", cpus: 32, memory_mib: 262144, gres: {gpu: 4}, features: [big]}
    partitions:                     # without any: one of all nodes
      - {name: batch, nodes: "thin[001-064]", max_time_s: 86400}
      - {name: large, queues: [3], priority_tier: 2, exclusive: true}
    use_memory: true                # enforce the memory requests of the trace
    whole_nodes: false              # jobs never share a node
    topology: topology.conf         # its switches, in Slurm's format; next to this file; or
                                    # {file: topology.conf, wait_s: 300}: how long jobs wait for few
    trace:                          # where this machine's log differs from the format
      memory_unit: B                # of requested memory: KiB (as in the format), B, MiB
      memory_per: node              # requested memory is per processor (the format), or node
      nodes_field: 21               # this field, from 19, requests nodes: "2:ppn=8:x86_64#excl"

A partition takes the jobs of the trace's `queues` it names; one that names none takes all the
queues that no partition names. A queue that none takes is refused.
`bridge.lab.sim.workloads.node_requests` has the syntax of a `nodes_field`; every requested property
must be described.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bridge import files, yaml_text
from bridge.dialect import dialect_named
from bridge.errors import ConfigError
from bridge.input_problems import problems_of
from bridge.lab.sim.workloads.workload import SWF, FormatDeviations, MemoryUnit
from bridge.model import hostlist
from bridge.model.node import NodeTable
from bridge.model.snapshot import Partition
from bridge.model.topology import Topology


@dataclass(frozen=True)
class System:
    """Nodes, partitions, and how a trace's jobs become requests.

    Attributes:
        pool: identical one-processor nodes in one partition without bounds.
        queues: for each partition the trace's queues it takes; empty: all that no partition names.
        use_memory: the jobs' memory requests are enforced.
        whole_nodes: jobs never share a node.
        dialect: differences of the machine's log from the format.
        topology: the switches above the nodes; None: unknown.
        wait_s: wait for few leaf switches of jobs that do not request them.
    """

    name: str
    resources: tuple[str, ...]
    nodes: NodeTable
    partitions: tuple[Partition, ...]
    pool: bool = False
    queues: tuple[frozenset[int], ...] = field(default=(frozenset(),))
    use_memory: bool = False
    whole_nodes: bool = False
    dialect: FormatDeviations = SWF
    topology: Topology | None = None
    wait_s: int = 0

    @property
    def processors(self) -> int:
        """Processors of all nodes."""
        return int(self.nodes.capacity[:, 0].sum())

    def with_shared_nodes(self) -> "System":
        """The same where a second job can start on the CPUs of another; a pool has memory then."""
        nodes = self.nodes
        if self.pool:
            nodes = replace(nodes, capacity=nodes.capacity * np.array([1, SHARED_NODE_MIB]))
        partitions = tuple(replace(part, shared=True) for part in self.partitions)
        return replace(self, nodes=nodes, partitions=partitions)


SHARED_NODE_MIB = 4096
"""Memory of a node of a pool in which jobs share nodes; each requests the part that it uses."""
LARGEST_POOL = 1 << 22
"""Each processor of a pool is a node with a name: memory limits their number."""


def pool_of(processors: int) -> System:
    """A pool of that many nodes of one processor (and, as Slurm assumes, 1 MiB).

    Raises:
        ConfigError: they are too many.
    """
    if processors > LARGEST_POOL:
        raise ConfigError(
            "procs",
            f"a machine of {processors} processors (--procs, or MaxProcs of the trace) is larger "
            f"than a pool may be ({LARGEST_POOL}): give --procs, or describe the nodes by --system",
        )
    width = len(str(processors - 1))
    names = tuple(f"n{index:0{width}d}" for index in range(processors))
    capacity = np.ones((processors, 2), dtype=np.int64)
    everything = np.arange(processors, dtype=np.int32)
    return System(
        f"pool of {processors}",
        ("cpus", "mem_mib"),
        _node_table(names, capacity, np.ones(processors, np.int32), (frozenset(),) * processors),
        (Partition("all", everything),),
        pool=True,
    )


def _node_table(
    names: tuple[str, ...],
    capacity: NDArray[np.int64],
    weight: NDArray[np.int32],
    features: tuple[frozenset[str], ...],
) -> NodeTable:
    usable = np.ones(len(names), dtype=bool)
    return NodeTable(names, capacity, usable, weight, features, ("UP",) * len(names))


# ---------------------------------------------------------------- descriptions


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


_Positive = Annotated[int, Field(ge=1, le=2**31 - 1)]
_Amount = Annotated[int, Field(ge=0, le=2**31 - 1)]


class _NodeGroup(_Strict):
    names: str
    cpus: _Positive
    memory_mib: _Positive = 1
    gres: dict[str, _Positive] = {}
    features: list[str] = []
    weight: _Amount = 1


class _PartitionText(_Strict):
    name: str
    nodes: str | None = None
    queues: list[int] = []
    max_nodes: _Amount = 0
    max_time_s: _Amount = 0
    exclusive: bool = False
    priority_tier: _Amount = 1


class _TraceText(_Strict):
    memory_unit: Literal["B", "KiB", "MiB"] = "KiB"
    memory_per: Literal["processor", "node"] = "processor"
    nodes_field: Annotated[int, Field(ge=19)] | None = None


class _TopologyText(_Strict):
    file: str
    wait_s: _Amount = 0


class _Description(_Strict):
    name: str = "described system"
    nodes: Annotated[list[_NodeGroup], Field(min_length=1)]
    partitions: list[_PartitionText] = []
    use_memory: bool = False
    whole_nodes: bool = False
    trace: _TraceText = _TraceText()
    topology: _TopologyText | str | None = None


def read_system(path: Path) -> System:
    """Reads a system description.

    Raises:
        ConfigError: the file cannot be read, or a key is unknown, missing or impossible.
    """
    try:
        data = yaml_text.load(files.read_text(path))
    except OSError as error:
        raise ConfigError("", f"cannot be read: {error.strerror}", file=str(path)) from None
    except (yaml_text.NoYaml, UnicodeDecodeError) as error:
        raise ConfigError("", f"is not YAML: {error}", file=str(path)) from None
    try:
        text = _Description.model_validate(data)
    except ValidationError as error:
        raise problems_of(error, _Description, file=str(path))[0] from None
    try:
        system = _system(text)
    except ConfigError as error:
        raise ConfigError(error.key, error.problem, file=str(path)) from None
    if text.topology is None:
        return system
    above = _TopologyText(file=text.topology) if isinstance(text.topology, str) else text.topology
    topology = dialect_named("").read_topology(path.parent / above.file, system.nodes.names)
    if (topology.leaf_of_node < 0).all():
        node = system.nodes.names[0]
        problem = f"{above.file} names none of the nodes ({node}, ...)"
        raise ConfigError("topology", problem, file=str(path))
    return replace(system, topology=topology, wait_s=above.wait_s)


def _system(text: _Description) -> System:
    kinds = sorted({kind for group in text.nodes for kind in group.gres})
    names: list[str] = []
    capacity: list[list[int]] = []
    weight: list[int] = []
    features: list[frozenset[str]] = []
    for position, group in enumerate(text.nodes):
        members = _expand(f"nodes.{position}.names", group.names)
        names += members
        amounts = [group.cpus, group.memory_mib, *(group.gres.get(kind, 0) for kind in kinds)]
        capacity += [amounts] * len(members)
        weight += [group.weight] * len(members)
        features += [frozenset(group.features)] * len(members)
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigError("nodes", f"node {twice} is described twice")
    index = {name: position for position, name in enumerate(names)}
    partitions = tuple(
        _partition(f"partitions.{position}", part, index)
        for position, part in enumerate(text.partitions or [_PartitionText(name="all")])
    )
    return System(
        text.name,
        ("cpus", "mem_mib", *kinds),
        _node_table(
            tuple(names),
            np.array(capacity, dtype=np.int64),
            np.array(weight, dtype=np.int32),
            tuple(features),
        ),
        partitions,
        queues=tuple(frozenset(part.queues) for part in text.partitions) or (frozenset(),),
        use_memory=text.use_memory,
        whole_nodes=text.whole_nodes,
        dialect=FormatDeviations(
            memory_unit=MemoryUnit(text.trace.memory_unit),
            memory_per_node=text.trace.memory_per == "node",
            nodes_field=text.trace.nodes_field,
        ),
    )


def _expand(key: str, text: str) -> list[str]:
    try:
        members = hostlist.expand(text)
    except ValueError as error:
        raise ConfigError(key, f"'{text}' is not a node set: {error}") from None
    if not members:
        raise ConfigError(key, "names no node")
    return members


def _partition(key: str, text: _PartitionText, index: dict[str, int]) -> Partition:
    members = list(index) if text.nodes is None else _expand(f"{key}.nodes", text.nodes)
    for name in members:
        if name not in index:
            raise ConfigError(f"{key}.nodes", f"no node {name} is described")
    return Partition(
        text.name,
        np.array(sorted(index[name] for name in members), dtype=np.int32),
        max_nodes=text.max_nodes,
        max_time_s=text.max_time_s,
        exclusive=text.exclusive,
        priority_tier=text.priority_tier,
    )
