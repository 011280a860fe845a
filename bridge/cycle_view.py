# SPDX-License-Identifier: Apache-2.0
"""The cycle under way: what its later stages know of the earlier ones, and whether a plan is legal.

See `bridge.extensions.port.CycleView`.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bridge.check.legality import Violation, check
from bridge.model.decisions.prediction import Prediction
from bridge.model.plan import Plan, planned_world
from bridge.model.snapshot import Snapshot
from bridge.planning.prediction.apply_predictions import starts_with_limits
from bridge.ports import Context, Planned, Policy, Preference


@dataclass(slots=True)
class CycleUnderWay:
    """One cycle, from its predictions on.

    Attributes:
        predicted: the same with predicted times.
        prediction: None: jobs are planned with their time limits.
        order: rows of the jobs, as the order stage gives them.
        preference: how nodes are chosen.
        changes: the plan whose changes of widths the rows are planned around.
    """

    snapshot: Snapshot
    predicted: Snapshot
    prediction: Prediction | None
    policy: Policy
    order: NDArray[np.int64]
    preference: Preference
    context: Context
    changes: Plan
    _worlds: list[Snapshot] = field(default_factory=list)

    def world(self) -> Snapshot:
        """The snapshot that the rows of the plan are planned around; made when first needed."""
        if not self._worlds:
            changes = self.changes
            self._worlds.append(
                planned_world(
                    self.predicted, changes.resizes, changes.returns, changes.start_widths
                )
            )
        return self._worlds[0]

    def planned_again(self, world: Snapshot) -> Planned:
        """Plans the same queue in another world."""
        return self.policy.plan.plan(world, self.order, self.preference, self.context)

    def violations_of(self, plan: Plan) -> tuple[Violation, ...]:
        """Returns what is illegal about a plan; its starts also under the full time limits."""
        found = check(self.predicted, self.context.site, plan)
        if self.prediction is None or found or not (len(plan.starts_now) or len(plan.resizes)):
            return found
        return check(self.snapshot, self.context.site, starts_with_limits(self.snapshot, plan))

    def is_legal(self, plan: Plan) -> bool:
        """Whether a plan keeps all rules."""
        return not self.violations_of(plan)
