# SPDX-License-Identifier: Apache-2.0
"""Lists of names in Slurm's form, `n[01-16,20],big1`: the only reader of their grammar.

Terms
    item    a name, or a name with brackets of numbers and ranges of them.

Rules
    1. A range keeps the width of its lower bound, as in Slurm: `n[8-010]` is n8, n9, n10.
       Later brackets vary fastest.
    2. Texts that Slurm accepts accidentally (`n[1-]`, `n1]`, an empty name) are refused.
    3. The number of names of an item is known before any is generated.

`tests/shim/hostlists.cases` compares this and the plugin's `names.c` with Slurm 24.11.5.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Final

from bridge.errors import RequestError

MAX_NAMES: Final = 1_000_000
"""Maximum number of names that `expand` makes."""

MAX_DIGITS: Final = 18
"""Digits of a number: fewer than a signed 64-bit number may have."""

_STRANGE: Final = re.compile(r"[^\w.,\[\]-]", re.ASCII)
_ITEM: Final = re.compile(r"[^,\[\]]*(?:\[[^\[\]]*\][^,\[\]]*)*")
_BRACKET: Final = re.compile(r"\[([^\[\]]*)\]")
_NUMBER: Final = re.compile(r"([0-9]+)")


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, written with the digits of `low` at least."""

    low: str
    high: str

    @property
    def count(self) -> int:
        """How many numbers it has."""
        return int(self.high) - int(self.low) + 1

    def written(self, number: int) -> str:
        """A number as it stands in a name."""
        return f"{number:0{len(self.low)}d}"

    def __iter__(self) -> Iterator[str]:
        return map(self.written, range(int(self.low), int(self.high) + 1))


@dataclass(frozen=True)
class Item:
    """One item of a list.

    Attributes:
        position: the position of its first character in the list.
        literals: the text before, between and after the brackets: one more than there are brackets.
        brackets: the distinct ranges in each.
    """

    text: str
    position: int
    literals: tuple[str, ...]
    brackets: tuple[tuple[Range, ...], ...]

    @property
    def count(self) -> int:
        """How many names it has; may exceed 64 bits."""
        return prod(sum(each.count for each in ranges) for ranges in self.brackets)

    def __iter__(self) -> Iterator[str]:
        numbers = ([each for span in ranges for each in span] for ranges in self.brackets)
        for chosen in product(*numbers):
            joined = zip(self.literals[1:], chosen, strict=True)
            yield self.literals[0] + "".join(number + literal for literal, number in joined)


def items(text: str) -> Iterator[Item]:
    """Reads a list item by item; repeated items are left out.

    Raises:
        RequestError: it is something else; the position is that of the item, or of the bracket.
    """
    at = 0
    seen: set[str] = set()
    while True:
        found = _ITEM.match(text, at)
        assert found is not None  # it matches nothing, too
        end = found.end()
        if end < len(text) and text[end] != ",":
            raise RequestError(shown(text), end, "brackets do not match")
        if end == at:
            raise RequestError(shown(text), at, "empty name in a hostlist")
        if found.group() not in seen:
            seen.add(found.group())
            pieces = _BRACKET.split(found.group())
            brackets = tuple(_ranges(text, at, body) for body in pieces[1::2])
            yield Item(found.group(), at, tuple(pieces[::2]), brackets)
        if end == len(text):
            return
        at = end + 1


def _ranges(text: str, position: int, body: str) -> tuple[Range, ...]:
    """Reads "001-064,070", each range once."""
    found = []
    for part in dict.fromkeys(body.split(",")):
        low, dash, high = part.partition("-")
        high = high if dash else low
        plain = low.isascii() and low.isdigit() and high.isascii() and high.isdigit()
        if not plain or max(len(low), len(high)) > MAX_DIGITS or int(high) < int(low):
            raise RequestError(shown(text), position, f"'{part[:32]}' is not a range of numbers")
        found.append(Range(low, high))
    return tuple(found)


def shown(text: str) -> str:
    """A list as messages show it."""
    return text if len(text) <= 64 else text[:61] + "..."


def expand(text: str) -> list[str]:
    """Reads a list from files and options; each name once, sorted, numbers as numbers.

    Raises:
        ValueError: it is something else, or names more than `MAX_NAMES`.
    """
    if not text:
        return []
    if strange := _STRANGE.search(text):
        raise ValueError(f"'{strange.group()}' has no place in it")
    try:
        found = list(items(text))
    except RequestError as error:
        raise ValueError(error.problem) from None
    if sum(item.count for item in found) > MAX_NAMES:
        raise ValueError(f"it has more than {MAX_NAMES:,} names")
    return sorted({name for item in found for name in item}, key=_natural)


def _natural(name: str) -> tuple[tuple[str, int, int], ...]:
    """Sorts n2 before n10, and n2 before n02."""
    pieces = (*_NUMBER.split(name), "")
    pairs = zip(pieces[::2], pieces[1::2], strict=True)
    return tuple((literal, int(number or -1), len(number)) for literal, number in pairs)
