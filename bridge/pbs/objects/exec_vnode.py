# SPDX-License-Identifier: Apache-2.0
"""The vnodes of a job: `(n1:ncpus=2:mem=1048576kb)+(n4[0]:ncpus=1+n4[1]:ncpus=1)`.

One pair of brackets is one chunk; it may use several vnodes of one host. A server that is given a
malformed text here starts the job anyway, or dies: only texts from `format_exec_vnode` may be sent.
"""

import re
from collections.abc import Mapping, Sequence

from bridge.errors import BadRequest
from bridge.pbs.objects.definitions import ResourceDefinition
from bridge.pbs.objects.values import Kind, amount, format_amount

Part = tuple[str, Mapping[str, float]]
"""A vnode, and the amounts taken of it, in the units of `bridge.pbs.objects.values.amount`."""
Chunks = Sequence[Sequence[Part]]
"""For each chunk its parts."""

MAX_LENGTH = 4 << 20
_VNODE = re.compile(r"[A-Za-z0-9_.@^/\\\-\[\]]{1,255}")
"""What the server accepts as the name of a vnode, without `#`: it delimits the vnodes of standing
reservations."""
_HELD_VNODE = re.compile(r"[^:+()=\s]{1,255}")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_\-]{0,63}")


def can_be_written(vnode: str) -> bool:
    """Tells whether a start may name a vnode."""
    return _VNODE.fullmatch(vnode) is not None


def format_exec_vnode(chunks: Chunks, definitions: Mapping[str, ResourceDefinition]) -> str:
    """Writes what a job takes.

    Raises:
        BadRequest: a name contains a delimiter, or nothing is taken.
    """
    if not chunks or not all(chunks):
        raise BadRequest("a chunk takes no vnode")
    written = []
    for parts in chunks:
        words = []
        for vnode, taken in parts:
            if not can_be_written(vnode):
                raise BadRequest(f"'{vnode[:40]}' is not the name of a vnode")
            amounts_text = []
            for name, value in taken.items():
                if not _NAME.fullmatch(name) or value < 0:
                    raise BadRequest(f"'{name[:40]}' is not a resource to take")
                kind = definitions[name].kind if name in definitions else Kind.LONG
                amounts_text.append(f":{name}={format_amount(kind, value)}")
            words.append(vnode + "".join(amounts_text))
        written.append(f"({'+'.join(words)})")
    return "+".join(written)


def parse_exec_vnode(
    written: str, definitions: Mapping[str, ResourceDefinition]
) -> list[list[tuple[str, dict[str, float]]]]:
    """Reads what a job holds: for each chunk its vnodes with what it takes there.

    Resources that are not defined (any more, or yet) are left out.

    Raises:
        BadRequest: it is not understood.
    """
    if len(written) > MAX_LENGTH:
        raise BadRequest(f"exec_vnode is longer than {MAX_LENGTH} characters")
    chunks: list[list[tuple[str, dict[str, float]]]] = []
    inside = False
    for word in written.split("+"):
        opened = word.startswith("(")
        if opened and inside:
            raise BadRequest("exec_vnode: a bracket is opened twice")
        if opened or not inside:
            chunks.append([])
        inside = (inside or opened) and not word.endswith(")")
        name, *resources = word.strip("()").split(":")
        if not _HELD_VNODE.fullmatch(name):
            raise BadRequest(f"exec_vnode: '{name[:40]}' is not the name of a vnode")
        taken: dict[str, float] = {}
        for resource in resources:
            key, equals, value = resource.partition("=")
            if not equals:
                raise BadRequest(f"exec_vnode: '{resource[:40]}' is not RESOURCE=VALUE")
            known = definitions.get(key)
            if known is not None and known.kind.is_amount:
                taken[key] = taken.get(key, 0) + amount(known.kind, value)
        chunks[-1].append((name, taken))
    if inside:
        raise BadRequest("exec_vnode: a bracket is not closed")
    return chunks


def total_by_vnode(chunks: Chunks) -> dict[str, dict[str, float]]:
    """Returns what is taken of each vnode in all."""
    found: dict[str, dict[str, float]] = {}
    for parts in chunks:
        for vnode, taken in parts:
            on_vnode = found.setdefault(vnode, {})
            for name, value in taken.items():
                on_vnode[name] = on_vnode.get(name, 0) + value
    return found
