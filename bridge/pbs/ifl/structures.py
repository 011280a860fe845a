# SPDX-License-Identifier: Apache-2.0
"""Lists of attributes for libpbs (pbs_ifl.h), as ctypes structures."""

import ctypes
from collections.abc import Iterable, Sequence

from bridge.pbs.tables import Attributes

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


def decoded(text: bytes | None) -> str:
    """A text of the server; error texts may not be UTF-8."""
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
        """The attributes with new values."""
        return cls(
            (name, resource, value, 0)
            for name, stated in attributes.items()
            for resource, value in ([("", stated)] if isinstance(stated, str) else stated.items())
        )
