# SPDX-License-Identifier: Apache-2.0
"""The cost of a change of width in simulations.

Terms
    goes on     the job computes on its former nodes: new processes start, or the program has not
                reached its next probe.
    still       it makes no progress: processes connect or leave, data are redistributed.
    after       it computes on its new nodes, but the change is not complete: leaving processes end,
                the controller takes their nodes back. The job is not resized meanwhile.

Rules
    1. A growing job holds its new nodes from the beginning and computes on them after `still`.
    2. A shrinking job computes on its fewer nodes after `still`; the others are free at the end.
    3. Each time is a line in the larger of the two numbers of nodes, not below 0.

`JOIN` is the engine of that name of `schedbridge run` (docs/design/0009), fitted to changes by one
node, from 1 to 32 nodes, of a program that redistributes 8 MiB: `benchmarks/change_costs.py` makes
the coefficients of `benchmarks/results/adaptation.json`, with intervals. More nodes, more data, and
changes by several nodes are not measured: the lines are continued.
"""

import math
from dataclasses import dataclass
from typing import Final

from bridge.errors import ConfigError

LONGEST_S: Final = 86_400.0


@dataclass(frozen=True)
class CostLine:
    """Seconds by number of nodes.

    Attributes:
        base_s: beside what each node adds.
    """

    base_s: float
    node_s: float = 0.0

    def at(self, nodes: int) -> float:
        """The time on so many nodes, >= 0."""
        return max(self.base_s + self.node_s * nodes, 0.0)


@dataclass(frozen=True)
class ChangeTimes:
    """One change of width; see Words. All in s."""

    goes_on_s: float
    still_s: float
    after_s: float

    @property
    def whole_s(self) -> int:
        """Until it is over, in whole seconds, at least one."""
        return max(math.ceil(self.goes_on_s + self.still_s + self.after_s - 1e-9), 1)


@dataclass(frozen=True)
class Times:
    """The times of changes in one direction, by the larger number of nodes."""

    goes_on: CostLine
    still: CostLine
    after: CostLine

    def at(self, nodes: int) -> ChangeTimes:
        return ChangeTimes(self.goes_on.at(nodes), self.still.at(nodes), self.after.at(nodes))


@dataclass(frozen=True)
class ChangeCosts:
    growing: Times
    shrinking: Times

    def of(self, before: int, after: int) -> ChangeTimes:
        """The cost of a change from one number of nodes to another."""
        times = self.growing if after > before else self.shrinking
        return times.at(max(before, after))


JOIN: Final = ChangeCosts(
    Times(CostLine(0.188, 0.0067), CostLine(0.0, 0.0111), CostLine(0.099, 0.0018)),
    Times(CostLine(0.098, 0.0009), CostLine(0.0, 0.0055), CostLine(0.236, 0.0144)),
)
ENGINES: Final = {"join": JOIN}


def flat(whole_s: float, still_s: float | None = None) -> ChangeCosts:
    """The same for all changes.

    Args:
        whole_s: until a change is over. A growing job goes on at first, a shrinking one at the end.
        still_s: how long the job stands still of that; None: all the time, in whole seconds.

    Raises:
        ConfigError: impossible times.
    """
    if still_s is None:
        still_s = whole_s = math.ceil(whole_s) if math.isfinite(whole_s) else whole_s
    if not (0 <= still_s <= whole_s <= LONGEST_S):
        raise ConfigError(
            "change-cost", f"needs 0 <= STILL <= WHOLE <= {LONGEST_S:.0f} s, not"
            f" {whole_s:g} and {still_s:g}"
        )  # fmt: skip
    still, rest, none = CostLine(still_s), CostLine(whole_s - still_s), CostLine(0.0)
    return ChangeCosts(Times(rest, still, none), Times(none, still, rest))


def parse_change_cost(text: str) -> ChangeCosts:
    """Reads `join`, `WHOLE` or `WHOLE:STILL` (s, see `flat`).

    Raises:
        ConfigError: it is none of these.
    """
    if text in ENGINES:
        return ENGINES[text]
    whole, colon, still = text.partition(":")
    try:
        times = float(whole), (float(still) if colon else None)
    except ValueError as error:
        raise ConfigError(
            "change-cost", f"'{text:.40}': give join, or seconds: WHOLE or WHOLE:STILL"
        ) from error
    return flat(*times)
