# SPDX-License-Identifier: Apache-2.0
"""Decodes the requests of jobs to the columns of the planner ("lowers" them).

Rules
    1. The dialect decides what a job takes of its nodes (`bridge.dialect.Dialect.node_demand`), and
       whether a job without a demand for memory gets all of it.
    2. Memory that is not consumable only excludes nodes with too little of it
       (`bridge.dialect.NodeDemand.min_memory_mib`).
    3. A job is exclusive if it says so or if any of its partitions is.
    4. A malleable job may start with any allowed width in its own bounds. If the controller can
       resize it, it starts with its requested number of nodes (--nodes), and changes its width
       later. A moldable one may start with any allowed width if a policy decides so
       (`min_start`, `max_start`). If its bounds do not allow the requested number, it does not
       start (`start_problem`).
    5. For requests that these columns cannot express (`contiguous`, `controller_chooses`), and for
       demands that are too large for some of the nodes, the controller chooses the nodes when the
       job starts.
    6. Of a job that requests chunks, only the chunks count (`bridge.rpc.reported.decode_chunks`).
    7. Only the controller can choose between several reservations, and understands constraints with
       counts. Such a job is offered to the controller, and counts as refused until it starts.

An invalid request affects only its own job: `problem` describes the error.
"""

import logging
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

import numpy as np

from bridge.dialect import dialect_named
from bridge.errors import BadRequest, RequestError
from bridge.model.job import COLUMNS, Hold, WidthRule
from bridge.model.job_columns import MAX_COUNT, MAX_POWER_W, Source
from bridge.model.node import CPUS, MEMORY_MIB
from bridge.model.resources import LoweredChunks
from bridge.planning.requests.features import parse_features
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.decode_chunks import constraint, decode_chunks
from bridge.rpc.reported.safe_text import printable
from bridge.rpc.reported.table_columns import MAX_AMOUNT, TableColumns

_log = logging.getLogger(__name__)

MAX_NODES = 1 << 20
"""Largest number of nodes that a job may name."""

MAX_NODE_LIST = 1 << 16
"""Longest list of nodes that a job may name, in characters."""

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
class Lowered:
    """The columns of `bridge.model.job.JobTable` that follow from a request.

    Attributes:
        copied: the columns that are plain fields of the request, in the order of `JobTable`.
        min_width, max_width: the bounds of a malleable job while it runs.
        problem: the request is invalid, or only the controller can place it; empty: neither.
        start_problem: why a waiting job cannot start: its numbers of nodes exclude each
            other, although its widths while it runs are valid.
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
    min_width: int = 0
    max_width: int = 0
    min_start: int = 0
    max_start: int = 0
    problem: str = ""
    start_problem: str = ""
    problem_hold: Hold = Hold.BAD_REQUEST
    chunks: LoweredChunks | None = None
    controller_chooses: bool = False
    min_power_w: int = 0
    max_power_w: int = 0
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


class _ControllersChoice(BadRequest):
    """The request is valid, but only the controller can place it."""


def lower(request: pb.Request, layout: TableColumns) -> Lowered:
    """Lowers one request; an error is returned in `problem`."""
    try:
        return _lower(request, layout)
    except (BadRequest, RequestError) as error:
        sound = isinstance(error, _ControllersChoice)
        refused = _refused(layout, str(error), Hold.REFUSED if sound else Hold.BAD_REQUEST)
        return _left_to_the_controller(request, layout, refused)
    except Exception as error:
        _log.exception("a request that cannot be read")
        return _refused(layout, f"cannot be read: {type(error).__name__}")


def _refused(layout: TableColumns, problem: str, hold: Hold = Hold.BAD_REQUEST) -> Lowered:
    zero = (0,) * len(layout.resources)
    return Lowered(
        per_node=zero, per_task=zero, licences=(0,) * len(layout.licences),
        problem=printable(problem), problem_hold=hold,
    )  # fmt: skip


def _left_to_the_controller(request: pb.Request, layout: TableColumns, refused: Lowered) -> Lowered:
    """Adds the nodes on which the controller may try a request that is not understood here."""
    if _is_laid_out_here(request):
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
    except (BadRequest, RequestError):
        return refused


def _lower(request: pb.Request, layout: TableColumns) -> Lowered:
    _bounded(request)
    if request.controller_chooses and request.features and not _is_laid_out_here(request):
        _understood(request)
    partitions = _partitions(request, layout)
    min_w, max_w = _power(request)
    required = tuple(layout.nodes.parse(request.required_nodes).tolist())
    excluded = tuple(layout.nodes.parse(request.excluded_nodes, unknown_ok=True).tolist())
    exclusive = request.exclusive or any(layout.partition_exclusive[p] for p in partitions)
    dialect, accounting = dialect_named(layout.dialect), layout.accounting(partitions)
    if request.HasField("chunks"):
        named = [layout.nodes.names[node] for node in required]
        chunks, columns = decode_chunks(request, layout, accounting, named)
        requested = chunks.per_node[MEMORY_MIB] or any(want[MEMORY_MIB] for want in chunks.wants)
        return Lowered(
            **vars(columns),
            chunks=chunks,
            partitions=partitions,
            exclusive=exclusive
            or dialect.takes_all_memory(accounting, memory_stated=bool(requested)),
            required=required,
            excluded=excluded,
            reservation=_reservation(request, layout),
            licences=_licences(request, layout),
            controller_chooses=request.controller_chooses,
            min_power_w=min_w,
            max_power_w=max_w,
            copied=_copied(request),
        )
    # The tasks of a moldable job follow from its nodes, not the other way round.
    molds = layout.resizable and request.malleable.moldable
    low, high, rule = _width(request, len(required), 0 if molds else dialect.min_nodes(request))
    widths, start_problem = (low, high), ""
    if _has_widths(request):
        first = _first_widths(request, low, high)
        if rule.next_width(first[0]) > (first[1] or MAX_NODES):
            start_problem = _no_first_width(request, widths, rule)
        elif layout.resizable:
            low, high = first
    demand = dialect.node_demand(request, low, high, accounting)
    memory_node, memory_task = demand.memory_per_node_mib, demand.memory_per_task_mib

    per_node, per_task = [0] * len(layout.resources), [0] * len(layout.resources)
    per_node[CPUS], per_task[CPUS] = demand.cpus_per_node, demand.cpus_per_task
    if layout.memory_consumable:
        per_node[MEMORY_MIB], per_task[MEMORY_MIB] = memory_node, memory_task
    else:
        minimum = min(demand.min_memory_mib, MAX_AMOUNT)
        if too_small := np.flatnonzero(layout.memory_mib < minimum).tolist():
            excluded = tuple(sorted({*excluded, *too_small}))
    stated = bool(memory_node or memory_task)
    exclusive |= dialect.takes_all_memory(accounting, memory_stated=stated)
    if unknown := layout.gres(request.gres_per_node, per_node):
        raise BadRequest(f"asks for '{unknown[:64]}', which no node has")
    excluded = _without_gres(request, layout, excluded)
    if max(*per_node, *per_task) > MAX_AMOUNT:
        raise BadRequest("asks for more than any node could ever have")
    rigid = not _has_widths(request)
    min_start, max_start = 0, 0
    if molds and exclusive and not demand.tasks:
        allowed = max(widths[0], request.malleable.min_start), widths[1]
        min_start, max_start = _start_widths(layout, partitions, allowed, low)
    return Lowered(
        partitions=partitions,
        min_nodes=low,
        max_nodes=demand.max_nodes,
        tasks=demand.tasks,
        max_tasks_per_node=demand.max_tasks_per_node,
        exclusive=exclusive,
        width_rule=int(rule),
        start_problem=start_problem,
        min_width=max(request.malleable.min_nodes, len(required)) or widths[0],
        max_width=widths[1] or demand.max_nodes,
        min_start=min_start,
        max_start=max_start,
        features=constraint(request),
        required=required,
        excluded=excluded,
        reservation=_reservation(request, layout),
        per_node=tuple(per_node),
        per_task=tuple(per_task),
        licences=_licences(request, layout),
        controller_chooses=request.controller_chooses or (rigid and not demand.exact),
        min_power_w=min_w,
        max_power_w=max_w,
        copied=_copied(request),
    )


def _power(request: pb.Request) -> tuple[int, int]:
    """Minimum and maximum power that a job states for a node."""
    minimum, maximum = request.malleable.min_power_w, request.malleable.max_power_w
    if maximum and minimum > maximum:
        raise BadRequest(f"least power {minimum} W exceeds most power {maximum} W")
    return min(minimum, MAX_POWER_W), min(maximum, MAX_POWER_W)


def _is_laid_out_here(request: pb.Request) -> bool:
    """Whether only the planner can lay a request out."""
    return request.HasField("chunks") or _has_widths(request)


def _has_widths(request: pb.Request) -> bool:
    """Whether a request states widths; one that states power alone is rigid."""
    requested = request.malleable
    return bool(requested.min_nodes or requested.max_nodes or requested.node_constraint)


def _copied(request: pb.Request) -> tuple[int, ...]:
    """The columns that are plain fields of a request; none of these is negative."""
    return tuple(min(getattr(request, each.field), each.max_accepted) for each in _COPIED)


def _without_gres(
    request: pb.Request, layout: TableColumns, excluded: tuple[int, ...]
) -> tuple[int, ...]:
    """The excluded nodes, with those that have too little of a resource that is not consumed."""
    for item in request.gres_per_node:
        there = layout.unconsumed.get(item.name)
        if there is None:
            continue
        enough = there >= min(item.count, MAX_AMOUNT + 1)
        if not enough.any():
            raise BadRequest(f"asks for {item.count} of '{item.name[:64]}', more than any node has")
        excluded = tuple(sorted({*excluded, *np.flatnonzero(~enough).tolist()}))
    return excluded


def _bounded(request: pb.Request) -> None:
    if max(len(request.required_nodes), len(request.excluded_nodes)) > MAX_NODE_LIST:
        raise BadRequest(f"list of nodes longer than {MAX_NODE_LIST} characters")
    if max(len(request.partitions), len(request.licences), len(request.gres_per_node)) > MAX_NAMED:
        raise BadRequest(f"names more than {MAX_NAMED} partitions, licences or resources")


def _understood(request: pb.Request) -> None:
    """Leaves a constraint that only the controller understands to it (7): it accepted the job."""
    try:
        parse_features(request.features)
    except RequestError as error:
        text = f"the controller chooses its nodes: {request.features[:96]}"
        raise _ControllersChoice(text) from error


def _partitions(request: pb.Request, layout: TableColumns) -> tuple[int, ...]:
    named = dict.fromkeys(request.partitions)
    known = tuple(layout.partitions[p] for p in named if p in layout.partitions)
    if not known:
        shown = ", ".join(named)[:64]
        raise BadRequest(f"no partition '{shown}'" if shown else "names no partition")
    return known


def _width(request: pb.Request, n_required: int, minimum: int) -> tuple[int, int, WidthRule]:
    """Bounds of the node count (upper 0: none), and the rule for counts between them (4).

    Args:
        request: the job's.
        n_required: nodes that it names.
        minimum: nodes that its tasks need.
    """
    malleable = request.malleable
    rule = _WIDTH_RULES.get(malleable.node_constraint)
    if rule is None:
        known = ", ".join(name for name in _WIDTH_RULES if name)
        shown = malleable.node_constraint[:32]
        raise BadRequest(f"no node constraint '{shown}'; there are {known}")
    low = malleable.min_nodes or request.min_nodes
    high = malleable.max_nodes or request.max_nodes
    low, high = max(low, minimum, n_required, 1), min(high, MAX_NODES)
    if low > MAX_NODES:
        raise BadRequest(f"asks for {low} nodes")
    if high and high < low:
        raise BadRequest(f"asks for at least {low} and at most {high} nodes")
    if high and rule.next_width(low) > high:
        raise BadRequest(f"no node count from {low} to {high} is {rule.name.lower()}")
    return low, high, rule


def _first_widths(request: pb.Request, low: int, high: int) -> tuple[int, int]:
    """The requested bounds of the width at the start, within the allowed ones (4)."""
    return max(low, request.min_nodes), min(high, request.max_nodes or high)


def _no_first_width(request: pb.Request, widths: tuple[int, int], rule: WidthRule) -> str:
    """That a job can start on no number of nodes that it requests."""
    requested = f"{request.min_nodes}"
    if request.max_nodes != request.min_nodes:
        requested += f"-{request.max_nodes or ''}"
    low, high = widths
    allowed = f"{low} to {high}" if high else f"at least {low}"
    if rule is not WidthRule.ANY:
        allowed += f", {rule.name.lower()}"
    return f"requests {requested} nodes, but may run on other numbers only ({allowed})"


def _start_widths(
    layout: TableColumns, partitions: tuple[int, ...], widths: tuple[int, int], requested: int
) -> tuple[int, int]:
    """On how many nodes a moldable job may start, in all its partitions; 0, 0: as requested."""
    bounds = [layout.partition_widths[at] for at in partitions]
    minimum = max(widths[0], *(low for low, _ in bounds))
    maximum = min(widths[1], *(high or widths[1] for _, high in bounds))
    return (minimum, maximum) if minimum <= requested <= maximum else (0, 0)


def _reservation(request: pb.Request, layout: TableColumns) -> int:
    if not request.reservation:
        return -1
    names = request.reservation.split(",")
    for name in names:
        if name not in layout.reservations:
            raise BadRequest(f"no reservation '{name[:64]}'")
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
            raise BadRequest(f"no licence '{use.name[:64]}'")
        wanted[found] += min(use.count, MAX_COUNT)
    return tuple(wanted)
