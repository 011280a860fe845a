# SPDX-License-Identifier: Apache-2.0
"""What a job asks for, lowered from Slurm's options to the two resource vectors of the planner.

The rules follow select/cons_tres, so that what is planned on a node is what Slurm will allocate
there once it is told the nodes.

Words
    unit    what the planner counts as one task: the smallest group of tasks that fills whole
            cores and reaches --mincpus. Without hyper-threads and --mincpus: one task.

Rules
    1. One node only: all tasks share it; `per_node` holds their sum, `tasks` is 0.
    2. The same on each node, `per_node`, `tasks` 0: -N alone (one task a node), as many tasks as
       nodes, --ntasks-per-node.
    3. More tasks than nodes: `tasks` units, `per_task` a unit's needs. Slurm may split them over
       the nodes as it likes, at least one each.
    4. CPUs wanted over all nodes beyond what (2) gives are counted as units of one core; beyond
       what (3) gives they make its units thicker.
    5. Where jobs hold whole cores, CPUs are rounded up to the largest number of threads of a
       core in the job's partitions. Memory per CPU follows the rounded CPUs, as in Slurm.
    6. Memory that is consumable and not stated is all memory of the node (--mem=0 and
       DefMemPerNode unset): such a job cannot share its nodes. Memory that is not consumable
       only excludes the nodes that are too small.
    7. Without an upper bound a job takes at most one node a unit, or just its lower bound.
    8. A job is exclusive if it says so or if any of its partitions is.
    9. A malleable job may start with any allowed width in its own bounds.
   10. What these columns cannot say (`contiguous`, `controller_chooses`) is left to the
       controller, which chooses the nodes of such a job when it starts. So are jobs of whole cores
       in partitions whose nodes differ in threads: for some of these (5) is too much.
   11. A job that asked in chunks asks for them alone; what Slurm holds for it must mean the same
       (as many CPUs, the same features). Chunks of one kind become units as in (3), one on each
       node (scatter), or their sum on one (pack). For several kinds the columns say what never is
       too little (`bridge.planning.requests.chunk_groups.chunk_columns`). Only policies that read
       the column `chunks` plan such jobs.

   12. Which of several reservations a job runs in only the controller finds out: it is offered for
       the controller to place, and counts as refused until then.

A request that cannot be understood is the user's problem: `problem` says what is wrong with it,
and the rest of the queue goes on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import gcd
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from bridge.errors import RequestError
from bridge.model.job import COLUMNS, Hold, WidthRule
from bridge.model.job_columns import MAX_COUNT, Source
from bridge.model.node import CPUS, MEMORY_MIB
from bridge.model.resources import LoweredChunks
from bridge.planning.requests.chunk_groups import ClusterWords, chunk_columns, lower_chunks
from bridge.planning.requests.chunks import parse_request
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.rpc.reported.safe_text import printable

MAX_NODES = 1 << 20
"""Largest number of nodes that a job may name."""

MAX_AMOUNT = 1 << 40
"""Largest amount of anything (memory in MiB) that is accepted; what two million jobs hold of it can
still be counted."""

MAX_CONSTRAINT = 4096
"""Longest constraint expression, in characters."""

MAX_NODE_LIST = 1 << 16
"""Longest list of nodes that a job may name, in characters; Slurm takes no longer one."""

MAX_NAMED = 1024
"""Most partitions, licences or generic resources that a job may name."""

_COPIED = tuple(each for each in COLUMNS if each.source is Source.REQUEST)
_LOWERED = tuple(each for each in COLUMNS if each.source is Source.LOWERED)
_lowered_numbers = attrgetter(*(each.name for each in _LOWERED if each.is_number))
_lowered_objects = attrgetter(*(each.name for each in _LOWERED if each.dtype == object))

_WIDTH_RULES = {"": WidthRule.ANY} | {
    rule.name.lower(): rule for rule in WidthRule if rule is not WidthRule.ANY
}


@dataclass(frozen=True)
class TableColumns:
    """What the rows of the tables refer to: nodes, partitions and columns by index.

    Attributes:
        column: generic resource to its column of the resource vectors.
        memory_mib: (n_nodes,) int64.
        unconsumed: generic resource that jobs do not use up to (n_nodes,) int64: what a job may ask
            a node for.
        partition_exclusive: for each partition, whether its jobs hold whole nodes.
        partition_threads: for each partition, the CPUs to which a node's share is rounded up.
        partition_mixed: for each partition, whether that is too much for some of its nodes.
        features: all that any node has.
        dialect: of the controller (`bridge.dialect`).
    """

    nodes: NodeIndex
    resources: tuple[str, ...]
    column: Mapping[str, int]
    memory_mib: NDArray[np.int64]
    partitions: Mapping[str, int] = field(default_factory=dict)
    partition_exclusive: tuple[bool, ...] = ()
    partition_threads: tuple[int, ...] = ()
    partition_mixed: tuple[bool, ...] = ()
    reservations: Mapping[str, int] = field(default_factory=dict)
    licences: Mapping[str, int] = field(default_factory=dict)
    memory_consumable: bool = True
    memory_optional: bool = False
    features: frozenset[str] = frozenset()
    unconsumed: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    dialect: str = ""

    def gres(self, items: Iterable[pb.Gres], vector: list[int]) -> str:
        """Adds generic resources to a vector; a typed one also counts as its plain kind.

        What is not used up is left out.

        Returns:
            The first name that no node has; empty if all are known.
        """
        unknown = ""
        for item in items:
            name, count = item.name, min(item.count, MAX_AMOUNT)
            at = self.column.get(name)
            if at is None:
                if name not in self.unconsumed:
                    unknown = unknown or name
                continue
            vector[at] += count
            plain = name.partition(":")[0]
            if plain != name:
                vector[self.column[plain]] += count
        return unknown


@dataclass(frozen=True)
class Lowered:
    """The columns of `bridge.model.job.JobTable` that follow from a request.

    Attributes:
        copied: the columns that are plain fields of the request, in the order of `JobTable`.
    """

    partitions: tuple[int, ...] = ()
    min_nodes: int = 1
    max_nodes: int = 1
    tasks: int = 0
    max_tasks_per_node: int = 0
    exclusive: bool = False
    width_rule: int = 0
    features: str = ""
    required: tuple[int, ...] = ()
    excluded: tuple[int, ...] = ()
    reservation: int = -1
    per_node: tuple[int, ...] = ()
    per_task: tuple[int, ...] = ()
    licences: tuple[int, ...] = ()
    problem: str = ""
    problem_hold: Hold = Hold.BAD_REQUEST
    chunks: LoweredChunks | None = None
    controller_chooses: bool = False
    copied: tuple[int, ...] = (0,) * len(_COPIED)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The columns of numbers, in the order of `JobTable`; those that are copied last."""
        return (*_lowered_numbers(self), *self.copied)

    @cached_property
    def objects(self) -> tuple[object, ...]:
        """The columns of objects, in the order of `JobTable`."""
        found: tuple[object, ...] = _lowered_objects(self)
        return found


class _Contradiction(Exception):
    """The user's request cannot be understood; becomes `Lowered.problem`."""


class _ControllersChoice(_Contradiction):
    """The request makes sense, but only the controller can place it."""


def lower(request: pb.Request, layout: TableColumns) -> Lowered:
    """Lowers one request; what is wrong with it comes back in `problem`."""
    try:
        return _lower(request, layout)
    except (_Contradiction, RequestError) as error:
        zero = (0,) * len(layout.resources)
        problem = printable(str(error))
        sound = isinstance(error, _ControllersChoice)
        refused = Lowered(
            per_node=zero, per_task=zero, licences=(0,) * len(layout.licences), problem=problem,
            problem_hold=Hold.REFUSED if sound else Hold.BAD_REQUEST,
        )  # fmt: skip
        return _left_to_the_controller(request, layout, refused)


def _left_to_the_controller(request: pb.Request, layout: TableColumns, refused: Lowered) -> Lowered:
    """With the nodes that the controller may try a request on that is not understood here."""
    if request.HasField("chunks") or request.HasField("malleable"):
        return refused
    try:
        return replace(
            refused,
            partitions=_partitions(request, layout),
            required=tuple(layout.nodes.parse(request.required_nodes).tolist()),
            excluded=tuple(layout.nodes.parse(request.excluded_nodes, unknown_ok=True).tolist()),
            licences=_licences(request, layout),
            min_nodes=min(max(request.min_nodes, 1), MAX_NODES),
            max_nodes=MAX_NODES,
            controller_chooses=request.controller_chooses,
        )
    except (_Contradiction, RequestError):
        return refused


def _lower(request: pb.Request, layout: TableColumns) -> Lowered:
    _bounded(request)
    partitions = _partitions(request, layout)
    required = tuple(layout.nodes.parse(request.required_nodes).tolist())
    excluded = tuple(layout.nodes.parse(request.excluded_nodes, unknown_ok=True).tolist())
    exclusive = request.exclusive or any(layout.partition_exclusive[p] for p in partitions)
    if request.HasField("chunks"):
        chunks = _chunks(request, layout, max(layout.partition_threads[p] for p in partitions))
        named = {layout.nodes.names[node] for node in required}
        if named - {chunks.request.kinds[0].host}:
            raise _Contradiction("--nodelist beside --chunks: say host= in the chunks")
        columns = chunk_columns(chunks)
        if max(*columns.per_node, *columns.per_task) * columns.max_nodes > MAX_AMOUNT:
            raise _Contradiction("asks for more than any node could ever have")
        return Lowered(
            **vars(columns),
            chunks=chunks,
            partitions=partitions,
            exclusive=exclusive or _takes_all_memory(chunks, layout),
            required=required,
            excluded=excluded,
            reservation=_reservation(request, layout),
            licences=_licences(request, layout),
            controller_chooses=request.controller_chooses,
            copied=_copied(request),
        )
    low, high, rule = _width(request, len(required))
    threads = max(layout.partition_threads[p] for p in partitions)
    shape = _shape(request, low, high, threads)

    per_node, per_task = [0] * len(layout.resources), [0] * len(layout.resources)
    per_node[CPUS], per_task[CPUS] = shape.cpus_node, shape.cpus_unit
    memory_node, memory_unit = request.memory_per_node_mib, 0
    if request.memory_per_cpu_mib:
        if memory_node:
            raise _Contradiction("asks for memory per node and per CPU")
        memory_node = shape.cpus_node * request.memory_per_cpu_mib
        memory_unit = shape.cpus_unit * request.memory_per_cpu_mib
    if layout.memory_consumable:
        per_node[MEMORY_MIB], per_task[MEMORY_MIB] = memory_node, memory_unit
        exclusive |= not (memory_node or memory_unit or layout.memory_optional)
    else:
        least = min(memory_node + memory_unit, MAX_AMOUNT)
        if too_small := np.flatnonzero(layout.memory_mib < least).tolist():
            excluded = tuple(sorted({*excluded, *too_small}))
    if unknown := layout.gres(request.gres_per_node, per_node):
        raise _Contradiction(f"asks for '{unknown[:64]}', which no node has")
    excluded = _without_gres(request, layout, excluded)
    if max(*per_node, *per_task) > MAX_AMOUNT:
        raise _Contradiction("asks for more than any node could ever have")
    return Lowered(
        partitions=partitions,
        min_nodes=low,
        max_nodes=shape.most_nodes,
        tasks=shape.units,
        max_tasks_per_node=shape.units_on_node,
        exclusive=exclusive,
        width_rule=int(rule),
        features=_features(request),
        required=required,
        excluded=excluded,
        reservation=_reservation(request, layout),
        per_node=tuple(per_node),
        per_task=tuple(per_task),
        licences=_licences(request, layout),
        controller_chooses=_is_controllers(request, partitions, layout),
        copied=_copied(request),
    )


def _copied(request: pb.Request) -> tuple[int, ...]:
    """The columns that are plain fields of a request; none of these is negative."""
    return tuple(min(getattr(request, each.field), each.most_taken) for each in _COPIED)


def _is_controllers(request: pb.Request, partitions: tuple[int, ...], layout: TableColumns) -> bool:
    """Whether the controller chooses the nodes (rule 10)."""
    mixed = any(layout.partition_mixed[p] for p in partitions)
    return request.controller_chooses or (mixed and not request.HasField("malleable"))


def _without_gres(
    request: pb.Request, layout: TableColumns, excluded: tuple[int, ...]
) -> tuple[int, ...]:
    """The excluded nodes, with those that have too little of what is not used up."""
    for item in request.gres_per_node:
        there = layout.unconsumed.get(item.name)
        if there is None:
            continue
        enough = there >= min(item.count, MAX_AMOUNT + 1)
        if not enough.any():
            raise _Contradiction(
                f"asks for {item.count} of '{item.name[:64]}', which no node has so much of"
            )
        excluded = tuple(sorted({*excluded, *np.flatnonzero(~enough).tolist()}))
    return excluded


def _bounded(request: pb.Request) -> None:
    if max(len(request.required_nodes), len(request.excluded_nodes)) > MAX_NODE_LIST:
        raise _Contradiction(f"list of nodes longer than {MAX_NODE_LIST} characters")
    if max(len(request.partitions), len(request.licences), len(request.gres_per_node)) > MAX_NAMED:
        raise _Contradiction(f"names more than {MAX_NAMED} partitions, licences or resources")


def _chunks(request: pb.Request, layout: TableColumns, threads: int) -> LoweredChunks:
    """Reads chunks and compares them with what Slurm holds (rule 11)."""
    try:
        asked = parse_request(request.chunks.chunks, request.chunks.place)
    except RequestError as error:
        raise _Contradiction(f"--chunks: {error}") from error
    malleable = request.malleable
    if malleable.min_nodes or malleable.max_nodes or malleable.node_constraint:
        raise _Contradiction("numbers of nodes beside --chunks: say --place=scatter or pack")
    held = request.tasks * max(request.cpus_per_task, 1)
    if held != asked.n_cpus:
        raise _Contradiction(
            f"--chunks mean {asked.n_cpus} CPUs, Slurm holds {held} for the job: submit it anew "
            "without changing its tasks or CPUs"
        )
    cluster = ClusterWords(
        column=layout.column,
        n_resources=len(layout.resources),
        threads=threads,
        memory_consumable=layout.memory_consumable,
        features=layout.features,
        dialect=layout.dialect,
    )
    try:
        return lower_chunks(
            asked,
            cluster,
            constraint=_features(request),
            memory_per_node_mib=request.memory_per_node_mib,
            memory_per_cpu_mib=request.memory_per_cpu_mib,
        )
    except RequestError as error:
        raise _Contradiction(f"--chunks: {error.problem}") from error


def _takes_all_memory(chunks: LoweredChunks, layout: TableColumns) -> bool:
    """Whether Slurm gives such a job all memory of its nodes (rule 6)."""
    asked = chunks.per_node[MEMORY_MIB] or any(want[MEMORY_MIB] for want in chunks.wants)
    return layout.memory_consumable and not layout.memory_optional and not asked


def _partitions(request: pb.Request, layout: TableColumns) -> tuple[int, ...]:
    named = dict.fromkeys(request.partitions)
    known = tuple(layout.partitions[p] for p in named if p in layout.partitions)
    if not known:
        shown = ", ".join(named)[:64]
        raise _Contradiction(f"no partition '{shown}'" if shown else "names no partition")
    return known


def _width(request: pb.Request, n_required: int) -> tuple[int, int, WidthRule]:
    """Bounds of the node count (upper 0: none), and the rule for counts between them (9)."""
    malleable = request.malleable
    rule = _WIDTH_RULES.get(malleable.node_constraint)
    if rule is None:
        known = ", ".join(name for name in _WIDTH_RULES if name)
        shown = malleable.node_constraint[:32]
        raise _Contradiction(f"no node constraint '{shown}'; there are {known}")
    if malleable.max_power_w and malleable.min_power_w > malleable.max_power_w:
        raise _Contradiction(
            f"least power {malleable.min_power_w} W exceeds most power {malleable.max_power_w} W"
        )
    low = malleable.min_nodes or request.min_nodes
    high = malleable.max_nodes or request.max_nodes
    if request.tasks_per_node and request.tasks:
        low = max(low, _ceil(request.tasks, request.tasks_per_node))
    low, high = max(low, n_required, 1), min(high, MAX_NODES)
    if low > MAX_NODES:
        raise _Contradiction(f"asks for {low} nodes")
    if high and high < low:
        raise _Contradiction(f"asks for at least {low} and at most {high} nodes")
    if high and rule.next_width(low) > high:
        raise _Contradiction(f"no node count from {low} to {high} is {rule.name.lower()}")
    return low, high, rule


@dataclass(frozen=True, slots=True)
class _Shape:
    """CPUs of a job: on each node, and in each of its units."""

    cpus_node: int
    most_nodes: int
    units: int = 0
    cpus_unit: int = 0
    units_on_node: int = 0


def _shape(request: pb.Request, low: int, high: int, threads: int) -> _Shape:
    """Lowers tasks and CPUs (rules 1 to 5, 7)."""
    tasks, each, on_node = request.tasks, max(request.cpus_per_task, 1), request.tasks_per_node
    least, wanted = request.min_cpus_per_node, request.min_cpus
    if max(tasks * each, on_node * each, least, wanted) > MAX_COUNT:
        raise _Contradiction("asks for more CPUs than there could ever be")
    total = max(tasks * each, wanted)
    alike = on_node if on_node and tasks in (0, low * on_node) else 1
    share = _ceil(max(alike * each, least), threads) * threads
    if low == 1 and (high == 1 or (high == 0 and total <= share)):
        return _Shape(_ceil(max(total, share), threads) * threads, 1)
    if tasks <= low * alike:
        if total <= share * low:
            return _Shape(share, high or low)
        unit = _ceil(max(least, 1), threads) * threads
        return _units(max(_ceil(total, unit), low), unit, low, high)
    whole = threads // gcd(threads, each)  # tasks that fill whole cores
    group = _ceil(max(_ceil(least, each), 1), whole) * whole
    units, unit = max(_ceil(tasks, group), low), group * each
    if wanted > units * unit:
        unit = _ceil(_ceil(wanted, units), threads) * threads
    return _units(units, unit, low, high, _ceil(on_node, group))


def _units(units: int, unit: int, low: int, high: int, on_node: int = 0) -> _Shape:
    return _Shape(0, max(low, min(high or units, units)), units, unit, on_node)


def _ceil(amount: int, size: int) -> int:
    return -(-amount // size)


def _features(request: pb.Request) -> str:
    text = request.features
    if len(text) > MAX_CONSTRAINT:
        raise _Contradiction(f"constraint longer than {MAX_CONSTRAINT} characters")
    return text


def _reservation(request: pb.Request, layout: TableColumns) -> int:
    if not request.reservation:
        return -1
    names = request.reservation.split(",")
    for name in names:
        if name not in layout.reservations:
            raise _Contradiction(f"no reservation '{name[:64]}'")
    if len(names) > 1:
        raise _ControllersChoice(
            f"needs room in one of the reservations {request.reservation[:96]}"
        )
    return layout.reservations[names[0]]


def _licences(request: pb.Request, layout: TableColumns) -> tuple[int, ...]:
    wanted = [0] * len(layout.licences)
    for use in request.licences:
        found = layout.licences.get(use.name)
        if found is None:
            raise _Contradiction(f"no licence '{use.name[:64]}'")
        wanted[found] += min(use.count, MAX_COUNT)
    return tuple(wanted)
