# SPDX-License-Identifier: Apache-2.0
"""A large immutable mapping; a changed copy shares most of its data with the original.

    drafted = Draft(known)
    drafted["ann"] = [10, 20]
    after = drafted.done()          # `known` is what it was

It consists of three dictionaries: a large one, one for the changes since that was made, and a small
one for the latest changes. A change copies the small one only; when that is full, it is merged into
the next. So a change takes a few microseconds whatever the size. Keys are iterated in the order of
their last change.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

V = TypeVar("V")

_GONE: Final[Any] = object()
_SMALL = 256
"""Largest size of the small dictionary."""
_MIDDLE = 4096
_SHARE = 8
"""Largest size of the middle dictionary: `_MIDDLE`, or 1 / `_SHARE` of the large one."""


class Layers(Mapping[str, V]):
    """An immutable mapping with string keys."""

    __slots__ = ("_large", "_middle", "_size", "_small")

    def __init__(self, known: Mapping[str, V] | None = None) -> None:
        """Takes a copy of what is known."""
        self._large: dict[str, Any] = dict(known or {})
        self._middle: dict[str, Any] = {}
        self._small: dict[str, Any] = {}
        self._size = len(self._large)

    def __getitem__(self, key: str) -> V:
        found = self._found(key)
        if found is _GONE:
            raise KeyError(key)
        return found  # type: ignore[no-any-return]

    def get(self, key: str, default: Any = None) -> Any:
        """As of a dictionary; the inherited one raises and catches an error for missing keys."""
        found = self._found(key)
        return default if found is _GONE else found

    def __contains__(self, key: object) -> bool:
        return self._found(key) is not _GONE

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[str]:
        middle, small = self._middle, self._small
        for key in self._large:
            if key not in middle and key not in small:
                yield key
        for key, value in middle.items():
            if value is not _GONE and key not in small:
                yield key
        for key, value in small.items():
            if value is not _GONE:
                yield key

    def __repr__(self) -> str:
        return f"Layers({dict(self)!r})"

    def _found(self, key: Any) -> Any:
        for part in (self._small, self._middle, self._large):
            value = part.get(key, _GONE)
            if value is not _GONE or key in part:
                return value
        return _GONE

    def after(self, changes: Mapping[str, Any], size: int) -> "Layers[V]":
        """The same with other values; for `Draft`."""
        if not changes:
            return self
        made: Layers[V] = Layers()
        made._large, made._middle, made._size = self._large, self._middle, size
        made._small = _over(self._small, changes)
        if len(made._small) > _SMALL:
            made._middle, made._small = _over(made._middle, made._small), {}
        if len(made._middle) > max(_MIDDLE, len(made._large) // _SHARE):
            merged = _over(made._large, made._middle)
            made._large = {key: value for key, value in merged.items() if value is not _GONE}
            made._middle = {}
        return made

    def since(self, before: Mapping[str, V]) -> dict[str, V | None]:
        """Returns the entries that differ from an earlier mapping; None: removed.

        O(changes) as long as both share their large dictionary, otherwise O(all).
        """
        if isinstance(before, Layers) and before._large is self._large:
            keys = {**before._middle, **before._small}
            for part in (self._middle, self._small):
                for key in part:
                    keys.pop(key, None)  # in the order of the last change
                keys.update(part)
        else:
            keys = {**dict.fromkeys(before), **dict.fromkeys(self)}
        return {
            key: self.get(key) for key in keys if self._found(key) is not before.get(key, _GONE)
        }


def _over(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """One over the other, in the order of the last change."""
    merged = dict(below)
    for key, value in above.items():
        merged.pop(key, None)
        merged[key] = value
    return merged


class Draft(Generic[V]):
    """Pending changes of a `Layers`; look-ups see the changes."""

    def __init__(self, layers: Layers[V]) -> None:
        """Begins without changes."""
        self._layers, self._size = layers, len(layers)
        self._changes: dict[str, Any] = {}

    def get(self, key: str) -> V | None:
        """Returns the value of a key, or None."""
        found = self._changes.get(key)
        if found is None:
            found = self._layers.get(key)
        return None if found is _GONE else found

    def __getitem__(self, key: str) -> V:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def __len__(self) -> int:
        return self._size

    def __setitem__(self, key: str, value: V) -> None:
        self._size += key not in self
        self._changes.pop(key, None)
        self._changes[key] = value

    def pop(self, key: str) -> V | None:
        """Removes a key; returns its value, or None."""
        found = self.get(key)
        if found is not None:
            self._size -= 1
            self._changes.pop(key, None)
            self._changes[key] = _GONE
        return found

    def in_order(self) -> list[str]:
        """Returns all keys in the order of their last change."""
        own = [key for key, value in self._changes.items() if value is not _GONE]
        return [*(key for key in self._layers if key not in self._changes), *own]

    def done(self) -> Layers[V]:
        """Returns the changed mapping."""
        return self._layers.after(self._changes, self._size)
