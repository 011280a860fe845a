# SPDX-License-Identifier: Apache-2.0
"""Feature expressions as the check reads them: evaluated for one node, from left to right.

`fast&(a|b)` is a condition on a node; `[a|b|c]`, as a whole, is three, of which all nodes of a job
meet the same one. `&` and `|` have equal precedence. Source: sbatch(1), option --constraint.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bridge.errors import RequestError

_TOKEN = re.compile(r"\s*(?:([A-Za-z0-9_.:=+/-]+)|([&|()])|$)")


def alternatives(text: str) -> list[str]:
    """The conditions that an expression consists of."""
    text = text.strip()
    whole = text.startswith("[") and text.endswith("]")
    return list(dict.fromkeys(text[1:-1].split("|"))) if whole else [text]


def matching(condition: str, nodes: Sequence[frozenset[str]]) -> NDArray[np.bool_]:
    """(n,) which of the nodes, given by their features, meet a condition.

    Raises:
        RequestError: the condition is not one.
    """
    meets_it = {features: meets(condition, features) for features in set(nodes)}
    return np.array([meets_it[features] for features in nodes], dtype=bool)


def meets(condition: str, features: frozenset[str]) -> bool:
    """Whether a node with these features meets a condition.

    Raises:
        RequestError: the condition is not one.
    """
    opened: list[tuple[bool | None, str]] = []  # what stands before each open parenthesis
    value: bool | None = None
    operator, at = "", 0
    while at < len(condition):
        found = _TOKEN.match(condition, at)
        if found is None:
            raise RequestError(condition, at, "is not understood")
        name, sign = found.groups()
        complete = value is not None and not operator
        if ((name or sign == "(") and complete) or (sign in ("&", "|", ")") and not complete):
            raise RequestError(condition, at, "is not expected here")
        if name:
            value, operator = _joined(value, operator, name in features), ""
        elif sign == "(":
            opened.append((value, operator))
            value, operator = None, ""
        elif sign == ")" and opened and value is not None:
            inner = value
            value, operator = opened.pop()
            value, operator = _joined(value, operator, inner), ""
        elif sign == ")":
            raise RequestError(condition, at, "closes nothing")
        elif sign:
            operator = sign
        at = found.end()
    if value is None or operator or opened:
        raise RequestError(condition, at, "ends too early")
    return value


def _joined(left: bool | None, operator: str, right: bool) -> bool:
    if left is None:
        return right
    return left and right if operator == "&" else left or right
