# SPDX-License-Identifier: Apache-2.0
"""The entries of a corridor of power: the site's calendar, and those of operators.

An entry names a lower bound, an upper bound or both. A bound that it does not name is that of the
entries below it; `bridge.extensions.power.corridor.resolve` has the rule.
"""

from dataclasses import dataclass

from bridge.model.rules.limits import ALWAYS, Validity
from bridge.units import NEVER

MAX_W = 10**12
"""A terawatt: no site draws more."""


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """Bounds that the configuration states, in force at certain times.

    Attributes:
        name: for display.
        lower_w: W; None: not named.
        upper_w: W; `NO_UPPER_W`: none, whatever is below; None: not named.
    """

    name: str = ""
    lower_w: int | None = None
    upper_w: int | None = None
    validity: Validity = ALWAYS


@dataclass(frozen=True, slots=True)
class OperatorEntry:
    """Bounds that were entered while the service runs, in force in [start_s, end_s).

    Attributes:
        id: number in order of entry: of two in force, the larger one counts.
        origin: the operators' socket, the signal file, or demand response.
        group: entries that are added and removed together; empty: it has no group.
        reason: for display; may be empty.
        end_s: end; `NEVER`: until it is removed.
        lower_w, upper_w: as in `CalendarEntry`.
        removed_s: when it was removed; 0: it is not removed.
    """

    id: int
    author: str
    origin: str
    entered_s: int
    start_s: int
    end_s: int = NEVER
    lower_w: int | None = None
    upper_w: int | None = None
    reason: str = ""
    group: str = ""
    removed_s: int = 0
    removed_by: str = ""

    def stands_at(self, instant_s: int) -> bool:
        """Whether it is in force, or will be."""
        return not self.removed_s and self.end_s > instant_s
