# SPDX-License-Identifier: Apache-2.0
"""The stage `share` of a policy: which jobs share nodes, and under which CPU quotas."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from bridge.extensions.sharing.longer_limits import NO_EXTENSIONS, Extensions
from bridge.extensions.sharing.part import NO_REQUEUES, GuestStart, Requeues
from bridge.extensions.sharing.quotas import NO_QUOTAS, Quotas
from bridge.model.learnt import Learnt
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.ports import Context
from bridge.units import NEVER


@dataclass(frozen=True)
class Shared:
    """The output of the stage.

    Attributes:
        quotas: quotas of guests that run, and of `guests`, by job id.
        requeues: guests that go back to the queue.
        extensions: hosts whose time limits are lengthened.
        learnt: as in `bridge.ports.Predicted`.
        again_s: when it wants to be asked again, event or not; NEVER: only after events.
        guests: that are to start, best first, on different hosts. Those that break a rule are left
            out.
        delays: guests may delay planned starts of others: the queue is planned again around them
            where they would break a rule otherwise. Then no guest is of a job with several rows.
    """

    quotas: Quotas = NO_QUOTAS
    requeues: Requeues = NO_REQUEUES
    extensions: Extensions = NO_EXTENSIONS
    learnt: Mapping[str, Learnt] = field(default_factory=dict)
    again_s: int = NEVER
    guests: Sequence[GuestStart] = ()
    delays: bool = False


NOTHING_SHARED: Final = Shared()


class SharePolicy(Protocol):
    """Decides which jobs share nodes."""

    def share(self, world: Callable[[], Snapshot], plan: Plan, context: Context) -> Shared:
        """Decides on guests: those that start, and those that run.

        Args:
            world: gives the cluster with running jobs resized as the plan says.

        Raises:
            PolicyError: the policy failed; the cycle falls back to the conservative plan.
        """
