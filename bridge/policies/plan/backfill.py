# SPDX-License-Identifier: Apache-2.0
"""Backfilling with a reservation depth: EASY is depth 1, conservative is no bound.

Words
    depth       how many waiting jobs get a planned start (a reservation in the literature) that
                later jobs must not delay.
    row         one job, or one task of an array: tasks are planned as jobs of their own.

Rules, for the rows in the order given
    1. What fits now for its whole time limit, beside everything running and everything booked
       before it, starts now and is booked.
    2. Otherwise, while fewer than `depth` rows hold a planned start, it is booked at its earliest
       feasible start.
    3. Beyond the depth a row is not booked. It starts now or waits.
    4. Held jobs, and jobs with unfulfilled dependencies or spent limits, book nothing. A job that
       must not begin before a time is planned from that time on.
    5. Of an array as many tasks are planned as its own limit lets start, at most `array_depth`.
    6. Jobs with a fixed start are booked first, whatever the depth. A row that could only start too
       late for its deadline or fixed start holds no place (`bridge.planning.decoder`).
    7. Limits, FreePools and protections of the site hold at every second.

Source: Lifka, JSSPP 1995 (EASY); Mu'alem and Feitelson, TPDS 12(6), 2001 (conservative).
Deviates: the plan is made anew in every cycle ("compressed"), so an early end moves every later
start forward, not only the first one's.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError, PolicyError
from bridge.model.limits import Rules
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.conditions import Conditions, check_protection
from bridge.planning.decoder import Decoder
from bridge.planning.rules_text import parse_rules
from bridge.ports import Memory, Preference


@dataclass(frozen=True)
class Backfill:
    """Plans each job at its earliest start; the first `depth` of them may not be delayed.

    Attributes:
        depth: planned starts held at a time; None: all.
        array_depth: tasks of one array planned at a time.
        rules: limits and FreePools, as the section `planning` of the configuration has them.
        protect: resource to what each node that has it keeps for jobs that want it, by resource:
            `{gpu: {cpus: 2}}` keeps two CPUs of every GPU node for jobs with GPUs.
    """

    depth: int | None = None
    array_depth: int = 1000
    rules: dict[str, Any] | None = None
    protect: dict[str, Any] | None = None
    _rules: Rules = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.depth is not None and self.depth < 0:
            raise ConfigError("depth", f"must be 0 or more, or null for no bound, not {self.depth}")
        if self.array_depth < 1:
            raise ConfigError("array_depth", f"must be 1 or more, not {self.array_depth}")
        check_protection(self.protect)
        object.__setattr__(self, "_rules", parse_rules(self.rules, "rules"))

    @property
    def conditions(self) -> Conditions:
        """What the plan is held to, for questions of what would be otherwise."""
        return Conditions(rules=self._rules, protect=self.protect, whole_queue=self.depth is None)

    def plan(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        preference: Preference,
        memory: Memory,
        rng: np.random.Generator,
    ) -> Plan:
        """Plans all pending jobs; see `bridge.ports.PlanPolicy`."""
        del memory, rng  # greedy: nothing to remember, nothing left to chance
        try:
            decoder = Decoder(
                snapshot, order, preference, self.conditions, array_depth=self.array_depth
            )
            decoder.decode(depth=self.depth)
            return decoder.plan("backfill")
        except ValueError as error:
            raise PolicyError("backfill", str(error)) from error
