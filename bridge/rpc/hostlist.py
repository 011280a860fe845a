# SPDX-License-Identifier: Apache-2.0
"""Hostlists ("n[001-064,070],big1") to node indexes and back, for one cluster's nodes.

Words
    run     nodes that follow each other both in index and in name: n001, n002, n003. A range of
            a hostlist that lies in one run becomes an index range without naming every node.

Rules
    1. A hostlist is a comma-separated list of names; a name may hold brackets of numbers and
       ranges; a range keeps the width of its lower bound: n[8-10] is n8, n9, n10.
    2. Indexes come back ascending and once each. An unknown name is an error with its position.
    3. What folding writes, parsing reads back. Both remember nothing of the order of a text.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from bridge.core import HostlistFolder
from bridge.errors import RequestError

MAX_TEXT = 1 << 20
"""Longest hostlist that is read, in characters."""

MAX_CACHED = 1 << 16
"""Texts whose indexes are remembered; queues name the same nodes again and again."""

MAX_UNKNOWN = 10_000
"""Most nodes of another cluster that an item may name where unknown names are left out."""

_EMPTY: NDArray[np.int32] = np.empty(0, dtype=np.int32)
_EMPTY.flags.writeable = False


class _UnknownNode(RequestError):
    """A well-formed hostlist names a node this cluster does not have."""


class NodeIndex:
    """The names of a cluster's nodes; reads and writes hostlists over them."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.index = {name: position for position, name in enumerate(self.names)}
        stems = [_stem(name) for name in self.names]
        self._folder = HostlistFolder(list(self.names))
        joined = np.zeros(len(stems), dtype=np.int64)
        for i in range(1, len(stems)):
            (prefix, digits), (before, former) = stems[i], stems[i - 1]
            follows = (
                former != "" and prefix == before and f"{int(former) + 1:0{len(former)}d}" == digits
            )
            joined[i] = not follows
        self._run = np.cumsum(joined)
        self._cache: dict[str, NDArray[np.int32]] = {}

    def __len__(self) -> int:
        return len(self.names)

    def parse(self, text: str, *, unknown_ok: bool = False) -> NDArray[np.int32]:
        """Returns the indexes of a hostlist's nodes, ascending; read-only.

        Args:
            text: a hostlist.
            unknown_ok: leave out names that this cluster does not have.

        Raises:
            RequestError: it is no hostlist, or names a node this cluster does not have.
        """
        if not text:
            return _EMPTY
        found = self._cache.get(text)
        if found is not None:
            return found
        single = self.index.get(text)
        try:
            nodes = np.array([single], dtype=np.int32) if single is not None else self._read(text)
        except _UnknownNode:
            if not unknown_ok:
                raise
            return self._known(text)
        nodes.flags.writeable = False
        if len(self._cache) >= MAX_CACHED:
            self._cache.clear()
        self._cache[text] = nodes
        return nodes

    def _read(self, text: str) -> NDArray[np.int32]:
        if len(text) > MAX_TEXT:
            raise RequestError(text[:60] + "...", MAX_TEXT, "hostlist too long")
        parts: list[NDArray[np.int32]] = []
        for position, item in _items(text):
            stem, _, rest = item.partition("[")
            if not rest:
                parts.append(np.array([self._lookup(text, position, item)], dtype=np.int32))
            elif item.count("[") == 1 and item.endswith("]"):
                parts.extend(self._ranges(text, position, stem, rest[:-1]))
            else:
                names = _expand(text, position, item, len(self.names))
                found = [self._lookup(text, position, name) for name in names]
                parts.append(np.array(found, dtype=np.int32))
            if len(parts) > 64:  # a text may name everything again and again
                parts = [np.unique(np.concatenate(parts))]
        return np.unique(np.concatenate(parts)) if parts else _EMPTY.copy()

    def _ranges(self, text: str, position: int, stem: str, body: str) -> list[NDArray[np.int32]]:
        parts: list[NDArray[np.int32]] = []
        for low, high in _bounds(text, position, body):
            if len(parts) > 64:
                parts = [np.unique(np.concatenate(parts))]
            first = self._lookup(text, position, stem + low)
            last = self.index.get(f"{stem}{int(high):0{len(low)}d}")
            count = int(high) - int(low)
            if last is not None and last - first == count and self._run[first] == self._run[last]:
                parts.append(np.arange(first, last + 1, dtype=np.int32))
                continue
            if count >= len(self.names):
                raise RequestError(_shown(text), position, "more nodes than this cluster has")
            names = (f"{stem}{number:0{len(low)}d}" for number in range(int(low), int(high) + 1))
            found = [self._lookup(text, position, name) for name in names]
            parts.append(np.array(found, dtype=np.int32))
        return parts

    def _lookup(self, text: str, position: int, name: str) -> int:
        found = self.index.get(name)
        if found is None:
            raise _UnknownNode(_shown(text), position, f"no node '{name[:64]}' in this cluster")
        return found

    def _known(self, text: str) -> NDArray[np.int32]:
        """Reads a hostlist and leaves out the names that are unknown."""
        found: set[int] = set()
        left = 4 * (len(self.names) + MAX_UNKNOWN)
        for position, item in _items(text):
            names = _expand(text, position, item, len(self.names) + MAX_UNKNOWN)
            left -= len(names)
            if left < 0:
                raise RequestError(_shown(text), position, "more nodes than this cluster has")
            found.update(self.index[name] for name in names if name in self.index)
        return np.array(sorted(found), dtype=np.int32)

    def fold(self, nodes: NDArray[np.int32]) -> str:
        """Writes node indexes as a hostlist."""
        return self._folder.fold(nodes)

    def fold_many(self, indptr: NDArray[np.int64], nodes: NDArray[np.int32]) -> list[str]:
        """Writes each row of a compressed node table as a hostlist."""
        return self._folder.fold_many(indptr, nodes)


def _stem(name: str) -> tuple[str, str]:
    """Splits a name into what stands before its trailing number, and the number's digits."""
    prefix = name.rstrip("0123456789")
    return prefix, name[len(prefix) :]


def _shown(text: str) -> str:
    return text if len(text) <= 64 else text[:61] + "..."


def _items(text: str) -> list[tuple[int, str]]:
    """Splits at the commas outside brackets; gives each item with its position."""
    if "[" not in text and "]" not in text:
        items, start = [], 0
        for item in text.split(","):
            items.append((start, item))
            start += len(item) + 1
    else:
        items, start, depth = [], 0, 0
        for i, char in enumerate(text):
            if char == "[":
                depth += 1
            elif char == "]":
                depth -= 1
            elif char == "," and depth == 0:
                items.append((start, text[start:i]))
                start = i + 1
            if depth not in (0, 1):
                raise RequestError(_shown(text), i, "brackets do not match")
        if depth:
            raise RequestError(_shown(text), len(text) - 1, "brackets do not match")
        items.append((start, text[start:]))
    for position, item in items:
        if not item:
            raise RequestError(_shown(text), position, "empty name in a hostlist")
    return items


def _bounds(text: str, position: int, body: str) -> list[tuple[str, str]]:
    """Reads "001-064,070" as pairs of digits."""
    pairs = []
    for part in body.split(","):
        low, dash, high = part.partition("-")
        high = high if dash else low
        plain = low.isascii() and low.isdigit() and high.isascii() and high.isdigit()
        if not plain or len(low) > 18 or len(high) > 18 or int(high) < int(low):
            raise RequestError(_shown(text), position, f"'{part[:32]}' is no range of numbers")
        pairs.append((low, high))
    return pairs


def _expand(text: str, position: int, item: str, limit: int) -> list[str]:
    """Names all nodes of an item with several brackets, or with text after a bracket."""
    pieces: list[list[str]] = []
    size, rest = 1, item
    while rest:
        literal, bracket, tail = rest.partition("[")
        pieces.append([literal])
        if not bracket:
            break
        body, _, rest = tail.partition("]")
        numbers: list[str] = []
        for low, high in _bounds(text, position, body):
            if int(high) - int(low) >= limit:
                raise RequestError(_shown(text), position, "more nodes than this cluster has")
            numbers.extend(f"{n:0{len(low)}d}" for n in range(int(low), int(high) + 1))
        pieces.append(numbers)
        size *= len(numbers)
        if size > limit:
            raise RequestError(_shown(text), position, "more nodes than this cluster has")
    return ["".join(parts) for parts in product(*pieces)]
