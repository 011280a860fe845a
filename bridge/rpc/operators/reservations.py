# SPDX-License-Identifier: Apache-2.0
"""Advance reservations for operators: a slot is found in the last plan; the controller makes them.

Rules
    1. The slot is searched in the last published cycle. The controller checks again when it makes
       the reservation, as other jobs may have started on those nodes since.
    2. If there is no slot, nothing is done; the reply has what blocks it and the next slot.
"""

import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from bridge.dialect import ReservationText, dialect_of
from bridge.errors import ConfigError, ControllerError
from bridge.model.snapshot import Snapshot
from bridge.planning.requests.chunks import parse_request
from bridge.planning.scheduler.advance_reservation import (
    ReservationRequest,
    ReservationSlot,
    find_slot,
)
from bridge.rpc.controller.cycles import Published
from bridge.rpc.operators.explain import planned_job, running_job
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.pb import scheduler_pb2
from bridge.rpc.reported.features import Feature
from bridge.units import NEVER, UNLIMITED_S, format_instant

WAIT_S = 30.0
"""The controller calls every `bridge_tick_s` (10 s) at the least."""
MAX_SHOWN = 50
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_WHO = re.compile(r"[A-Za-z0-9_.@-]{1,64}")
_LONGEST_S = 10 * UNLIMITED_S
_RESERVATION = [column.name for column in fields(ReservationText)]


@dataclass(frozen=True)
class Controlling:
    """The required functions of the controller.

    Attributes:
        carry_out: sends it an order with a time limit, s, and returns the order's result.
    """

    features: Collection[str]
    carry_out: Callable[[scheduler_pb2.Decision, float], scheduler_pb2.Fate]


def reserve(
    controller: Controlling,
    published: Published,
    request: pb.ReserveRequest,
    *,
    wait_s: float = WAIT_S,
) -> pb.ReserveReply:
    """Finds nodes and has the controller reserve them.

    Args:
        published: the last cycle.
        wait_s: maximum time for the controller.

    Raises:
        ConfigError: the request is invalid.
        RequestError: its chunks are invalid.
        ControllerError: the controller cannot do it, does not call, or refuses.
    """
    requested = _request_of(published, request)
    if not request.dry_run:
        _need_feature(controller, Feature.RESERVE_LICENCES if request.licences else Feature.RESERVE)
    slot = find_slot(published.snapshot, published.plan, requested)
    end_s = requested.start_s + requested.duration_s
    reply = pb.ReserveReply(start_s=requested.start_s, end_s=end_s, jobs=_jobs(published, slot))
    if not len(slot.nodes):
        if slot.next_start_s == NEVER and not reply.jobs:
            raise ConfigError(
                "reservation", "there are not enough usable nodes of that kind, or licences"
            )
        reply.next_start_s = 0 if slot.next_start_s == NEVER else slot.next_start_s
        return reply
    reply.nodes = published.nodes.fold(slot.nodes)
    reply.node_count = len(slot.nodes)
    order = scheduler_pb2.Reserve(
        name=request.name,
        start_s=requested.start_s,
        end_s=end_s,
        nodes=reply.nodes,
        partition=request.partition,
        users=",".join(request.users),
        accounts=",".join(request.accounts),
        licences=_licences_text(published.snapshot, requested),
    )
    reply.command = dialect_of(published.snapshot).reserve_command(
        ReservationText(**{column: getattr(order, column) for column in _RESERVATION})
    )
    if request.dry_run:
        return reply
    _carried_out(controller, scheduler_pb2.Decision(reserve=order), wait_s)
    reply.made = True
    return reply


def unreserve(controller: Controlling, request: pb.UnreserveRequest) -> None:
    """Has the controller remove a reservation.

    Raises:
        ConfigError: it has no such name.
        ControllerError: the controller cannot do it, does not call, or refuses.
    """
    _check_name(request.name)
    _need_feature(controller, Feature.RESERVE)
    order = scheduler_pb2.Unreserve(name=request.name)
    _carried_out(controller, scheduler_pb2.Decision(unreserve=order), WAIT_S)


def _carried_out(controller: Controlling, decision: scheduler_pb2.Decision, wait_s: float) -> None:
    result = controller.carry_out(decision, wait_s)
    if result.outcome != scheduler_pb2.OUTCOME_APPLIED:
        raise ControllerError(f"the controller refuses: {result.text or result.code}")


def _need_feature(controller: Controlling, feature: str) -> None:
    if feature not in controller.features:
        raise ControllerError(
            "the plugin in the controller is older and cannot do that: install the one of this "
            "version, or run the command that --dry-run prints"
        )


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigError(
            "reservation", "its name must be 1 to 64 letters, digits, '_', '.' or '-'"
        )


def _check_who(kind: str, names: Sequence[str]) -> None:
    for name in names:
        if not _WHO.fullmatch(name):
            raise ConfigError("reservation", f"'{name[:64]}' is not a name in {kind}")


def _request_of(published: Published, request: pb.ReserveRequest) -> ReservationRequest:
    snapshot = published.snapshot
    _check_name(request.name)
    if request.name in [item.name for item in snapshot.reservations]:
        raise ConfigError("reservation", f"there is one called {request.name} already")
    if not request.users and not request.accounts:
        raise ConfigError("reservation", "state who may use it: users or accounts")
    _check_who("users", request.users)
    _check_who("accounts", request.accounts)
    if not 0 < request.duration_s <= _LONGEST_S:
        raise ConfigError("reservation", "its duration must be from a second to ten years")
    if (request.nodes > 0) == bool(request.chunks):
        raise ConfigError("reservation", "state either the number of nodes or the chunks")
    partition = -1
    if request.partition:
        names = [part.name for part in snapshot.partitions]
        if request.partition not in names:
            raise ConfigError("reservation", f"there is no partition '{request.partition[:64]}'")
        partition = names.index(request.partition)
    now_s = max(snapshot.now_s, int(time.time())) if _is_live(snapshot.now_s) else snapshot.now_s
    start_s = request.start_s or now_s
    if start_s < snapshot.now_s or start_s > now_s + _LONGEST_S:
        raise ConfigError(
            "reservation",
            f"its start must not lie in the past (it is {format_instant(now_s)} there), "
            "nor more than ten years ahead",
        )
    return ReservationRequest(
        start_s=start_s,
        duration_s=request.duration_s,
        nodes=request.nodes,
        chunks=parse_request(request.chunks) if request.chunks else None,
        partition=partition,
        licences=_licences(snapshot, request.licences),
        displace=request.displace,
    )


def _licences(snapshot: Snapshot, texts: Sequence[str]) -> NDArray[np.int64]:
    """(L,) the licences of a text such as `matlab:2`, or `matlab` for one."""
    wanted = np.zeros(len(snapshot.licences), dtype=np.int64)
    for text in texts:
        name, _, count = text.partition(":")
        if name not in snapshot.licences:
            raise ConfigError("reservation", f"there is no licence '{name[:64]}'")
        at, number = snapshot.licences.index(name), count or "1"
        total = int(snapshot.licence_total[at])
        if not (number.isascii() and number.isdigit() and 0 < int(number[:18]) <= total):
            raise ConfigError(
                "reservation", f"licence {name} has 1 to {total} items, not '{count[:64]}'"
            )
        wanted[at] = int(number)
    return wanted


def _licences_text(snapshot: Snapshot, requested: ReservationRequest) -> str:
    """Writes the requested licences as `matlab:2,ansys:1`."""
    wanted = [] if requested.licences is None else requested.licences.tolist()
    return ",".join(
        f"{name}:{count}" for name, count in zip(snapshot.licences, wanted, strict=True) if count
    )


def _is_live(now_s: int) -> bool:
    """Whether the controller's clock is this machine's, not a simulation's."""
    return abs(time.time() - now_s) < 3600


def _jobs(published: Published, slot: ReservationSlot) -> list[pb.PlannedJob]:
    running = [running_job(published, row) for row in slot.running[:MAX_SHOWN]]
    planned = [planned_job(published, row) for row in slot.planned[:MAX_SHOWN]]
    return running + planned
