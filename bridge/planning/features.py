# SPDX-License-Identifier: Apache-2.0
"""Slurm's constraint expressions over node features: `fast&(a|b)`, `[rack1|rack2]`.

Rules
    1. `&` and `|` have equal rank and are read from left to right, as Slurm reads them;
       parentheses group.
    2. `[a|b|c]`, as the whole expression, means: all nodes from a, or all from b, or all from c.
       It is expanded to alternatives, one expression each.
    3. Counts (`rack1*2`) and preferences are not understood and refused with their position.

Source: sbatch(1), option --constraint.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from bridge.errors import RequestError

Matches = Callable[[frozenset[str]], bool]
"""Tells whether a node with these features will do."""

_TOKEN = re.compile(r"\s*([A-Za-z0-9_.:=+/-]+|[&|()])")
_MAX_LENGTH = 4096


@lru_cache(maxsize=4096)
def parse_features(text: str) -> tuple[Matches, ...]:
    """Reads a constraint expression.

    Returns:
        The alternatives; all nodes of a job must match the same one.

    Raises:
        RequestError: with the character that is wrong.
    """
    if len(text) > _MAX_LENGTH:
        raise RequestError(text[:40] + "...", 0, f"constraint longer than {_MAX_LENGTH} characters")
    stripped = text.strip()
    if stripped.startswith("[") and stripped.endswith("]"):
        offset = text.index("[") + 1
        alternatives = []
        for part in stripped[1:-1].split("|"):
            alternatives.append(_Parser(text, offset, offset + len(part)).parse())
            offset += len(part) + 1
        return tuple(alternatives)
    return (_Parser(text, 0, len(text)).parse(),)


class _Parser:
    """Reads text[begin:end] by recursive descent."""

    def __init__(self, text: str, begin: int, end: int) -> None:
        self.text, self.position, self.end = text, begin, end

    def parse(self) -> Matches:
        result = self._sequence()
        if self._peek() is not None:
            raise self._error("unexpected ')'")
        return result

    def _sequence(self) -> Matches:
        result = self._atom()
        while (operator := self._peek()) in ("&", "|"):
            self._take()
            right = self._atom()
            result = _both(result, right) if operator == "&" else _either(result, right)
        return result

    def _atom(self) -> Matches:
        token = self._peek()
        if token is None:
            raise self._error("a feature is missing")
        if token == "(":
            self._take()
            inner = self._sequence()
            if self._peek() != ")":
                raise self._error("')' is missing")
            self._take()
            return inner
        if token in "&|)":
            raise self._error(f"a feature is missing before '{token}'")
        self._take()
        return _has(token)

    def _match(self) -> re.Match[str] | None:
        if self.text[self.position : self.end].strip() == "":
            return None
        found = _TOKEN.match(self.text, self.position, self.end)
        if found is None:
            raise self._error("counts, nested brackets and other signs are not understood")
        return found

    def _peek(self) -> str | None:
        found = self._match()
        return found.group(1) if found else None

    def _take(self) -> None:
        found = self._match()
        assert found is not None
        self.position = found.end()

    def _error(self, problem: str) -> RequestError:
        return RequestError(self.text, self.position, problem)


def _has(feature: str) -> Matches:
    return lambda features: feature in features


def _both(left: Matches, right: Matches) -> Matches:
    return lambda features: left(features) and right(features)


def _either(left: Matches, right: Matches) -> Matches:
    return lambda features: left(features) or right(features)
