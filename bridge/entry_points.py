# SPDX-License-Identifier: Apache-2.0
"""Loads what packages offer at their entry points; one that is broken never stops the others."""

import sys
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint
from typing import TypeVar

T = TypeVar("T")


def loaded(
    points: Iterable[EntryPoint],
    kind: type[T],
    check: Callable[[str, T], None],
    problems: list[str],
) -> list[tuple[str, T]]:
    """Returns the name and the object of each entry point that can be used, by name.

    Args:
        kind: the type that each must name an object of.
        check: raises ValueError if an object, which a stranger wrote, is malformed.
        problems: gets a sentence for each entry point that is left out.
    """
    found: list[tuple[str, T]] = []
    for point in sorted(points, key=lambda each: (each.name, each.value)):
        where = f"entry point '{point.name:.60}' = {point.value:.120}"
        if point.dist is not None:
            where = f"package {point.dist.name:.60}: {where}"
        try:
            offered = point.load()
        except Exception as error:  # whatever a stranger's module raises when it is imported
            problems.append(
                f"{where} cannot be loaded: {type(error).__name__}: {str(error)!r:.200}"
            )
            continue
        if not isinstance(offered, kind):
            must_be = f"{kind.__module__}.{kind.__qualname__}"
            problems.append(f"{where} must be a {must_be}, not {type(offered).__name__}")
            continue
        try:
            check(point.name, offered)
        except ValueError as error:
            problems.append(f"{where} is malformed: {error}")
            continue
        found.append((point.name, offered))
    return found


def mending(problems: Iterable[str]) -> str:
    """Returns the end of a message about an unknown name: what is left out, and how to mend it."""
    if not (listed := "; ".join(problems)):
        return ""
    return f"; {listed}: mend the package or uninstall it (pip, in {sys.prefix})"
