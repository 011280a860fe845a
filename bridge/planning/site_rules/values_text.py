# SPDX-License-Identifier: Apache-2.0
"""Values in limits and FreePools as text: durations, numbers of items, bounds, lists of nodes."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
)

from bridge.model import hostlist
from bridge.model.rules.limits import (
    COUNTED,
    MEMORY,
    TIME,
    Bound,
    Items,
)
from bridge.units import NEVER

_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")

_ITEMS = re.compile(r"(?:(\d+)([kmgt]?)b?)?(?:(?:^|/)(\d+(?:\.\d+)?)%)?", re.IGNORECASE)

_BOUND = re.compile(r"(<=|>=|<|>|=)?\s*([^\s<>=]+)")

_KIB = {"k": 1, "m": 1024, "g": 1024**2, "t": 1024**3}

MAX = 2**40

MAX_NODES = 100_000
"""Most nodes that all FreePools name."""

MAX_RESOURCES = 50
"""Resources that one access bounds."""


def duration(text: object) -> int:
    """Reads `4d3h`, `90m`, `1h30m`, `45s` as seconds.

    Raises:
        ValueError: it is something else.
    """
    found = _DURATION.fullmatch(text.replace(" ", "")) if isinstance(text, str) else None
    if found is None or not any(found.groups()):
        raise ValueError("must be a duration as 7d, 4d3h, 1h30m or 45s")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if not 0 < total < MAX:
        raise ValueError("must be longer than 0 s and finite")
    return total


def _duration_text(value: object) -> object:
    """The text is kept as written, so that what is shown can be read again."""
    if value in (None, "none"):
        return None
    duration(value)
    return value


def seconds(text: str | None) -> int | None:
    """Returns a duration that has been checked in seconds; None: none is stated."""
    return None if text is None else duration(text)


def _plain(value: object) -> object:
    """Numbers may be written without quotes."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Name = Annotated[str, Field(max_length=255)]

Duration = Annotated[Name | None, BeforeValidator(_duration_text)]

Count = Annotated[Name, BeforeValidator(_plain)]

KeptAmount = Annotated[int, Field(ge=0, lt=MAX, strict=True)]


def _size(number: str, suffix: str, resource: str) -> int:
    """A number of items; of memory with a suffix, in MiB without one."""
    if suffix and resource not in MEMORY:
        raise ValueError(f"has a size of memory ('{number}{suffix}') for {resource}")
    count = -(-int(number) * _KIB[suffix.lower()] // 1024) if suffix else int(number)
    if count > MAX:
        raise ValueError(f"is more than {MAX}")
    return count


def items(value: str, resource: str) -> Items | None:
    """Reads `640`, `45%`, `30/45%`, `64g` (memory), `all`, or `unlimited` (None).

    Raises:
        ValueError: it is something else.
    """
    text = value.replace(" ", "")
    if text == "unlimited":
        return None
    if text == "all":
        return Items(percent=100.0)
    found = _ITEMS.fullmatch(text)
    if found is None or not any(found.groups()):
        raise ValueError("must be a number, a percentage, or both: 640, 45%, 30/45%")
    number, suffix, percent = found.groups()
    if percent is not None and float(percent) > 100:
        raise ValueError("is more than 100%")
    if percent is not None and resource in COUNTED:
        raise ValueError(f"must be a number: there is no percentage of {resource}")
    minimum = None if number is None else _size(number, suffix or "", resource)
    return Items(minimum, None if percent is None else float(percent))


def hostnames(texts: Sequence[str]) -> tuple[str, ...]:
    """Reads node names and hostlists: `n[1-8],big1`.

    Raises:
        ValueError: it is something else, or names too many nodes.
    """
    found: list[str] = []
    for text in texts:
        try:
            nodes = hostlist.expand(text)
        except ValueError as error:
            raise ValueError(
                f"'{text:.60}' is not a hostlist: {error}; write one as n[1-8],big1"
            ) from None
        if len(nodes) + len(found) > MAX_NODES:
            raise ValueError(f"names more than {MAX_NODES} nodes")
        found.extend(nodes)
    return tuple(found)


def bounds(value: object, what: str) -> Bound:
    """Reads `< 4`, `>= 80g`, `> 2h, <= 12h`, or `4` (the same as `<= 4`).

    Raises:
        ValueError: it is something else, or nothing meets it.
    """
    minimum, maximum = 0, NEVER
    for part in str(value).split(","):
        found = _BOUND.fullmatch(part.strip())
        if found is None:
            raise ValueError(f"must be a bound as '< 4', '>= 4' or '>= 4, <= 8', not {value!r:.60}")
        sign, text = found.groups()
        amount = _amount(text, what, value)
        if sign in (">", ">=", "="):
            minimum = max(minimum, amount + (sign == ">"))
        if sign not in (">", ">="):
            maximum = min(maximum, amount - (sign == "<"))
    if minimum > maximum:
        raise ValueError(f"'{value!s:.60}' can never be met")
    return Bound(what, minimum, maximum)


def _amount(text: str, what: str, value: object) -> int:
    if what == TIME:
        return duration(text)
    number = re.fullmatch(r"(\d+)([kmgt]?)b?", text, re.IGNORECASE)
    if number is None:
        raise ValueError(f"must be a bound as '< 4', '>= 4' or '>= 4, <= 8', not {value!r:.60}")
    return _size(number[1], number[2], what)


def all_bounds(stated: Mapping[str, object]) -> tuple[Bound, ...]:
    """Reads bounds, each under the name of what it bounds.

    Raises:
        ValueError: one is wrong; it is named.
    """
    if len(stated) > MAX_RESOURCES:
        raise ValueError(f"bounds more than {MAX_RESOURCES} resources")
    found = []
    for what, value in sorted(stated.items()):
        if len(what) > 255:
            raise ValueError(f"'{what:.60}...' is not a resource's name")
        try:
            found.append(bounds(value, what))
        except ValueError as error:
            raise ValueError(f"{what}: {error}") from error
    return tuple(found)


class Section(BaseModel):
    """Keys and values of one thing; keys that it does not know are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
