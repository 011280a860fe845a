# SPDX-License-Identifier: Apache-2.0
"""Chunks as an ordinary request of Slurm.

The SPANK plugin sets these options in sbatch, srun or salloc (`bridge/shim/options/chunks_lower.c`
is the same in C; both are tested with the same table). So Slurm validates the job and, if the
service is silent, runs it without information about chunks. When the service starts the job, the
plugin in slurmctld gives each node exactly the CPUs of the chunks planned there.

Terms
    task        Slurm's unit; its number of CPUs is such that every chunk is a whole number of
    tasks.

Rules
    1. CPUs per task: the greatest common divisor of the chunks' CPUs per process (`mpiprocs`,
       which must divide `ncpus`). Tasks: all CPUs divided by that.
    2. Nodes: `scatter` one for each chunk, `pack` one, `free` one up to one for each chunk.
    3. Slurm keeps one amount of memory for all nodes of a job, or one for all its CPUs. `pack`:
       the sum, on the node. `scatter`: that of the largest chunk, on each. `free`: the largest
       memory per CPU of any chunk (on exclusive nodes: all their memory). For chunks of one kind
       that is their request, except for the rounding of memory per CPU; for different kinds it is
       more, and the plan uses this amount.
    4. Amounts of a generic resource. On one node (`pack`, a single chunk): the sum. Equal in all
       chunks of a `scatter`: that on each node. As many per task in all chunks: that. GPUs
       otherwise: the sum over the job; Slurm takes at least one on each node, and decides their
       distribution. Others otherwise: refused.
    5. Features that all chunks request are the constraint. Those of some chunks only, and `group`,
       are used only by the plan.
    6. `host` names the one node of a job with chunks of one kind.
"""

from functools import reduce
from math import gcd

from bridge.dialect import ControllerRequest
from bridge.errors import RequestError
from bridge.model.resources import Arrangement, Chunk, ChunkRequest
from bridge.planning.requests.chunks import MAX_CHUNKS, format_request

GPU = "gpu"


def slurm_request(request: ChunkRequest, generic: frozenset[str]) -> ControllerRequest:
    """States a request in Slurm's terms, as closely as Slurm can hold it.

    Args:
        request: the chunks.
        generic: names of the generic resources of the cluster; other amounts are features.

    Raises:
        RequestError: Slurm cannot hold it.
    """
    kinds, arrangement = request.kinds, request.place.arrangement
    one_node = on_one_node(request)
    if any(kind.host for kind in kinds) and (
        len(kinds) > 1 or (arrangement is Arrangement.SCATTER and request.n_chunks > 1)
    ):
        raise _refused(request, "host= is for chunks of one kind on one node; use features instead")
    nodes = 1 if one_node else request.n_chunks
    size = task_cpus(request)
    memory, ratio = memory_mib(request)
    per_node, per_task, gpus = _amounts(request, generic, size, one_node=one_node)
    return ControllerRequest(
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
                f"ncpus={kind.ncpus} is not a multiple of mpiprocs={kind.mpiprocs}; "
                "give each process as many CPUs",
            )
    return reduce(gcd, (kind.ncpus // max(kind.mpiprocs, 1) for kind in request.kinds))


def memory_mib(request: ChunkRequest) -> tuple[int, int]:
    """Memory on each node, and per CPU (rule 3); 0: not stated in this way."""
    kinds, memory = request.kinds, 0
    if on_one_node(request):
        memory = sum(kind.count * kind.mem_mib for kind in kinds)
    elif request.place.arrangement is Arrangement.SCATTER:
        memory = max(kind.mem_mib for kind in kinds)
    if memory or request.place.exclusive:
        return memory, 0
    return 0, max(-(-kind.mem_mib // kind.ncpus) for kind in kinds)


def on_one_node(request: ChunkRequest) -> bool:
    """Tells whether all chunks are on the same node."""
    pack = request.place.arrangement is Arrangement.PACK
    return pack or request.n_chunks == 1 or bool(request.kinds[0].host)


def features(kind: Chunk, generic: frozenset[str]) -> set[str]:
    """Requirements of a chunk on its node, including amounts of resources that are not generic."""
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
