# SPDX-License-Identifier: Apache-2.0
"""Vnodes: their resources, whether jobs may start there, and which form one node of the wire.

Terms
    wire node   vnodes of one host that are alike: same strings, booleans, queue, sharing, and all
                usable or all not. A chunk may use several vnodes of one host, so that the planner
                sees their sum. A host with one vnode is one wire node, named like it.

Rules
    1. A vnode is usable if none of its states is in `CLOSED`; vnodes in use remain usable.
    2. Numbers and sizes under resources_available are amounts; `@other` means that they are counted
       on that vnode. An amount that is not stated is 0, a boolean False.
    3. A value that cannot be read counts as not stated, and is reported.
    4. Vnodes of another scheduler's partition are not usable, nor those with names that no start
       may contain.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from bridge.errors import BadRequest
from bridge.pbs.objects.definitions import ResourceDefinition
from bridge.pbs.objects.exec_vnode import can_be_written
from bridge.pbs.objects.select import PbsChunk
from bridge.pbs.objects.values import Kind, amount, boolean, strings, whole
from bridge.pbs.tables import Attributes, amounts, text

CLOSED = frozenset((
    "down", "offline", "stale", "state-unknown", "unknown", "unresolvable", "busy", "maintenance",
    "provisioning", "wait-provisioning", "wait-for-provisioning", "sleep", "initializing",
    "needs-hello-hook", "suspended", "deleted",
))  # fmt: skip
"""States in which no job starts."""
SHAPING = frozenset(("mpiprocs", "ompthreads", "nchunk", "select", "place"))
"""Resources of a chunk that nothing on a vnode has to match."""
MAX_SHOWN = 80


@dataclass(frozen=True)
class Vnode:
    """One vnode.

    Attributes:
        amounts: resources that it has; KiB for sizes.
        counted_on: resources that are counted on another vnode, with its name.
        sharing: as in the attribute, `default_shared` if it is not stated.
        queue: only jobs of this queue may start here; empty: of any queue without own vnodes.
        limits: maximum of running jobs: attribute to number.
        problems: values that were not understood.
    """

    name: str
    host: str
    state: str
    usable: bool
    amounts: Mapping[str, float] = field(default_factory=dict)
    counted_on: Mapping[str, str] = field(default_factory=dict)
    strings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    booleans: Mapping[str, bool] = field(default_factory=dict)
    sharing: str = "default_shared"
    queue: str = ""
    priority: int = 0
    limits: Mapping[str, int] = field(default_factory=dict)
    multinode: bool = True
    problems: tuple[str, ...] = ()

    @property
    def likeness(self) -> tuple[object, ...]:
        """The common properties of the vnodes of one wire node."""
        return (
            self.host, self.usable, self.sharing, self.queue, self.multinode, self.priority,
            tuple(sorted((k, v) for k, v in self.strings.items() if k not in ("host", "vnode"))),
            tuple(sorted(self.booleans.items())),
        )  # fmt: skip


_LIMITS = ("max_running", "max_user_run", "max_group_run")


def read_vnode(
    name: str,
    attributes: Attributes,
    definitions: Mapping[str, ResourceDefinition],
    partition: str = "",
) -> Vnode:
    """Reads one vnode.

    Args:
        partition: the partition of the scheduler that this service takes the place of; empty: the
            default one.
    """
    counted: dict[str, float] = {}
    elsewhere: dict[str, str] = {}
    words: dict[str, tuple[str, ...]] = {}
    flags: dict[str, bool] = {}
    problems = []
    for resource, value in amounts(attributes, "resources_available").items():
        known = definitions.get(resource)
        if known is None:
            continue
        try:
            if value.startswith("@"):
                elsewhere[resource] = value[1:]
            elif known.kind is Kind.BOOLEAN:
                flags[resource] = boolean(value)
            elif known.kind.is_amount:
                counted[resource] = amount(known.kind, value)
            else:
                words[resource] = strings(value)
        except BadRequest as error:
            problems.append(f"vnode {name[:MAX_SHOWN]}: {resource[:MAX_SHOWN]}: {error}")
    if not can_be_written(name):
        problems.append(f"vnode {name[:MAX_SHOWN]}: no job is started there, because of its name")
    state = text(attributes, "state")
    states = {word.strip().lower() for word in state.split(",")}
    own = text(attributes, "partition")
    limits = {}
    for limit in _LIMITS:
        if stated := text(attributes, limit):
            try:
                limits[limit] = whole(stated)
            except BadRequest as error:
                problems.append(f"vnode {name[:MAX_SHOWN]}: {limit}: {error}")
    return Vnode(
        name=name,
        host=next(iter(words.get("host", ())), "") or name.partition("[")[0],
        state=state,
        usable=not states & CLOSED and own == partition and can_be_written(name),
        amounts=counted,
        counted_on=elsewhere,
        strings=words,
        booleans=flags,
        sharing=text(attributes, "sharing") or "default_shared",
        queue=text(attributes, "queue"),
        priority=_number(text(attributes, "Priority")),
        limits=limits,
        multinode=text(attributes, "no_multinode_jobs").lower() not in ("true", "1"),
        problems=tuple(problems),
    )


def mismatch(vnode: Vnode, chunk: PbsChunk, definitions: Mapping[str, ResourceDefinition]) -> str:
    """Returns the first resource of a chunk that a vnode does not match; empty: it matches all.

    Amounts are not compared.
    """
    for name, wanted in chunk.resources.items():
        if name in SHAPING:
            continue
        if name == "host":
            if wanted not in (vnode.host, *vnode.strings.get("host", ())):
                return f"host={wanted}"
        elif name == "vnode":
            if wanted != vnode.name:
                return f"vnode={wanted}"
        else:
            known = definitions.get(name)
            if known is None:
                return f"{name}={wanted}"
            if known.kind is Kind.BOOLEAN:
                if boolean(wanted) != vnode.booleans.get(name, False):
                    return f"{name}={wanted}"
            elif not (
                known.kind.is_amount or not known.compared or wanted in vnode.strings.get(name, ())
            ):
                return f"{name}={wanted}"
    return ""


def chunk_amounts(
    chunk: PbsChunk, definitions: Mapping[str, ResourceDefinition]
) -> dict[str, float]:
    """Returns what one chunk consumes of vnodes.

    Raises:
        BadRequest: a resource is unknown, or its amount cannot be read.
    """
    wanted = {}
    for name, value in chunk.resources.items():
        if name in SHAPING:
            continue
        known = definitions.get(name)
        if known is None:
            raise BadRequest(f"asks for {name[:40]}, which this server does not define")
        if known.kind.is_amount:
            wanted[name] = amount(known.kind, value)
        elif known.kind is Kind.BOOLEAN:
            boolean(value)
    return wanted


def wire_nodes(vnodes: Mapping[str, Vnode]) -> dict[str, tuple[str, ...]]:
    """Returns the nodes of the wire by name, each with its vnodes in the server's order."""
    groups: dict[tuple[object, ...], list[str]] = {}
    per_host: dict[str, int] = {}
    for name, vnode in vnodes.items():
        groups.setdefault(vnode.likeness, []).append(name)
        per_host[vnode.host] = per_host.get(vnode.host, 0) + 1
    found: dict[str, tuple[str, ...]] = {}
    named: set[str] = set()
    for members in sorted(groups.values(), key=lambda each: not vnodes[each[0]].usable):
        first = vnodes[members[0]]
        if per_host[first.host] == 1:
            name = wire_name(first.name)
        else:
            name = wire_name(first.host if first.host not in named else first.name)
            named.add(first.host)
        while name in found:
            name += "."
        found[name] = tuple(members)
    order = {name: at for at, name in enumerate(vnodes)}
    return dict(sorted(found.items(), key=lambda item: order[item[1][0]]))


def wire_name(name: str) -> str:
    """Writes a name without brackets, which would be ranges on the wire: `n4.0` for `n4[0]`."""
    return re.sub(r"[^A-Za-z0-9_.\-]", "_", name.replace("[", ".").replace("]", ""))[:200] or "_"


def _number(word: str) -> int:
    try:
        return whole(word) if word else 0
    except BadRequest:
        return 0
