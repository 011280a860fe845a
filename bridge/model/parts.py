# SPDX-License-Identifier: Apache-2.0
"""What extensions add to a table or a plan, by the name of the extension."""

from collections.abc import Iterator, Mapping
from typing import Any, Final


class Parts(Mapping[str, Any]):
    """An immutable mapping from the name of an extension to its part; empty: `NO_PARTS`."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Mapping[str, Any]) -> None:
        self._parts = dict(parts)

    def __getitem__(self, name: str) -> Any:
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __hash__(self) -> int:  # a default of a dataclass must have one
        return hash(frozenset(self._parts))

    def having(self, name: str, part: object | None) -> "Parts":
        """Returns the same with another part of one extension; None: without one."""
        parts = {each: one for each, one in self._parts.items() if each != name}
        if part is not None:
            parts[name] = part
        return Parts(parts) if parts else NO_PARTS

    def __reduce__(self) -> tuple[Any, ...]:
        return made, (self._parts,)


NO_PARTS: Final = Parts({})


def is_among_fields(kind: type) -> bool:
    """Whether the fields of a part are written in files among those of its table or plan."""
    return bool(getattr(kind, "among_fields", False))


def made(parts: Mapping[str, Any]) -> Parts:
    """Returns these parts, or `NO_PARTS`: whether there are any is asked by identity."""
    return Parts(parts) if parts else NO_PARTS
