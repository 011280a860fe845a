# SPDX-License-Identifier: Apache-2.0
"""A job as PBS states it, read once for the report and the last check.

Rules
    1. Reading never fails: `problem` describes what is invalid, and such a job is not started.
    2. A suspended job holds what it did not release (`resources_released`); without that attribute,
       nothing.
    3. What a job uses of the server's and the queue's resources is its Resource_List; a resource
       that only chunks state is summed over them.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from bridge.errors import BadRequest
from bridge.pbs.objects import values
from bridge.pbs.objects.definitions import NOT_COUNTED, ResourceDefinition
from bridge.pbs.objects.exec_vnode import parse_exec_vnode, total_by_vnode
from bridge.pbs.objects.limits import Owner, comparable
from bridge.pbs.objects.select import PbsChunk, PbsPlace, PlaceSharing, job_chunks, job_place
from bridge.pbs.objects.vnodes import Vnode, chunk_amounts
from bridge.pbs.tables import Attributes, amounts, text

HOLDING = frozenset(("R", "E", "S", "U"))
"""States in which a job may hold vnodes: running, exiting, suspended."""
WAITING = frozenset(("Q", "H", "W", "B", "T"))
SUSPENDED = frozenset(("S", "U"))

Held = Mapping[str, Mapping[str, float]]
"""Vnode to what is taken there."""


@dataclass(frozen=True)
class PbsJob:
    """One job, one array, or one task of an array.

    Attributes:
        wants: what one chunk of each kind consumes of vnodes.
        total: what it uses of the server's and the queue's resources.
        words: strings and booleans that it asks for as a whole.
        order: the chunks of `held`, as stated in exec_vnode.
        array: id of the array that it is a task of; empty: none.
        is_array: it stands for the tasks that have not started.
        version: hash of everything that a decision depends on.
    """

    id: str
    state: str
    substate: int
    owner: Owner
    queue: str
    chunks: tuple[PbsChunk, ...] = ()
    place: PbsPlace = field(default_factory=PbsPlace)
    wants: tuple[Mapping[str, float], ...] = ()
    total: Mapping[str, float] = field(default_factory=dict)
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    walltime_s: int = 0
    min_walltime_s: int = 0
    max_walltime_s: int = 0
    begin_s: int = 0
    holds: str = ""
    depend: str = ""
    held: Held = field(default_factory=dict)
    array: str = ""
    is_array: bool = False
    remaining: str = ""
    max_tasks: int = 0
    version: int = 1
    problem: str = ""

    @property
    def is_waiting(self) -> bool:
        """Whether it could be started."""
        return self.state in WAITING

    @property
    def has_vnodes(self) -> bool:
        return self.state in HOLDING and bool(self.held)

    @property
    def n_chunks(self) -> int:
        return sum(chunk.count for chunk in self.chunks)


def read_job(job_id: str, job: Attributes, definitions: Mapping[str, ResourceDefinition]) -> PbsJob:
    listed = amounts(job, "Resource_List")
    state = text(job, "job_state")
    problem = ""
    chunks: tuple[PbsChunk, ...] = ()
    place = PbsPlace()
    wants: tuple[Mapping[str, float], ...] = ()
    total: dict[str, float] = {}
    times = {"walltime": 0, "min_walltime": 0, "max_walltime": 0}
    try:
        chunks, place = job_chunks(job), job_place(job)
        wants = tuple(chunk_amounts(chunk, definitions) for chunk in chunks)
        total = _total(listed, chunks, wants, definitions)
        for name in times:
            if name in listed:
                times[name] = values.duration_s(listed[name])
        if dynamic := [
            name for name, value in total.items() if value and definitions[name].dynamic
        ]:
            raise BadRequest(
                f"asks for {dynamic[0][:40]}, whose amount a program states (server_dyn_res): not "
                "supported"
            )
        if any("aoe" in chunk.resources for chunk in chunks) or "aoe" in listed:
            raise BadRequest("asks for an operating environment: nodes are not provisioned here")
    except BadRequest as error:
        problem = str(error)
    held: Held = {}
    try:
        held = _held(state, job, definitions)
    except BadRequest as error:
        problem = problem or str(error)
    array = text(job, "array_id")
    return PbsJob(
        id=job_id,
        state=state,
        substate=_count(text(job, "substate")),
        owner=owner_of(job),
        queue=text(job, "queue"),
        chunks=chunks,
        place=place,
        wants=wants,
        total=total,
        words=_words(listed, definitions),
        walltime_s=times["walltime"],
        min_walltime_s=times["min_walltime"],
        max_walltime_s=times["max_walltime"],
        begin_s=values.instant(text(job, "Execution_Time")),
        holds=text(job, "Hold_Types").strip().replace("n", ""),
        depend=text(job, "depend"),
        held=held,
        array=array,
        is_array="[]" in job_id and not array,
        remaining=text(job, "array_indices_remaining"),
        max_tasks=_count(text(job, "max_run_subjobs")),
        version=version_of(job),
        problem=problem,
    )


def owner_of(job: Attributes) -> Owner:
    """Returns the user, group and project of a job or reservation."""
    user = text(job, "euser") or text(job, "Job_Owner") or text(job, "Reserve_Owner")
    return Owner(user.partition("@")[0], text(job, "egroup"), text(job, "project"))


def version_of(job: Attributes) -> int:
    """Returns a number, never 0, that changes with whatever a decision depends on."""
    parts = {name: value for name, value in job.items() if name not in _NOT_REQUESTED}
    digest = hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") or 1


_NOT_REQUESTED = frozenset((
    "eligible_time", "accrue_type", "estimated", "comment", "mtime", "resources_used", "qtime",
    "array_indices_remaining", "array_state_count", "queue_rank", "run_count", "run_version",
    "stime",
))  # fmt: skip
"""Attributes that change without the job's request. A start that failed raises `run_count`: with it
in the version, the service would not know that it has tried these vnodes."""


def _held(state: str, job: Attributes, definitions: Mapping[str, ResourceDefinition]) -> Held:
    written = text(job, "exec_vnode")
    if not written or state not in HOLDING:
        return {}
    holds = total_by_vnode(parse_exec_vnode(written, definitions))
    if state not in SUSPENDED:
        return holds
    released = text(job, "resources_released")
    if not released:
        return {}
    for vnode, given in total_by_vnode(parse_exec_vnode(released, definitions)).items():
        for name, value in given.items():
            kept = holds.get(vnode, {})
            kept[name] = max(kept.get(name, 0) - value, 0)
    return {vnode: kept for vnode, kept in holds.items() if any(kept.values())}


def _words(
    listed: Mapping[str, str], definitions: Mapping[str, ResourceDefinition]
) -> Mapping[str, tuple[str, ...]]:
    return {
        name: comparable(known, stated)
        for name, stated in listed.items()
        if (known := definitions.get(name)) is not None
        and known.compared
        and not known.kind.is_amount
    }


def _total(
    listed: Mapping[str, str],
    chunks: tuple[PbsChunk, ...],
    wants: tuple[Mapping[str, float], ...],
    definitions: Mapping[str, ResourceDefinition],
) -> dict[str, float]:
    total: dict[str, float] = {}
    for chunk, want in zip(chunks, wants, strict=True):
        for name, value in want.items():
            total[name] = total.get(name, 0) + chunk.count * value
    for name, stated in listed.items():
        known = definitions.get(name)
        if known is not None and known.kind.is_amount and name not in NOT_COUNTED:
            total[name] = max(values.amount(known.kind, stated), total.get(name, 0))
    return total


def takes_alone(share: PlaceSharing, vnode: Vnode) -> PlaceSharing:
    """Returns how a job takes a vnode, by its place and the vnode's `sharing`."""
    sharing = vnode.sharing
    if sharing in _FORCED:
        return _FORCED[sharing]
    if share is not PlaceSharing.UNSTATED:
        return share
    return _DEFAULT.get(sharing, PlaceSharing.SHARED)


_FORCED = {
    "force_excl": PlaceSharing.EXCLUSIVE, "force_exclhost": PlaceSharing.HOST,
    "force_shared": PlaceSharing.SHARED, "ignore_excl": PlaceSharing.SHARED,
}  # fmt: skip
_DEFAULT = {"default_excl": PlaceSharing.EXCLUSIVE, "default_exclhost": PlaceSharing.HOST}


def _count(word: str) -> int:
    return int(word) if word.isascii() and word.isdigit() and len(word) < 10 else 0
