# SPDX-License-Identifier: Apache-2.0
"""Reads JSON of others within a bound on memory, which is counted before values are made.

Rules
    1. The brackets, commas and quotes of a text are an upper bound on its values, and so on the
       memory that they need (`needed_bytes`). They also count where they are within strings.
    2. A list of many members is read one by one (`members`), each within `MAX_MEMBER_BYTES` bytes
       of text; only the member that is being read is held. One that is longer, would need too
       much memory, is nested too deep or has a number that Python refuses is passed over:
       `Unreadable` stands for it, and the others are read.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from bridge.files import MIB, MemoryBudget, size

MAX_MEMORY_BYTES: Final = 512 * MIB
"""Memory that the values of one text may need, bytes."""
MAX_MEMBER_BYTES: Final = 64 * MIB
_FIRST_WINDOW: Final = 1 << 16

# Of CPython, rounded up, each with its place in the list or object that holds it.
_LIST_B: Final = 96
_OBJECT_B: Final = 240
_VALUE_B: Final = 44
_PAIR_B: Final = 120
_STRING_B: Final = 80
_BLANK: Final = b" \t\n\r"


def needed_bytes(text: bytes) -> int:
    """An upper bound on the memory that the values of a text need."""
    wide = 1 if text.isascii() and b"\\u" not in text else 4
    return (
        wide * len(text)
        + _LIST_B * text.count(b"[")
        + _OBJECT_B * text.count(b"{")
        + _VALUE_B * (text.count(b",") + text.count(b"[") + 1)
        + _PAIR_B * text.count(b":")
        + _STRING_B * (text.count(b'"') // 2)
    )


def load(text: bytes | str, budget: MemoryBudget | None = None, **settings: Any) -> Any:
    """The value of a text.

    Args:
        text: JSON.
        budget: what the value is counted in; None: `MAX_MEMORY_BYTES`.
        settings: settings of `json.loads`.

    Raises:
        OSError: it may need more memory than the budget has.
        ValueError: it is not JSON.
    """
    (budget or MemoryBudget(MAX_MEMORY_BYTES)).take(
        needed_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
    )
    try:
        return json.loads(text, **settings)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


@dataclass(frozen=True)
class Unreadable:
    """Stands for a value that was passed over."""

    reason: str


def members(pieces: Iterable[bytes], key: str) -> Iterator[Any]:
    """The members of the list at a key of the object that a text is, one by one.

    Args:
        pieces: pieces of the text, in UTF-8.

    Raises:
        KeyError: it has no such list.
        ValueError: it is not JSON.
    """
    text, found = _Text(pieces), False
    text.expect(b"{")
    while not text.ends(b"}"):
        name = text.value()
        text.expect(b":")
        if name == key and text.peek(1) == b"[":
            found = True
            text.expect(b"[")
            while not text.ends(b"]"):
                yield text.value()
                text.comma_or(b"]")
            text.expect(b"]")
        else:
            text.value()
        text.comma_or(b"}")
    text.expect(b"}")
    if text.peek(1):
        raise ValueError("there is more after its end")
    if not found:
        raise KeyError(key)


class _Text:
    """A text of which only the part that is being read is held."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._held = b""
        self._at = 0
        self._skip()

    def peek(self, count: int) -> bytes:
        """The next bytes; fewer only at the end."""
        if len(self._held) - self._at < count:
            parts = [self._held[self._at :]]
            length = len(parts[0])
            while length < count and (piece := next(self._pieces, b"")):
                parts.append(piece)
                length += len(piece)
            self._held, self._at = b"".join(parts), 0
        return self._held[self._at : self._at + count]

    def ends(self, sign: bytes) -> bool:
        return self.peek(1) == sign

    def expect(self, sign: bytes) -> None:
        if self.peek(1) != sign:
            raise ValueError(f"'{sign.decode()}' is missing before '{self.peek(20)!r:.24}'")
        self._at += 1
        self._skip()

    def comma_or(self, end: bytes) -> None:
        if not self.ends(end):
            self.expect(b",")

    def value(self) -> Any:
        """The next value (rule 2)."""
        window = _FIRST_WINDOW
        while True:
            piece = self.peek(window)
            if window > _FIRST_WINDOW and needed_bytes(piece) > MAX_MEMORY_BYTES:
                bound = size(MAX_MEMORY_BYTES)
                return self._passed_over(f"needs more than {bound} of memory")
            shown = piece.decode("utf-8", "surrogateescape")
            try:
                value, end = _DECODER.raw_decode(shown)
            except json.JSONDecodeError:
                if len(piece) < window:
                    raise
                end = len(shown)
            except ValueError:
                return self._passed_over("has a number of too many digits")
            except RecursionError:
                return self._passed_over("is nested too deep")
            if end < len(shown) or len(piece) < window:  # else the rest of it may follow
                used = shown[:end]
                self._at += end if used.isascii() else len(used.encode("utf-8", "surrogateescape"))
                self._skip()
                return value
            if window >= MAX_MEMBER_BYTES:
                return self._passed_over(f"is longer than {MAX_MEMBER_BYTES // MIB} MiB")
            window *= 4

    def _passed_over(self, reason: str) -> Unreadable:
        """Goes to the end of a list, an object or a text, of which nothing is kept."""
        if self.peek(1) not in _BEGINS:
            raise ValueError(f"an entry {reason}")
        depth, in_text = 0, False
        while True:
            piece, at = self.peek(_FIRST_WINDOW), 0
            while found := (_IN_TEXT if in_text else _OUTSIDE).search(piece, at):
                at = found.end()
                if in_text:
                    in_text = found[0] != b'"'
                elif found[0] == b'"':
                    in_text = True
                else:
                    depth += 1 if found[0] in b"[{" else -1
                if depth <= 0 and not in_text:
                    self._at += at
                    self._skip()
                    return Unreadable(reason)
            if len(piece) < _FIRST_WINDOW:
                raise ValueError(f"an entry {reason}, and does not end")
            # An escape at the end of the piece is read again, with what follows.
            self._at += max(at, len(piece) - piece.endswith(b"\\"))

    def _skip(self) -> None:
        while (sign := self.peek(1)) and sign in _BLANK:
            self._at += 1


_BEGINS: Final = (b"[", b"{", b'"')
_OUTSIDE: Final = re.compile(rb'["\[\]{}]')
_IN_TEXT: Final = re.compile(rb'"|\\.', re.DOTALL)
_DECODER: Final = json.JSONDecoder()
