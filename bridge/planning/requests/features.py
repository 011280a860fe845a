# SPDX-License-Identifier: Apache-2.0
"""Feature expressions, the form of all constraints on nodes: `fast&(a|b)`, `[rack1|rack2]`.

Jobs, chunks and FreePools state their constraints in this form, whatever the resource manager. The
grammar is that of Slurm's --constraint without counts, so Slurm's plugin sends constraints as they
are; the adapter of another resource manager has to translate.

Rules
    1. `&` and `|` have equal precedence and associate to the left, as in Slurm; parentheses group.
    2. `[a|b|c]`, as the whole expression, means: all nodes from a, or all from b, or all from c.
       It is expanded to alternatives, one expression each.
    3. Counts (`rack1*2`) and preferences are refused, with their position.
    4. Neither parsing nor matching recurses, so that nesting is limited by the length alone.

Source: sbatch(1), option --constraint.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from bridge.errors import RequestError

Matches = Callable[[frozenset[str]], bool]
"""Tells whether a node with these features matches."""

_TOKEN = re.compile(r"\s*([A-Za-z0-9_.:=+/-]+|[&|()])")
_MAX_LENGTH = 4096
_MAX_ALTERNATIVES = 64


@lru_cache(maxsize=4096)
def parse_features(text: str) -> tuple[Matches, ...]:
    """Parses a feature expression.

    Returns:
        The alternatives; all nodes of a job must match the same one.

    Raises:
        RequestError: with the character that is wrong.
    """
    if len(text) > _MAX_LENGTH:
        raise RequestError(text[:40] + "...", 0, f"constraint longer than {_MAX_LENGTH} characters")
    stripped = text.strip()
    if not (stripped.startswith("[") and stripped.endswith("]")):
        return (_read(text, 0, len(text)),)
    offset = text.index("[") + 1
    alternatives: dict[str, Matches] = {}
    for part in stripped[1:-1].split("|"):
        if part not in alternatives:
            if len(alternatives) == _MAX_ALTERNATIVES:
                raise RequestError(text, offset, f"more than {_MAX_ALTERNATIVES} alternatives")
            alternatives[part] = _read(text, offset, offset + len(part))
        offset += len(part) + 1
    return tuple(alternatives.values())


def _read(text: str, begin: int, end: int) -> Matches:
    """Parses text[begin:end] to postfix form: features, each operator after its operands."""
    reader = _Reader(text)
    at = begin
    while text[at:end].strip():
        found = _TOKEN.match(text, at, end)
        if found is None:
            problem = "counts, nested brackets and other signs are not understood"
            raise RequestError(text, at, problem)
        reader.take(found.group(1), at)
        at = found.end()
    return _matcher(reader.finish(at))


class _Reader:
    """Converts the tokens of an expression to postfix form, one at a time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._postfix: list[str] = []
        self._waiting: list[str] = []  # operators and open parentheses
        self._wanted = True  # an operand is next: a feature or an open parenthesis

    def take(self, token: str, at: int) -> None:
        if not self._wanted:
            self._join(token, at)
        elif token in "&|)":
            raise RequestError(self._text, at, f"a feature is missing before '{token}'")
        elif token == "(":
            self._waiting.append(token)
        else:
            self._postfix.append(token)
            self._wanted = False

    def _join(self, token: str, at: int) -> None:
        if token not in ("&", "|", ")"):
            missing = "')'" if "(" in self._waiting else "an operator"
            raise RequestError(self._text, at, f"{missing} is missing")
        self._settle()
        if token != ")":
            self._waiting.append(token)
            self._wanted = True
        elif self._waiting:
            self._waiting.pop()
        else:
            raise RequestError(self._text, at, "unexpected ')'")

    def _settle(self) -> None:
        """Applies the previous operator, as all have equal precedence."""
        if self._waiting and self._waiting[-1] != "(":
            self._postfix.append(self._waiting.pop())

    def finish(self, at: int) -> tuple[str, ...]:
        if self._wanted:
            raise RequestError(self._text, at, "a feature is missing")
        self._settle()
        if self._waiting:
            raise RequestError(self._text, at, "')' is missing")
        return tuple(self._postfix)


def _matcher(postfix: tuple[str, ...]) -> Matches:
    def matches(features: frozenset[str]) -> bool:
        stack: list[bool] = []
        for token in postfix:
            if token == "&":
                right = stack.pop()
                stack[-1] = stack[-1] and right
            elif token == "|":
                right = stack.pop()
                stack[-1] = stack[-1] or right
            else:
                stack.append(token in features)
        return stack[0]

    return matches
