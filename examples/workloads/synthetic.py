# SPDX-License-Identifier: Apache-2.0
"""Bound by memory and the CPU, like Synthetic: memory is filled with numbers, then computed with.

A sequential stage writes the numbers. A parallel one loads its part of them into memory, adds and
multiplies, and all tasks sum what comes out.
"""

import array

from stage import Stage

NUMBERS = 250_000  # for each unit of size: 2 MB
PASSES = 4
MODULUS = (1 << 31) - 1


def _number(index):
    return index * 48_271 % MODULUS


def load(tasks, size, folder):
    """Fills memory with numbers, and writes them."""
    values = array.array("L", map(_number, range(NUMBERS * size)))
    with (folder / "numbers").open("wb") as file:
        values.tofile(file)
    return len(values)


def compute(tasks, size, folder):
    """Adds and multiplies."""
    count = NUMBERS * size
    begin, end = tasks.rank * count // tasks.size, (tasks.rank + 1) * count // tasks.size
    values = array.array("L")
    with (folder / "numbers").open("rb") as file:
        file.seek(begin * values.itemsize)
        values.fromfile(file, end - begin)
    for _ in range(PASSES):
        values = array.array("L", ((3 * value + 1) % MODULUS for value in values))
    return sum(tasks.exchange(sum(values))) % MODULUS


def expected(size):
    """The same sum: PASSES times 3 x + 1 is 3^PASSES x + (3^PASSES - 1) / 2."""
    factor = 3**PASSES
    return sum(
        (factor * _number(index) + (factor - 1) // 2) % MODULUS for index in range(NUMBERS * size)
    ) % MODULUS  # fmt: skip


STAGES = (
    Stage("load", load, parallel=False, expected=lambda size: NUMBERS * size),
    Stage("compute", compute, parallel=True, expected=expected),
)
