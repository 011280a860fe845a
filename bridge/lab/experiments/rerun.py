# SPDX-License-Identifier: Apache-2.0
"""Whether a result came out again: the differences between two results.

What a clock measures (times of decisions, CPU time) differs in every run and is left out.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bridge.lab.experiments.results import COLUMNS, JobColumns

_MEASURED: Final = ("decision_ms", "cpu_s", "wall_s")
_RELATIVE: Final = 1e-12


@dataclass(frozen=True)
class Difference:
    """A value that did not come out again."""

    measure: str
    before: object
    after: object

    def __str__(self) -> str:
        return f"{self.measure}: {_shown(self.before)}, now {_shown(self.after)}"


def differences(before: Any, after: Any, name: str = "") -> Iterator[Difference]:
    """Values of `before` and `after` that are not the same.

    Args:
        before: JSON value, as kept.
        after: JSON value, of now.
    """
    if any(part.startswith(_MEASURED) for part in name.split(".")):
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in [*before, *(key for key in after if key not in before)]:
            inner = f"{name}.{key}" if name else str(key)
            yield from differences(before.get(key), after.get(key), inner)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from differences(old, new, f"{name}.{number}" if name else str(number))
    elif not _same(before, after):
        yield Difference(name, before, after)


def differing_jobs(before: JobColumns, after: JobColumns) -> Iterator[Difference]:
    """For each column the number of jobs whose value is not the same."""
    if len(before) != len(after):
        yield Difference("jobs that ended", len(before), len(after))
        return
    for name in COLUMNS:
        old, new = getattr(before, name), getattr(after, name)
        if other := int(np.sum(old != new)):
            at = int(np.flatnonzero(old != new)[0])
            yield Difference(
                f"{name} of {other:,} of {len(before):,} jobs, first of job {before.id[at]}",
                old[at].item(),
                new[at].item(),
            )


def _same(before: object, after: object) -> bool:
    if isinstance(before, int | float) and isinstance(after, int | float):
        return math.isclose(before, after, rel_tol=_RELATIVE) or before == after
    return before == after


def _shown(value: object) -> str:
    return "nothing" if value is None else f"{value!s:.80}"
