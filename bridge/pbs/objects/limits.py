# SPDX-License-Identifier: Apache-2.0
"""Limits of running jobs and of the resources they use, at the server and at queues.

Terms
    entity the subject of a limit: `u:alice`, `g:staff`, `p:lab`, `o:PBS_ALL` (all jobs together),
                and `u:PBS_GENERIC` (each user without a limit of their own), likewise for groups
                and projects.

Rules
    1. `max_run = [u:PBS_GENERIC=2],[u:alice=10]`; `max_run_res.ncpus` likewise. The older
       attributes (max_running, max_user_run, max_group_run, max_user_res, max_group_res) mean
       o:PBS_ALL, u:PBS_GENERIC and g:PBS_GENERIC. An own limit replaces the generic one.
    2. Limits of the server count all running jobs, those of a queue the jobs in it.
    3. A soft limit prevents no start: jobs of an entity above it are considered after all others.
    4. resources_available at the server and a queue is a limit of o:PBS_ALL on the resource.
    5. A string or boolean under resources_available there is what a job has to match that asks for
       it as a whole (`-l site=a`); one that is not stated there is not compared.
    6. A limit that cannot be read is left out, and reported.

Source: OpenPBS 23.06, pbs_server_attributes(7), pbs_queue_attributes(7).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bridge.errors import BadRequest
from bridge.pbs.objects.definitions import NOT_COUNTED, ResourceDefinition
from bridge.pbs.objects.values import Kind, amount, format_amount, is_true, strings, whole
from bridge.pbs.tables import Attributes, amounts, text

RUNS = ""
"""In place of a resource: the number of jobs."""

_ITEM = re.compile(r"\s*\[?\s*([ugpo]):(\"[^\"]*\"|[^=\]\"]+)\s*=\s*([^\],]+)\]?\s*")
_OLD = {
    "max_running": "o:PBS_ALL", "max_user_run": "u:PBS_GENERIC", "max_group_run": "g:PBS_GENERIC",
}  # fmt: skip
_OLD_SOFT = {"max_user_run_soft": "u:PBS_GENERIC", "max_group_run_soft": "g:PBS_GENERIC"}
_OLD_RES = {"max_user_res": "u:PBS_GENERIC", "max_group_res": "g:PBS_GENERIC"}
_OLD_RES_SOFT = {"max_user_res_soft": "u:PBS_GENERIC", "max_group_res_soft": "g:PBS_GENERIC"}
_NOUNS = {"u": "user", "g": "group", "p": "project"}


@dataclass(frozen=True)
class Owner:
    """Whose limits a job counts against."""

    user: str
    group: str
    project: str

    @property
    def entities(self) -> tuple[str, str, str, str]:
        return ("o:PBS_ALL", f"u:{self.user}", f"g:{self.group}", f"p:{self.project}")


@dataclass(frozen=True)
class Limits:
    """The limits of the server or of one queue: resource to entity to maximum.

    Attributes:
        place: "server", or "queue workq", for messages.
        words: strings and booleans to match: resource to values.
    """

    place: str
    hard: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    soft: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


Used = dict[tuple[str, str], float]
"""Entity and resource to what running jobs use."""


def read_limits(
    place: str, attributes: Attributes, definitions: Mapping[str, ResourceDefinition]
) -> Limits:
    """Reads the limits in the attributes of a server or a queue."""
    reader = _Reader(place, definitions)
    hard, soft = reader.hard, reader.soft
    for old, entity in _OLD.items():
        reader.put(hard, RUNS, text(attributes, old), entity)
    for old, entity in _OLD_SOFT.items():
        reader.put(soft, RUNS, text(attributes, old), entity)
    for attribute, entities, into in (
        *((old, entity, hard) for old, entity in _OLD_RES.items()),
        *((old, entity, soft) for old, entity in _OLD_RES_SOFT.items()),
        ("resources_available", "o:PBS_ALL", hard),
    ):
        for resource, value in amounts(attributes, attribute).items():
            known = definitions.get(resource)
            if attribute != "resources_available" or known is None or known.compared:
                reader.put(into, resource, value, entities)
    for attribute, into in (("max_run", hard), ("max_run_soft", soft)):
        reader.items(into, RUNS, text(attributes, attribute))
    for attribute, into in (("max_run_res", hard), ("max_run_res_soft", soft)):
        for resource, value in amounts(attributes, attribute).items():
            reader.items(into, resource, value)
    words = {
        resource: comparable(known, value)
        for resource, value in amounts(attributes, "resources_available").items()
        if (known := definitions.get(resource)) and known.compared and not known.kind.is_amount
    }
    return Limits(place, hard, soft, tuple(reader.problems), words)


def comparable(known: ResourceDefinition, value: str) -> tuple[str, ...]:
    """Returns the values of a string, string_array or boolean, the same for the same meaning."""
    if known.kind is Kind.BOOLEAN:
        return (str(is_true(value)),)
    return strings(value) if known.kind is Kind.STRINGS else (value.strip().strip("\"'"),)


class _Reader:
    def __init__(self, place: str, definitions: Mapping[str, ResourceDefinition]) -> None:
        self.place, self.definitions = place, definitions
        self.hard: dict[str, dict[str, float]] = {}
        self.soft: dict[str, dict[str, float]] = {}
        self.problems: list[str] = []

    def items(self, into: dict[str, dict[str, float]], resource: str, value: str) -> None:
        at = 0
        while at < len(value):
            found = _ITEM.match(value, at)
            if found is None:
                self.problems.append(f"{self.place}: limit '{value[at : at + 60]}' is not read")
                return
            name = found.group(2).strip().strip('"')
            self.put(into, resource, found.group(3), f"{found.group(1)}:{name}")
            at = found.end()
            while value[at : at + 1] == ",":
                at += 1

    def put(
        self, into: dict[str, dict[str, float]], resource: str, value: str, entity: str
    ) -> None:
        if not value or (resource and resource in NOT_COUNTED):
            return
        known = self.definitions.get(resource)
        if resource and (known is None or not known.kind.is_amount):
            return
        try:
            maximum = amount(known.kind, value) if known else float(whole(value))
        except BadRequest as error:
            self.problems.append(f"{self.place}: limit of {entity[:60]}: {error}")
            return
        into.setdefault(resource, {})[entity] = maximum


def exceeded(
    limits: Iterable[tuple[Limits, Used]],
    owner: Owner,
    wanted: Mapping[str, float],
    definitions: Mapping[str, ResourceDefinition],
) -> str:
    """Returns the first hard limit that one more job would exceed; empty: none.

    Args:
        limits: limits of the server and the job's queue, each with what running jobs use there.
        owner: the job's.
    """
    for place, used in limits:
        for entity, resource, maximum in _of(place.hard, owner):
            more = 1.0 if resource == RUNS else wanted.get(resource, 0.0)
            present = used.get((entity, resource), 0.0)
            if more and present + more > maximum:
                known = definitions.get(resource)
                kind = known.kind if known else Kind.LONG
                used_up = (
                    f"{int(present)} of at most {int(maximum)} jobs run"
                    if resource == RUNS
                    else f"{format_amount(kind, present)} of at most "
                    f"{format_amount(kind, maximum)} {resource} in use"
                )
                return f"limit of {place.place} for {_who(entity)}: {used_up}"
    return ""


def mismatch(limits: Iterable[Limits], wanted: Mapping[str, tuple[str, ...]]) -> str:
    """Returns what a job asks for as a whole that the server or its queue has not; empty: nothing.

    Args:
        limits: limits of the server and the job's queue.
        wanted: strings and booleans of the job.
    """
    for place in limits:
        for resource, values in wanted.items():
            there = place.words.get(resource)
            if there is not None and not set(values) <= set(there):
                return f"{place.place} has {resource}={','.join(there)}, not {','.join(values)}"
    return ""


def runs_left(limits: Iterable[tuple[Limits, Used]], owner: Owner) -> int:
    """Returns how many more jobs of an owner may run; -1: no limit says."""
    left = -1
    for place, used in limits:
        for entity, resource, maximum in _of(place.hard, owner):
            if resource == RUNS:
                room = max(int(maximum - used.get((entity, RUNS), 0.0)), 0)
                left = room if left < 0 else min(left, room)
    return left


def is_above_soft(limits: Iterable[tuple[Limits, Used]], owner: Owner) -> bool:
    """Tells whether an entity of a job uses more than its soft limit."""
    return any(
        used.get((entity, resource), 0.0) > maximum
        for place, used in limits
        for entity, resource, maximum in _of(place.soft, owner)
    )


def add_use(used: Used, owner: Owner, wanted: Mapping[str, float], sign: int = 1) -> None:
    """Counts a running job, or with the sign -1 takes it away."""
    for entity in owner.entities:
        used[entity, RUNS] = used.get((entity, RUNS), 0.0) + sign
        for resource, value in wanted.items():
            used[entity, resource] = used.get((entity, resource), 0.0) + sign * value


def _of(
    limits: Mapping[str, Mapping[str, float]], owner: Owner
) -> Iterable[tuple[str, str, float]]:
    for resource, by_entity in limits.items():
        for entity in owner.entities:
            maximum = by_entity.get(entity)
            if maximum is None and entity[0] != "o":
                maximum = by_entity.get(f"{entity[0]}:PBS_GENERIC")
            if maximum is not None:
                yield entity, resource, maximum


def _who(entity: str) -> str:
    return f"{_NOUNS[entity[0]]} {entity[2:]}" if entity[0] in _NOUNS else "all jobs"
