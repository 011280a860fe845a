# SPDX-License-Identifier: Apache-2.0
"""Passes the names in a caller's certificate to the server behind a gate.

Like the users of Unix sockets, they are in the address from which the gate connects (`Badges`).
"""

from collections import OrderedDict
from typing import Final

from bridge.rpc.transport.callers import Badges

MOST: Final = 20_000


class Presented:
    """The names of accepted certificates; the gate writes, the server reads."""

    def __init__(self) -> None:
        self._badges = Badges()
        self._numbers: OrderedDict[frozenset[str], int] = OrderedDict()
        self._names: dict[int, frozenset[str]] = {}
        self._last = 0

    def badge(self, names: frozenset[str]) -> str:
        """An address for a connection of a certificate with these names."""
        number = self._numbers.get(names)
        if number is None:
            self._last += 1
            number = self._numbers[names] = self._last
            self._names[number] = names
        self._numbers.move_to_end(names)
        while len(self._numbers) > MOST:
            _, oldest = self._numbers.popitem(last=False)
            del self._names[oldest]
        return self._badges.of(number)

    def names(self, peer: str) -> frozenset[str]:
        """The names, from gRPC's name of the peer; none: it has no badge."""
        number = self._badges.read(peer)
        return self._names.get(number, frozenset()) if number is not None else frozenset()
