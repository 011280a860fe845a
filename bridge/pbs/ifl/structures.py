# SPDX-License-Identifier: Apache-2.0
"""The lists of libpbs (pbs_ifl.h) as ctypes structures, and from and to dictionaries."""

import ctypes
from collections.abc import Iterable, Iterator, Sequence

from bridge.pbs.tables import Attributes, Objects

EQUAL, AT_LEAST = 4, 6
"""Comparisons of a selection (enum batch_op)."""


class Attribute(ctypes.Structure):
    """struct attropl; struct attrl has the same layout."""


Attribute._fields_ = [
    ("next", ctypes.POINTER(Attribute)),
    ("name", ctypes.c_char_p),
    ("resource", ctypes.c_char_p),
    ("value", ctypes.c_char_p),
    ("op", ctypes.c_int),
]


class Status(ctypes.Structure):
    """struct batch_status."""


Status._fields_ = [
    ("next", ctypes.POINTER(Status)),
    ("name", ctypes.c_char_p),
    ("attributes", ctypes.POINTER(Attribute)),
    ("text", ctypes.c_char_p),
]

Attributed = "ctypes._Pointer[Attribute]"


def decoded(text: bytes | None) -> str:
    """A text of the server; error texts may be no UTF-8."""
    return "" if text is None else text.decode("utf-8", "replace")


class AttributeList:
    """A list for the library, and the memory that it is in."""

    def __init__(self, items: Iterable[tuple[str, str, str, int]]) -> None:
        """Makes it.

        Args:
            items: name, resource (or empty), value, comparison.
        """
        self._parts = [
            Attribute(
                None,
                name.encode(),
                resource.encode() if resource else None,
                value.encode(),
                op,
            )
            for name, resource, value, op in items
        ]
        for part, following in zip(self._parts, self._parts[1:], strict=False):
            part.next = ctypes.pointer(following)

    @property
    def head(self) -> "ctypes._Pointer[Attribute] | None":
        """What the library takes; None: an empty list."""
        return ctypes.pointer(self._parts[0]) if self._parts else None

    @classmethod
    def named(cls, names: Sequence[str]) -> "AttributeList":
        """The attributes that a query is to state."""
        return cls((name, "", "", 0) for name in names)

    @classmethod
    def set_to(cls, attributes: Attributes) -> "AttributeList":
        """New values."""
        return cls(
            (name, resource, value, 0)
            for name, stated in attributes.items()
            for resource, value in ([("", stated)] if isinstance(stated, str) else stated.items())
        )


def _chain(head: "ctypes._Pointer[Attribute]") -> Iterator[Attribute]:
    at = head
    while at:
        found = at.contents
        yield found
        at = found.next


def attributes_of(head: "ctypes._Pointer[Attribute]") -> Attributes:
    """Reads a list of attributes."""
    found: Attributes = {}
    for each in _chain(head):
        name, value = decoded(each.name), decoded(each.value)
        resource = each.resource
        known = found.get(name)
        if not resource:
            found[name] = f"{known},{value}" if isinstance(known, str) else value
        elif isinstance(known, dict):
            known[decoded(resource)] = value
        else:
            found[name] = {decoded(resource): value}
    return found


def objects_of(head: "ctypes._Pointer[Status]") -> Objects:
    """Reads a list of objects."""
    found: Objects = {}
    at = head
    while at:
        status = at.contents
        found[decoded(status.name)] = attributes_of(status.attributes)
        at = status.next
    return found
