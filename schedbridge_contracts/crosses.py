# SPDX-License-Identifier: Apache-2.0
"""One test over many seeds, presets, orders and places.

    @each(plan=PLANS, order=ORDERS, seed=range(20))
    def test_plans_are_legal(plan, order, seed): ...

is one test that is called with cases: in every run a few of the cross, in which each two values of
different parameters meet at least once; the whole cross with `SCHEDBRIDGE_CROSSES=whole` (before a
release). Of one or two parameters both are the same. The first case that fails ends the test; the
failure names it and the command that repeats it. `SCHEDBRIDGE_CASE='plan=easy'` restricts the cases
of all such tests to those values.
"""

import functools
import inspect
import itertools
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from _pytest.python import get_direct_param_fixture_func as parametrized

WHOLE = os.environ.get("SCHEDBRIDGE_CROSSES") == "whole"
WANTED = dict(word.split("=", 1) for word in shlex.split(os.environ.get("SCHEDBRIDGE_CASE", "")))

Row = tuple[int, ...]
Values = Sequence[Any] | Mapping[str, Any]


def seeds(count: int, whole: int) -> range:
    """That many seeds in every run, and more in whole crosses."""
    return range(whole if WHOLE else count)


def pairwise(sizes: Sequence[int]) -> list[Row]:
    """Returns few rows of numbers below sizes, among which every pair of two columns is.

    Lei and Tai's in-parameter-order: the whole cross of the two longest columns, then one column
    after the other. The rows gain a value each, the one with which most new pairs appear; pairs
    that are left get rows of their own. The same rows in every run.
    """
    if not sizes or 0 in sizes:
        return []
    by_size = sorted(range(len(sizes)), key=lambda column: -sizes[column])
    rows: list[list[int | None]] = [
        list(row) for row in itertools.product(*(range(sizes[column]) for column in by_size[:2]))
    ]
    for column in by_size[2:]:
        _add_column(rows, sizes[column])
    back = [by_size.index(column) for column in range(len(sizes))]
    filled = [
        [number % sizes[column] if value is None else value
         for column, value in zip(by_size, row, strict=True)]
        for number, row in enumerate(rows)
    ]  # fmt: skip
    return [tuple(row[column] for column in back) for row in filled]


def _add_column(rows: list[list[int | None]], size: int) -> None:
    width = len(rows[0])
    used = [sorted({row[c] for row in rows if row[c] is not None}) for c in range(width)]
    left = {(c, v, new) for c in range(width) for v in used[c] for new in range(size)}

    def gained(row: list[int | None], new: int) -> set[tuple[int, int, int]]:
        return {(c, v, new) for c, v in enumerate(row[:width])} & left

    for number, row in enumerate(rows):
        turned = [(number + step) % size for step in range(size)]
        best = max(turned, key=lambda new: len(gained(row, new)))
        left -= gained(row, best)
        row.append(best)
    open_rows: dict[int, list[list[int | None]]] = {}
    for c, v, new in sorted(left):
        row = next((row for row in open_rows.get(new, ()) if row[c] is None), None)
        if row is None:
            row = [*[None] * width, new]
            rows.append(row)
            open_rows.setdefault(new, []).append(row)
        row[c] = v


def name_of(value: object) -> str:
    """How a value is named in messages and in `SCHEDBRIDGE_CASE`."""
    return value if isinstance(value, str) else getattr(value, "__name__", None) or repr(value)


def named(values: Values) -> list[tuple[str, Any]]:
    """The values with their names; a mapping has names already."""
    if isinstance(values, Mapping):
        return list(values.items())
    return [(name_of(value), value) for value in values]


def cases(
    wanted: Mapping[str, str] = WANTED, whole: bool = WHOLE, **parameters: Values
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The cases of a cross, each with its name."""
    columns = [
        [pair for pair in named(values) if wanted.get(parameter, pair[0]) == pair[0]]
        for parameter, values in parameters.items()
    ]
    sizes = [len(column) for column in columns]
    rows = itertools.product(*map(range, sizes)) if whole else pairwise(sizes)
    for row in rows:
        chosen = dict(zip(parameters, map(list.__getitem__, columns, row), strict=True))
        name = shlex.join(f"{parameter}={name}" for parameter, (name, _) in chosen.items())
        yield name, {parameter: value for parameter, (_, value) in chosen.items()}


def each(**parameters: Values) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes one test of the cases of a cross."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)
        others = [p for name, p in signature.parameters.items() if name not in parameters]

        @functools.wraps(test)
        def all_cases(*args: Any, **fixtures: Any) -> None:
            called, skipped = 0, None
            for name, values in cases(**parameters):
                called += 1
                try:
                    test(*args, **fixtures, **values)
                except pytest.skip.Exception as reason:
                    skipped = reason
                    called -= 1
                except Exception as failure:
                    failure.add_note(f"case {name}\nagain: {command(name)}")
                    raise
            if not called:
                raise skipped or pytest.skip.Exception("no such case")

        all_cases.has_cases = True
        all_cases.__signature__ = signature.replace(parameters=others)
        return all_cases

    return decorate


def has_cases(item: pytest.Item) -> bool:
    """Whether a test is one of many cases."""
    return getattr(getattr(item, "obj", None), "has_cases", False)


def shared(item: pytest.Item) -> list[str]:
    """Fixtures of a test in which a case would see what the case before it left."""
    if not has_cases(item):
        return []
    names, made = item._fixtureinfo.argnames, item._fixtureinfo.name2fixturedefs
    fixtures = {name: made[name][-1] for name in names if name in made}
    return [
        name
        for name, fixture in fixtures.items()
        if fixture.scope == "function" and fixture.func is not parametrized
    ]


def refuse_shared(items: Sequence[pytest.Item]) -> None:
    """Ends a run in which the cases of a test share a fixture that is made for one test."""
    for test, names in [(item.nodeid, shared(item)) for item in items]:
        if names:
            raise pytest.UsageError(f"{test}: its cases would share {', '.join(names)}")


def command(name: str) -> str:
    """Repeats one case of the test that runs."""
    node = os.environ.get("PYTEST_CURRENT_TEST", "").removesuffix(" (call)")
    return f"SCHEDBRIDGE_CASE={shlex.quote(name)} pytest {shlex.quote(node)}"
