# SPDX-License-Identifier: Apache-2.0
"""Backfilling with a reservation depth: EASY is depth 1, conservative is no bound.

Terms
    depth       how many waiting jobs get a planned start (a reservation in the literature) that
                later jobs must not delay.
    row         one job, or one task of an array; tasks are planned like jobs.

Rules, for the rows in the order given
    1. A row that fits now for its whole time limit, in addition to everything running and booked
       before it, starts now and is booked.
    2. Otherwise, while fewer than `depth` rows hold a planned start, it is booked at its earliest
       feasible start.
    3. Beyond the depth a row is not booked. It starts now or waits.
    4. Held jobs, and jobs with unfulfilled dependencies or exhausted limits, book nothing. A job
       with a begin time is planned from that time on.
    5. Of an array, as many tasks are planned as its own limit allows, at most `array_depth`.
    6. Jobs with a fixed start are booked first, whatever the depth. A row that cannot meet its
       deadline or fixed start books nothing (`bridge.planning.scheduler.list_scheduler`).
    7. Limits, FreePools and protections of the site hold at every second.

Source: Lifka, JSSPP 1995 (EASY); Mu'alem and Feitelson, TPDS 12(6), 2001 (conservative).
Deviates: the plan is recomputed in every cycle ("compression"), so that an early end can move all
later starts forward, not only the first.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.model.snapshot import Snapshot
from bridge.planning.scheduler.queue_planner import QueuePlanner
from bridge.ports import Context, Planned, Preference


@dataclass(frozen=True)
class Backfill(QueuePlanner):
    """Plans each job at its earliest start; the first `depth` planned starts are not delayed.

    Attributes:
        depth: planned starts held at a time; None: all.
        array_depth: tasks of one array planned at a time.
    """

    depth: int | None = None

    name: ClassVar[str] = "backfill"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.depth is not None and self.depth < 0:
            raise ConfigError("depth", f"must be 0 or more, or null for no bound, not {self.depth}")

    @property
    def whole_queue(self) -> bool:
        """True only without a depth."""
        return self.depth is None

    def planned(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        preference: Preference,
        context: Context,
    ) -> Planned:
        """Plans the rows one after the other; deterministic and without state."""
        scheduler = self.list_scheduler(snapshot, order, preference, context)
        scheduler.decode(depth=self.depth)
        return Planned(scheduler.plan(self.name))
