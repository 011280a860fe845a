# SPDX-License-Identifier: Apache-2.0
"""Compares the output that a page states with what a command printed.

Rules
    1. The stated lines stand in the output next to each other and in this order.
    2. A line `...` stands for any lines.
    3. Numbers may differ, and so may blanks: times, widths of columns, identifiers.
"""

import re


def missing(stated: str, printed: str) -> str:
    """What of the stated output was not printed; empty: nothing."""
    lines = printed.splitlines()
    at = 0
    for part in _parts(stated):
        found = _find(part, lines, at)
        if found < 0:
            shown = "\n".join(part)
            return f"stated, but not printed:\n{shown}\nprinted:\n{printed}"
        at = found + len(part)
    return ""


def _parts(stated: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for line in stated.strip("\n").splitlines():
        if line.strip() == "...":
            parts.append([])
        else:
            parts[-1].append(line)
    return [part for part in parts if part]


def _find(part: list[str], lines: list[str], start: int) -> int:
    wanted = [_shape(line) for line in part]
    for at in range(start, len(lines) - len(part) + 1):
        if [_shape(line) for line in lines[at : at + len(part)]] == wanted:
            return at
    return -1


def _shape(line: str) -> str:
    """A line in which all numbers, and all runs of blanks, are alike."""
    return " ".join(re.sub(r"\d+(?:[.,:]\d+)*", "0", line).split())
