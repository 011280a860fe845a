# SPDX-License-Identifier: Apache-2.0
"""The resources that Slurm allocates on nodes to a job with tasks, CPUs and memory.

The rules follow select/cons_tres, so that the planned amounts on a node are those that Slurm will
allocate there.

Terms
    unit    one task of the planner: the smallest group of tasks that fills whole cores and reaches
            --mincpus. Without hyper-threads and --mincpus: one task.

Rules
    1. One node only: all tasks share it; `per_node` holds their sum, `tasks` is 0.
    2. The same on each node, `per_node`, `tasks` 0: only -N (one task per node), as many tasks as
       nodes, --ntasks-per-node.
    3. More tasks than nodes: `tasks` units, `per_task` the needs of a unit. Slurm may distribute
       them over the nodes in any way, at least one each.
    4. CPUs requested on all nodes together beyond (2) are counted as units of one core; beyond (3)
       they enlarge its units.
    5. If jobs hold whole cores, CPUs are rounded up to the largest number of threads per core in
       the job's partitions; if nodes differ in threads, that is too much for some of them. Memory
       per CPU follows the rounded CPUs, as in Slurm.
    6. If memory is consumable, a job without a memory request gets all memory of the node (--mem=0
       or DefMemPerNode unset) and cannot share its nodes.
    7. Without an upper bound a job takes at most one node per unit, or exactly its lower bound.
    8. If memory is not consumable, Slurm compares a node's memory with that for the least CPUs of
       the job on a node, not with that for all of its tasks there (`job_req_node_filter`).
"""

from math import gcd

from bridge.dialect import Accounting, ControllerRequest, NodeDemand, StatedRequest
from bridge.errors import BadRequest
from bridge.model.job_columns import MAX_COUNT


def min_nodes(stated: StatedRequest) -> int:
    """Returns the minimum number of nodes for the tasks with --ntasks-per-node; 0: any number."""
    if stated.tasks_per_node and stated.tasks:
        return _ceil(stated.tasks, stated.tasks_per_node)
    return 0


def node_demand(stated: StatedRequest, low: int, high: int, accounting: Accounting) -> NodeDemand:
    """Lowers tasks, CPUs and memory (rules 1 to 5, 7).

    Args:
        low: lower bound of the width.
        high: upper bound; 0: none.

    Raises:
        BadRequest: more CPUs than there could be, or memory both per node and per CPU.
    """
    maximum, cpus_node, units, cpus_unit, on_node = _shape(stated, low, high, accounting.core_cpus)
    memory_node, memory_unit = stated.memory_per_node_mib, 0
    if per_cpu := stated.memory_per_cpu_mib:
        if memory_node:
            raise BadRequest("asks for memory per node and per CPU")
        memory_node, memory_unit = cpus_node * per_cpu, cpus_unit * per_cpu
    min_cpus = max(stated.min_cpus_per_node, stated.cpus_per_task, 1)
    return NodeDemand(
        max_nodes=maximum,
        cpus_per_node=cpus_node,
        tasks=units,
        cpus_per_task=cpus_unit,
        max_tasks_per_node=on_node,
        memory_per_node_mib=memory_node,
        memory_per_task_mib=memory_unit,
        min_memory_mib=stated.memory_per_node_mib or per_cpu * min_cpus,
        exact=not accounting.cores_differ,
    )


def state_demand(requested: NodeDemand, min_nodes: int) -> ControllerRequest | None:
    """Returns options that give a demand on nodes without hyper-threads.

    None if there are none: CPUs per node with CPUs per task, or memory per node with memory per
    task.
    """
    cpus, per_cpu = requested.cpus_per_node, 0
    if requested.tasks:
        cpus = requested.cpus_per_task
        per_cpu, rest = divmod(requested.memory_per_task_mib, max(cpus, 1))
        if requested.cpus_per_node or rest or (per_cpu and requested.memory_per_node_mib):
            return None
    return ControllerRequest(
        min_nodes=min_nodes,
        max_nodes=requested.max_nodes,
        tasks=requested.tasks,
        cpus_per_task=cpus,
        tasks_per_node=requested.max_tasks_per_node,
        memory_per_node_mib=requested.memory_per_node_mib,
        memory_per_cpu_mib=per_cpu,
    )


def takes_all_memory(accounting: Accounting, *, memory_stated: bool) -> bool:
    """Tells whether Slurm gives a job all memory of its nodes (rule 6)."""
    return accounting.memory_consumable and not (memory_stated or accounting.memory_optional)


_Shape = tuple[int, int, int, int, int]
"""Maximum of nodes, CPUs on each, units, CPUs of each, maximum of units on a node."""


def _shape(stated: StatedRequest, low: int, high: int, threads: int) -> _Shape:
    tasks, each, on_node = stated.tasks, max(stated.cpus_per_task, 1), stated.tasks_per_node
    minimum, wanted = stated.min_cpus_per_node, stated.min_cpus
    if max(tasks * each, on_node * each, minimum, wanted) > MAX_COUNT:
        raise BadRequest("asks for more CPUs than any cluster can have")
    total = max(tasks * each, wanted)
    alike = on_node if on_node and tasks in (0, low * on_node) else 1
    share = _ceil(max(alike * each, minimum), threads) * threads
    if low == 1 and (high == 1 or (high == 0 and total <= share)):
        return 1, _ceil(max(total, share), threads) * threads, 0, 0, 0
    if tasks <= low * alike:
        if total <= share * low:
            return high or low, share, 0, 0, 0
        unit = _ceil(max(minimum, 1), threads) * threads
        return _units(max(_ceil(total, unit), low), unit, low, high)
    whole = threads // gcd(threads, each)  # tasks that fill whole cores
    group = _ceil(max(_ceil(minimum, each), 1), whole) * whole
    units, unit = max(_ceil(tasks, group), low), group * each
    if wanted > units * unit:
        unit = _ceil(_ceil(wanted, units), threads) * threads
    return _units(units, unit, low, high, _ceil(on_node, group))


def _units(units: int, unit: int, low: int, high: int, on_node: int = 0) -> _Shape:
    return max(low, min(high or units, units)), 0, units, unit, on_node


def _ceil(amount: int, size: int) -> int:
    return -(-amount // size)
