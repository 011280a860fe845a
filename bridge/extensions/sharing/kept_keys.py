# SPDX-License-Identifier: Apache-2.0
"""Bounds what is kept about applications and pairs, for each user and in total.

Terms
    key     kind and application, or applications of host and guest, with separators in between.
    owner of a key: the user of the application; of a pair, the host's user.

Rules
    1. A user has at most `MAX_OF_USER` keys of a kind. Beyond that the oldest are dropped; of
       pairs, first those of the guests' user who has most of them. So no user can push out the
       records of others by using many job names.
    2. There are at most `MAX` keys. Beyond that the oldest keys of the users with most keys are
    dropped.
    3. Bounds are checked at every `EVERY`-th new key, and may be exceeded by that many.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from bridge.model.layers import Draft
from bridge.model.learnt import Learning

APART: Final = "\x1f"
BESIDE: Final = "\x1e"
"""Between the two applications of a pair."""
MAX_OF_USER: Final = 1_000
MAX: Final = 50_000
EVERY: Final = 64
_ROOM: Final = 16
"""When there are too many, 1 / `_ROOM` more are dropped, so that the search is rare."""


def keep(learning: Learning, key: str, numbers: list[int]) -> None:
    """Keeps what was learnt under a key."""
    made = key not in learning.known
    learning.known[key] = numbers
    if made and len(learning.known) % EVERY == 0:
        _drop_beyond(learning.known)


def _drop_beyond(known: Draft[list[int]]) -> None:
    """Rules 1 and 2; O(all keys)."""
    of_user: dict[tuple[str, str], dict[str, list[str]]] = {}
    for key in known.in_order():
        kind, owner, other = _parts(key)
        of_user.setdefault((kind, owner), {}).setdefault(other, []).append(key)
    for groups in of_user.values():
        if sum(map(len, groups.values())) > MAX_OF_USER:
            _drop_oldest(known, groups, MAX_OF_USER - MAX_OF_USER // _ROOM)
    if len(known) > MAX:
        owned: dict[str, list[str]] = {}
        for key in known.in_order():
            owned.setdefault(_parts(key)[1], []).append(key)
        _drop_oldest(known, owned, MAX - MAX // _ROOM)


def _parts(key: str) -> tuple[str, str, str]:
    """Kind and owner of a key, and the user of a pair's guest."""
    kind, _, rest = key.partition(APART)
    host, _, guest = rest.partition(BESIDE)
    return kind, host.partition(APART)[0], guest.partition(APART)[0]


def _drop_oldest(known: Draft[list[int]], groups: Mapping[str, list[str]], maximum: int) -> None:
    """Drops the oldest keys of the largest groups, until `maximum` or fewer are left."""
    each = _level(map(len, groups.values()), maximum)
    for keys in groups.values():
        for key in keys[: max(len(keys) - each, 0)]:
            known.pop(key)


def _level(sizes: Iterable[int], maximum: int) -> int:
    """The largest size to which all are cut so that their sum is at most `maximum`."""
    found, left = 0, sorted(sizes)
    for at, size in enumerate(left):
        share = (maximum - sum(left[:at])) // (len(left) - at)
        if size > share:
            return max(share, 0)
        found = size
    return found
