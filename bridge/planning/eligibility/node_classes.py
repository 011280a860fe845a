# SPDX-License-Identifier: Apache-2.0
"""The classes of one snapshot's jobs: sets of nodes with the same blackouts.

The terms and rules are those of `bridge.planning.eligibility.alternatives`.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from bridge.core import pack_nodes
from bridge.model.snapshot import Snapshot
from bridge.planning.requests.features import Matches, parse_features
from bridge.units import NEVER


class NodeClasses:
    """Classes, numbered in the order in which they are requested."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._masks: list[NDArray[np.bool_]] = []
        self._reservation: list[int] = []
        self._opens: list[int] = []
        self._class_of: dict[tuple[bytes, int, int], int] = {}
        self._matching: dict[str, list[NDArray[np.bool_]]] = {}

    def of(self, nodes: NDArray[np.bool_], reservation: int, opens_s: int = 0) -> int:
        """The class of a set of nodes; made if it is new.

        Args:
            nodes: (n_nodes,) bool.
            reservation: the reservation of its jobs; -1: none.
            opens_s: the instant from which its jobs may use it; 0: from now.
        """
        key = (nodes.tobytes(), reservation, opens_s)
        found = self._class_of.get(key)
        if found is None:
            found = self._class_of[key] = len(self._masks)
            self._masks.append(nodes)
            self._reservation.append(reservation)
            self._opens.append(opens_s)
        return found

    def begin_with(self, classes: Iterable[tuple[NDArray[np.bool_], int]]) -> None:
        """Makes the first classes: their nodes, and the reservation of their jobs (-1: none)."""
        for nodes, reservation in classes:
            self.of(nodes, reservation)

    def reservation(self, class_: int) -> int:
        """The reservation of a class's jobs; -1: none."""
        return self._reservation[class_]

    def opens_s(self, class_: int) -> int:
        """The instant from which a job that waits for leaf switches may use a class; 0: now."""
        return self._opens[class_]

    def mask(self, class_: int) -> NDArray[np.bool_]:
        """(n_nodes,) bool: the nodes of a class."""
        return self._masks[class_]

    def bitsets(self) -> NDArray[np.uint64]:
        """(n_class, n_words) uint64 bitsets of all classes, as the kernels take them."""
        masks = np.array(self._masks, dtype=np.bool_)  # without a class, too
        return pack_nodes(masks.reshape(len(self._masks), len(self._snapshot.nodes)))

    def matching(self, text: str) -> list[NDArray[np.bool_]]:
        """(n_nodes,) which nodes match, for each alternative of a constraint.

        Raises:
            RequestError: it is not a valid constraint.
        """
        found = self._matching.get(text)
        if found is None:
            features = self._snapshot.nodes.features
            found = self._matching[text] = (
                [np.ones(len(features), dtype=bool)]
                if not text
                else [_evaluate(alternative, features) for alternative in parse_features(text)]
            )
        return found

    def choices(self, text: str) -> int:
        """How many alternatives a constraint has that was found valid before."""
        return len(self.matching(text))

    def narrowed(self, class_: int, text: str, choice: int) -> int:
        """The class of those nodes of a class that match one alternative of a constraint."""
        return self.of(self._masks[class_] & self.matching(text)[choice], *self._when(class_))

    def only(self, class_: int, nodes: Sequence[int]) -> int:
        """The class of those nodes of a class that are named."""
        named = np.zeros(len(self._snapshot.nodes), dtype=bool)
        named[list(nodes)] = True
        return self.of(self._masks[class_] & named, *self._when(class_))

    def without(self, class_: int, nodes: Sequence[int]) -> int:
        """The class of those nodes of a class that are not named."""
        left = self._masks[class_].copy()
        left[list(nodes)] = False
        return self.of(left, *self._when(class_))

    def _when(self, class_: int) -> tuple[int, int]:
        return self._reservation[class_], self._opens[class_]

    def closed(self, class_: int) -> list[tuple[int, int, NDArray[np.bool_]]]:
        """The times at which nodes of a class are closed to it: start, end and (n_nodes,) bool."""
        snapshot, own = self._snapshot, self._reservation[class_]
        opens_s = self._opens[class_]
        if own >= 0:
            opens_s = max(opens_s, snapshot.reservations[own].start_s)
        found = []
        if opens_s > snapshot.now_s:
            found.append((snapshot.now_s, opens_s, self._masks[class_]))
        if own >= 0 and not snapshot.reservations[own].anywhere:
            return found
        for reservation in snapshot.reservations:
            start_s = max(reservation.start_s, snapshot.now_s)
            shut = self._masks[class_] & mask_of(len(snapshot.nodes), reservation.nodes)
            if reservation.end_s > start_s and shut.any():
                found.append((start_s, min(reservation.end_s, NEVER), shut))
        return found

    def blackouts(
        self,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
        """Class, start, end and nodes (bitsets) of all blackouts."""
        n_nodes = len(self._snapshot.nodes)
        rows = [
            (class_, *blackout)
            for class_ in range(len(self._masks))
            for blackout in self.closed(class_)
        ]
        return (
            np.array([row[0] for row in rows], dtype=np.int32),
            np.array([row[1] for row in rows], dtype=np.int64),
            np.array([row[2] for row in rows], dtype=np.int64),
            pack_nodes(np.array([row[3] for row in rows], dtype=bool).reshape(len(rows), n_nodes)),
        )


def mask_of(n_nodes: int, nodes: NDArray[np.int32]) -> NDArray[np.bool_]:
    """(n_nodes,) bool: the nodes with these indexes."""
    mask = np.zeros(n_nodes, dtype=bool)
    mask[nodes] = True
    return mask


def _evaluate(matches: Matches, features: tuple[frozenset[str], ...]) -> NDArray[np.bool_]:
    """Evaluates a constraint once per distinct set of features."""
    result = {distinct: matches(distinct) for distinct in set(features)}
    return np.fromiter((result[f] for f in features), dtype=bool, count=len(features))
