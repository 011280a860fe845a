# SPDX-License-Identifier: Apache-2.0
"""The callers of a gate that have not shown who they are, in a budget of their own.

Rules
    1. There are at most `maximum` of them, however many callers are admitted. None takes the
       place of an admitted caller.
    2. When all places are taken, the oldest of the source that has most of them is sent away for
       the next, once it came at least `FAIR_S` ago; until then the next one waits. A handshake
       takes milliseconds, so it is over by then, unless it is none. Nobody of another source goes
       instead: a source that opens connections without pause has young ones only, so those of all
       others would be the only old ones.
    3. A source is an IPv4 address, or 64 bits of an IPv6 address. All loopback addresses are one,
       as every user of the machine can call from any of them.

Source: the budget is that of sshd (`MaxStartups` and `PerSourceNetBlockSize` in sshd_config(5)).
Deviates: sshd drops new connections at random; here idle ones go first.
"""

import ipaddress
from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

FAIR_S: Final = 0.25


One = TypeVar("One")


class Newcomers(Generic[One]):
    """Connections by age; instants are of a monotonic clock, s."""

    def __init__(self, maximum: int) -> None:
        """Begins without any; there are at most `maximum`."""
        self._maximum = maximum
        self._known: dict[One, tuple[Hashable, float]] = {}
        self._of_source: Counter[Hashable] = Counter()

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[One]:
        """The oldest first; may change meanwhile."""
        return iter(list(self._known))

    def __contains__(self, one: object) -> bool:
        return one in self._known

    def add(self, one: One, source: Hashable, now: float) -> None:
        """Adds a connection that has just come."""
        self._known[one] = source, now
        self._of_source[source] += 1

    def remove(self, one: One) -> None:
        """Forgets a connection, if it is one of them."""
        if one in self._known:
            source, _ = self._known.pop(one)
            self._of_source -= Counter([source])

    def came(self, one: One) -> float:
        return self._known[one][1]

    def source(self, one: One) -> Hashable:
        return self._known[one][0]

    def room_at(self, now: float) -> float:
        """From when on another one can come: now, or later."""
        if len(self) < self._maximum:
            return now
        return max(self.came(self._first_to_go()) + FAIR_S, now)

    def in_the_way(self, now: float) -> One | None:
        """Who must go before another one can be added; None: nobody."""
        if len(self) < self._maximum:
            return None
        one = self._first_to_go()
        return one if self.came(one) + FAIR_S <= now else None

    def _first_to_go(self) -> One:
        """The oldest of the source that has most; of several such sources, the oldest of all."""
        maximum = max(self._of_source.values())
        return next(one for one in self._known if self._of_source[self.source(one)] == maximum)


def source_of(address: str) -> str:
    """The source that an address of a TCP connection belongs to (rule 3)."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        ip = ip.ipv4_mapped or ip
    if ip.is_loopback:
        return "this machine"
    if isinstance(ip, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((ip, 64), strict=False))
    return str(ip)
