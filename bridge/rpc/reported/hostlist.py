# SPDX-License-Identifier: Apache-2.0
"""Hostlists ("n[001-064,070],big1") to node indexes and back, for one cluster's nodes.

Terms
    run     nodes that are consecutive both in index and in name: n001, n002, n003. A range of a
            hostlist within one run becomes an index range without expanding the names.

Rules
    1. `bridge.model.hostlist` reads the grammar.
    2. Indexes are ascending and unique. An unknown name is an error with its position.
    3. Parsing reads back what folding writes. Neither keeps the order of a text.
    4. The cost of a text is bounded by its length and the cluster's nodes, however often it names
       them: a range that is a run, and a repeated item, cost nothing more; other names are counted,
       and too many are refused.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bridge.core import HostlistFolder
from bridge.errors import RequestError
from bridge.model.hostlist import Item, Range, items, shown

MAX_TEXT = 1 << 20
"""Longest hostlist accepted, in characters."""

MAX_CACHED_BYTES = 64 << 20
"""Size of the cache of texts and their indexes; queues name the same nodes repeatedly."""

MAX_UNKNOWN = 10_000
"""Most nodes of another cluster that an item may name where unknown names are left out."""

_EMPTY: NDArray[np.int32] = np.empty(0, dtype=np.int32)
_EMPTY.flags.writeable = False


class NodeIndex:
    """The names of a cluster's nodes; parses and writes hostlists.

    Attributes:
        folder: writes them, for kernels.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.index = {name: position for position, name in enumerate(self.names)}
        stems = [_stem(name) for name in self.names]
        self.folder = HostlistFolder(list(self.names))
        joined = np.zeros(len(stems), dtype=np.int64)
        for i in range(1, len(stems)):
            (prefix, digits), (before, former) = stems[i], stems[i - 1]
            follows = (
                former != "" and prefix == before and f"{int(former) + 1:0{len(former)}d}" == digits
            )
            joined[i] = not follows
        self._run = np.cumsum(joined)
        self._cache: dict[tuple[str, bool], NDArray[np.int32] | RequestError] = {}
        self._cached_bytes = 0

    def __len__(self) -> int:
        return len(self.names)

    def parse(self, text: str, *, unknown_ok: bool = False) -> NDArray[np.int32]:
        """Returns the indexes of a hostlist's nodes, ascending; read-only.

        May be called by several threads.

        Args:
            unknown_ok: leave out names that this cluster does not have.

        Raises:
            RequestError: it is not a hostlist, or names a node this cluster does not have.
        """
        if not text:
            return _EMPTY
        found = self._cache.get((text, unknown_ok))
        if found is None:
            try:
                found = self._read(text, unknown_ok)
            except RequestError as error:
                found = error
            self._remember((text, unknown_ok), found)
        if isinstance(found, RequestError):
            raise found.with_traceback(None)
        return found

    def split(self, text: str) -> tuple[NDArray[np.int32], int]:
        """Returns the indexes of a hostlist's nodes, ascending, and how many other nodes it names.

        Raises:
            RequestError: it is not a hostlist, or names more than `MAX_UNKNOWN` other nodes.
        """
        if len(text) > MAX_TEXT:
            raise RequestError(text[:60] + "...", MAX_TEXT, "hostlist too long")
        reading = _Reading(self.index, self._run, text, unknown_ok=True)
        return reading.nodes(), len(reading.unknown)

    def _read(self, text: str, unknown_ok: bool) -> NDArray[np.int32]:
        single = self.index.get(text)
        if single is not None:
            nodes = np.array([single], dtype=np.int32)
        elif len(text) > MAX_TEXT:
            raise RequestError(text[:60] + "...", MAX_TEXT, "hostlist too long")
        else:
            nodes = _Reading(self.index, self._run, text, unknown_ok).nodes()
        nodes.flags.writeable = False
        return nodes

    def _remember(self, key: tuple[str, bool], found: NDArray[np.int32] | RequestError) -> None:
        size = len(key[0]) + (0 if isinstance(found, RequestError) else found.nbytes) + 200
        if self._cached_bytes + size > MAX_CACHED_BYTES:
            self._cache.clear()
            self._cached_bytes = 0
        self._cached_bytes += size
        self._cache[key] = found

    def fold(self, nodes: NDArray[np.int32]) -> str:
        """Writes node indexes as a hostlist."""
        return self.folder.fold(nodes)


def _stem(name: str) -> tuple[str, str]:
    """Splits a name into its prefix and its trailing digits."""
    prefix = name.rstrip("0123456789")
    return prefix, name[len(prefix) :]


class _Reading:
    """Parses one text: collects index ranges, then merges them into a set (rule 4).

    Attributes:
        unknown: names that the cluster does not have, where they are left out.
    """

    def __init__(
        self, index: dict[str, int], run: NDArray[np.int64], text: str, unknown_ok: bool
    ) -> None:
        self._index, self._run, self._text = index, run, text
        self._unknown_ok = unknown_ok
        self._limit = len(index) + (MAX_UNKNOWN if unknown_ok else 0)
        self._left = 4 * self._limit + MAX_UNKNOWN
        self._first: list[int] = []
        self._last: list[int] = []
        self.unknown: set[str] = set()

    def nodes(self) -> NDArray[np.int32]:
        for item in items(self._text):
            self._take(item)
        if not self._first:
            return _EMPTY
        marks = np.zeros(len(self._index) + 1, dtype=np.int64)
        np.add.at(marks, np.array(self._first, dtype=np.int64), 1)
        np.add.at(marks, np.array(self._last, dtype=np.int64) + 1, -1)
        return np.flatnonzero(np.cumsum(marks)).astype(np.int32)

    def _take(self, item: Item) -> None:
        if not item.brackets:
            self._name(item.text, item.position)
        elif len(item.brackets) == 1 and not item.literals[1]:
            for numbers in item.brackets[0]:
                self._range(item.literals[0], numbers, item.position)
        else:
            if item.count > self._limit:
                raise RequestError(
                    shown(self._text), item.position, "more nodes than this cluster has"
                )
            self._spend(item.count, item.position)
            for name in item:
                self._name(name, item.position)

    def _range(self, stem: str, numbers: Range, position: int) -> None:
        count = numbers.count
        first = self._index.get(stem + numbers.low)
        last = self._index.get(stem + numbers.written(int(numbers.high)))
        if (
            first is not None
            and last is not None
            and last - first == count - 1
            and self._run[first] == self._run[last]
        ):
            self._first.append(first)
            self._last.append(last)
            return
        if first is None and not self._unknown_ok:
            self._name(stem + numbers.low, position)
        if count > self._limit:
            raise RequestError(shown(self._text), position, "more nodes than this cluster has")
        self._spend(count, position)
        for number in numbers:
            self._name(stem + number, position)

    def _name(self, name: str, position: int) -> None:
        found = self._index.get(name)
        if found is not None:
            self._first.append(found)
            self._last.append(found)
        elif self._unknown_ok:
            self.unknown.add(name)
        else:
            raise RequestError(
                shown(self._text), position, f"no node '{name[:64]}' in this cluster"
            )

    def _spend(self, names: int, position: int) -> None:
        self._left -= names
        if self._left < 0:
            raise RequestError(shown(self._text), position, "names the cluster's nodes too often")
