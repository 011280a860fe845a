# SPDX-License-Identifier: Apache-2.0
"""Numbers, sizes, durations and booleans as PBS writes them.

Rules
    1. A size is a whole number and a unit: b, kb, mb, gb, tb, pb, or w, kw, ... for words of 8
       bytes. Without unit it is bytes. Sizes are counted in KiB, rounded up.
    2. A duration is seconds, or [[days:]hours:]minutes:seconds; fractions of a second are cut off.

Source: OpenPBS 23.06, pbs_resources(7).
"""

import re
from enum import Enum

from bridge.errors import BadRequest

MAX = 1 << 50
"""Largest number that is accepted."""
WORD_B = 8

_SIZE = re.compile(r"([0-9]{1,18})(?:([kmgtp]?)([bw]))?", re.IGNORECASE)
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_TRUE = frozenset(("true", "t", "yes", "y", "1"))
_FALSE = frozenset(("false", "f", "no", "n", "0"))
_SHOWN = 40


class Kind(Enum):
    """The type of a resource."""

    LONG = "long"
    FLOAT = "float"
    SIZE = "size"
    BOOLEAN = "boolean"
    STRING = "string"
    STRINGS = "string_array"

    @property
    def is_amount(self) -> bool:
        """Whether it is counted, and jobs consume it."""
        return self in (Kind.LONG, Kind.FLOAT, Kind.SIZE)


def size_kib(text: str) -> int:
    """Returns a size in KiB, rounded up.

    Raises:
        BadRequest: it is not a size.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise BadRequest(f"'{text[:_SHOWN]}' is not a size such as 4gb")
    count = int(found.group(1)) * (WORD_B if (found.group(3) or "b").lower() == "w" else 1)
    kib: int = -(-count * 1024 ** _POWER[(found.group(2) or "").lower()] // 1024)
    return _bounded(kib, text)


def duration_s(text: str) -> int:
    """Returns a duration in seconds.

    Raises:
        BadRequest: it is not a duration.
    """
    whole = text.strip().partition(".")[0]
    parts = whole.split(":")
    if len(parts) > 4 or not all(part.isascii() and part.isdigit() for part in parts):
        raise BadRequest(f"'{text[:_SHOWN]}' is not a duration such as 01:30:00")
    if any(len(part) > 15 for part in parts):
        raise BadRequest(f"'{text[:_SHOWN]}' is longer than any job")
    factors = (1, 60, 3600, 86_400)
    seconds = sum(int(part) * by for part, by in zip(reversed(parts), factors, strict=False))
    return _bounded(seconds, text)


def whole(text: str) -> int:
    """Returns a whole number, also if it is negative or signed.

    Raises:
        BadRequest: it is not one.
    """
    word = text.strip()
    digits = word[1:] if word[:1] in ("-", "+") else word
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
        raise BadRequest(f"'{text[:_SHOWN]}' is not a whole number")
    return _bounded(int(word), text)


def decimal(text: str) -> float:
    """Returns a decimal number that is not negative.

    Raises:
        BadRequest: it is not one.
    """
    if not re.fullmatch(r"[0-9]{1,15}(\.[0-9]{0,15})?", text.strip()):
        raise BadRequest(f"'{text[:_SHOWN]}' is not a number")
    return float(text)


def boolean(text: str) -> bool:
    """Returns a truth value.

    Raises:
        BadRequest: it is none.
    """
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise BadRequest(f"'{text[:_SHOWN]}' is neither True nor False")


def is_true(text: str) -> bool:
    """Tells whether a text is one of the words for true."""
    return text.strip().lower() in _TRUE


def amount(kind: Kind, text: str) -> float:
    """Returns an amount: KiB for sizes; durations of resources of type long as seconds.

    Raises:
        BadRequest: it is none, or negative.
    """
    if kind is Kind.SIZE:
        return size_kib(text)
    if kind is Kind.FLOAT:
        return decimal(text)
    value = duration_s(text) if ":" in text else whole(text)
    if value < 0:
        raise BadRequest(f"'{text[:_SHOWN]}' is negative")
    return value


def format_amount(kind: Kind, value: float) -> str:
    """Writes an amount as the server reads it."""
    if kind is Kind.SIZE:
        return f"{int(value)}kb"
    if kind is Kind.FLOAT and value != int(value):
        return f"{value:.6f}".rstrip("0")
    return f"{int(value)}"


def strings(text: str) -> tuple[str, ...]:
    """Returns the items of a string_array."""
    return tuple(item for part in text.split(",") if (item := part.strip().strip("\"'")))


def instant(text: str) -> int:
    """Returns an instant in Unix seconds; 0: none, or not understood."""
    word = text.strip()
    return int(word) if word.isascii() and word.isdigit() and len(word) <= 12 else 0


def _bounded(value: int, text: str) -> int:
    if abs(value) > MAX:
        raise BadRequest(f"'{text[:_SHOWN]}' is impossibly large")
    return value
