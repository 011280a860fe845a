# SPDX-License-Identifier: Apache-2.0
"""Chunks as an ordinary request that Slurm holds, and what of it Slurm gives on each node.

The plugin on the user's side tells sbatch, srun or salloc these options (bridge/shim/chunks.c is
the same in C; both are tested with the same table). So Slurm judges and, where the service is
silent, runs the job without knowing of chunks. When the service starts it, the plugin in slurmctld
gives each node exactly the CPUs of the chunks planned there.

Words
    task        what Slurm counts: so many CPUs that every chunk is some whole tasks.

Rules
    1. CPUs per task: the greatest common divisor of the chunks' CPUs per process (`mpiprocs`,
       which must divide `ncpus`). Tasks: all CPUs divided by that.
    2. Nodes: `scatter` one for each chunk, `pack` one, `free` one up to one for each chunk.
    3. Slurm keeps one amount of memory for all nodes of a job, or one for all its CPUs. `pack`:
       the sum, on the node. `scatter`: that of the largest chunk, on each. `free`: the largest
       memory per CPU of any chunk (on exclusive nodes: all their memory). For chunks of one kind
       that is what they ask for, up to the rounding of memory per CPU; where kinds differ it is
       more, and the plan counts with it.
    4. Amounts of a generic resource. On one node (`pack`, a single chunk): the sum. Equal in all
       chunks of a `scatter`: that on each node. As many per task in all chunks: that. GPUs
       otherwise: the sum over the job; Slurm takes at least one on each node, and decides which
       gives how many. Others otherwise: refused.
    5. Features that all chunks ask for are the constraint. Those of some chunks only, and
       `group`, are known to the plan alone.
    6. `host` names the one node of a job with chunks of one kind.
"""

from dataclasses import dataclass
from functools import reduce
from math import gcd

from bridge.errors import RequestError
from bridge.model.resources import Arrangement, Chunk, ChunkRequest
from bridge.planning.requests.chunks import MAX_CHUNKS, format_request

GPU = "gpu"


@dataclass(frozen=True)
class SlurmRequest:
    """What Slurm is asked for; memory and amounts 0 or empty: not stated."""

    min_nodes: int
    max_nodes: int
    tasks: int
    cpus_per_task: int
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

    def options(self) -> list[str]:
        """The options of sbatch that say the same."""
        nodes = f"{self.min_nodes}-{self.max_nodes}"
        found = [
            f"--nodes={self.min_nodes if self.min_nodes == self.max_nodes else nodes}",
            f"--ntasks={self.tasks}",
            f"--cpus-per-task={self.cpus_per_task}",
        ]
        if self.all_memory:
            found.append("--mem=0")
        elif self.memory_per_node_mib:
            found.append(f"--mem={self.memory_per_node_mib}M")
        elif self.memory_per_cpu_mib:
            found.append(f"--mem-per-cpu={self.memory_per_cpu_mib}M")
        if self.per_node:
            found.append("--gres=" + ",".join(f"{name}:{n}" for name, n in self.per_node))
        if self.per_task:
            words = ",".join(f"gres/{name}={n}" for name, n in self.per_task)
            found.append(f"--tres-per-task={words}")
        if self.gpus:
            found.append(f"--gpus={self.gpus}")
        if self.constraint:
            found.append(f"--constraint={self.constraint}")
        if self.node:
            found.append(f"--nodelist={self.node}")
        if self.licences:
            found.append(f"--licenses={self.licences}")
        if self.exclusive:
            found.append("--exclusive")
        return found


def slurm_request(request: ChunkRequest, generic: frozenset[str]) -> SlurmRequest:
    """Says in Slurm's words what a request asks for, as closely as Slurm can.

    Args:
        request: the chunks.
        generic: names of the generic resources of the cluster; other amounts are features.

    Raises:
        RequestError: Slurm cannot hold it.
    """
    kinds, arrangement = request.kinds, request.place.arrangement
    one_node = arrangement is Arrangement.PACK or request.n_chunks == 1 or bool(kinds[0].host)
    if any(kind.host for kind in kinds) and (
        len(kinds) > 1 or (arrangement is Arrangement.SCATTER and request.n_chunks > 1)
    ):
        raise _refused(request, "host= is for chunks of one kind on one node; use features instead")
    nodes = 1 if one_node else request.n_chunks
    size = task_cpus(request)
    memory, ratio = node_memory_mib(request, one_node=one_node), 0
    if memory == 0 and not request.place.exclusive:
        ratio = memory_per_cpu_mib(request)
    per_node, per_task, gpus = _amounts(request, generic, size, one_node=one_node)
    return SlurmRequest(
        min_nodes=nodes if arrangement is Arrangement.SCATTER else 1,
        max_nodes=nodes,
        tasks=request.n_cpus // size,
        cpus_per_task=size,
        memory_per_node_mib=memory,
        memory_per_cpu_mib=ratio,
        all_memory=memory == 0 and request.place.exclusive and any(k.mem_mib for k in kinds),
        per_node=per_node,
        per_task=per_task,
        gpus=gpus,
        constraint="&".join(sorted(set.intersection(*(features(k, generic) for k in kinds)))),
        node=kinds[0].host,
        licences=",".join(f"{name}:{number}" for name, number in request.licences),
        exclusive=request.place.exclusive,
    )


def task_cpus(request: ChunkRequest) -> int:
    """CPUs of one of Slurm's tasks (rule 1).

    Raises:
        RequestError: a chunk's processes do not divide its CPUs.
    """
    for kind in request.kinds:
        if kind.ncpus % max(kind.mpiprocs, 1):
            raise _refused(
                request,
                f"ncpus={kind.ncpus} is no multiple of mpiprocs={kind.mpiprocs}; "
                "give each process as many CPUs",
            )
    return reduce(gcd, (kind.ncpus // max(kind.mpiprocs, 1) for kind in request.kinds))


def node_memory_mib(request: ChunkRequest, *, one_node: bool) -> int:
    """Memory on each node (rule 3); 0: it goes by CPUs, or is not stated."""
    kinds = request.kinds
    if one_node:
        return sum(kind.count * kind.mem_mib for kind in kinds)
    if request.place.arrangement is Arrangement.SCATTER:
        return max(kind.mem_mib for kind in kinds)
    return 0


def memory_per_cpu_mib(request: ChunkRequest) -> int:
    """The largest memory per CPU of any chunk, rounded up."""
    return max(-(-kind.mem_mib // kind.ncpus) for kind in request.kinds)


def features(kind: Chunk, generic: frozenset[str]) -> set[str]:
    """What a node must have for a chunk; amounts that are no generic resource among it."""
    counted = generic | {GPU}
    return {*kind.features, *(f"{name}={n}" for name, n in kind.amounts if name not in counted)}


def _amounts(
    request: ChunkRequest, generic: frozenset[str], size: int, *, one_node: bool
) -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...], int]:
    """Generic resources per node and per task, and GPUs over the job (rule 4)."""
    per_node: list[tuple[str, int]] = []
    per_task: list[tuple[str, int]] = []
    gpus = 0
    kinds, scatter = request.kinds, request.place.arrangement is Arrangement.SCATTER
    for name in sorted({name for kind in kinds for name, _ in kind.amounts} & (generic | {GPU})):
        each = [dict(kind.amounts).get(name, 0) for kind in kinds]
        total = sum(kind.count * n for kind, n in zip(kinds, each, strict=True))
        share = each[0] * size // kinds[0].ncpus
        if total > MAX_CHUNKS:
            raise _refused(request, f"more than {MAX_CHUNKS} of {name} in all; ask for less")
        if total == 0:
            continue
        if one_node:
            per_node.append((name, total))
        elif scatter and len(set(each)) == 1:
            per_node.append((name, each[0]))
        elif all(n * size == share * kind.ncpus for kind, n in zip(kinds, each, strict=True)):
            per_task.append((name, share))
        elif name == GPU and not (scatter and total < request.n_chunks):
            gpus = total
        elif name == GPU:
            raise _refused(
                request,
                "Slurm gives GPUs on every node of a job or on none; place=pack, or GPUs for every "
                "chunk",
            )
        else:
            raise _refused(
                request,
                f"Slurm cannot give {name} to some chunks only; place=pack, or place=scatter with "
                f"as many of {name} in each chunk",
            )
    return tuple(per_node), tuple(per_task), gpus


def _refused(request: ChunkRequest, problem: str) -> RequestError:
    return RequestError(format_request(request), 0, problem)
