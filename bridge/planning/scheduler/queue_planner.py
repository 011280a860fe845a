# SPDX-License-Identifier: Apache-2.0
"""The common base of plan policies: depth of arrays, conditions on plans, and failures.

A plan policy is a frozen dataclass whose fields are its parameters, with the one method `planned`:

    @dataclass(frozen=True)
    class Everything(QueuePlanner):
        name: ClassVar[str] = "everything"

        def planned(self, snapshot, order, preference, context):
            scheduler = self.list_scheduler(snapshot, order, preference, context)
            scheduler.schedule()
            return Planned(scheduler.plan(self.name))
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError, PolicyError
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.planning.scheduler.list_scheduler import ListScheduler
from bridge.ports import Conditions, Context, Planned, Preference


@dataclass(frozen=True)
class QueuePlanner(ABC):
    """Plans the queue in the order given; subclasses define how.

    Attributes:
        array_depth: tasks of one array planned at a time.
    """

    array_depth: int = 1000

    name: ClassVar[str]
    """As registered."""

    def __post_init__(self) -> None:
        if self.array_depth < 1:
            raise ConfigError("array_depth", f"must be 1 or more, not {self.array_depth}")

    @property
    def whole_queue(self) -> bool:
        """Whether every row that can be placed is, however low its priority."""
        return True

    def conditions(self, site: Site) -> Conditions:
        """The conditions that plans must meet."""
        return Conditions(site, whole_queue=self.whole_queue)

    def list_scheduler(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        preference: Preference,
        context: Context,
    ) -> ListScheduler:
        """A scheduler of the queue, in this order or another."""
        conditions = self.conditions(context.site)
        return ListScheduler(snapshot, order, preference, conditions, array_depth=self.array_depth)

    def plan(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        preference: Preference,
        context: Context,
    ) -> Planned:
        """Plans all pending jobs; see `bridge.ports.PlanPolicy`."""
        try:
            return self.planned(snapshot, order, preference, context)
        except ValueError as error:
            raise PolicyError(self.name, str(error)) from error

    @abstractmethod
    def planned(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        preference: Preference,
        context: Context,
    ) -> Planned:
        """Plans all pending jobs.

        Raises:
            PolicyError: it cannot.
            ValueError: a kernel refuses a column of the snapshot; the text names it.
        """
