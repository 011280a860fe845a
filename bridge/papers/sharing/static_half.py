# SPDX-License-Identifier: Apache-2.0
"""Two jobs on a node, each with half of the CPUs.

Rules
    1. Hosts are taken in the order of the running jobs. Each gets the first waiting job, in the
       order of the plan, that is admissible as its guest (first fit), then the next one on the
       remaining nodes, and so on. A guest starts on all its nodes at once; it has one host.
    2. While jobs wait, it requests another cycle soon after jobs have started, as these may be
    hosts.
    3. Other jobs planned on these nodes are planned again: their starts may move.
    4. A guest has a quota of half of each node's CPUs. Nothing is learnt, except who was requeued:
       `bridge.extensions.sharing.safety`.

Source: A. Souza, K. Pelckmans, J. Tordsson, A HPC co-scheduler with reinforcement learning,
JSSPP 2021, section 4: the setting "Static".
Deviates: in the paper the host has a quota of a half, too. Here only guests have quotas, so a host
can use all that its guest leaves. The site decides who may share and how much memory must be left
(docs/COSCHEDULING.md).
"""

from collections.abc import Callable
from dataclasses import dataclass

from bridge.extensions.sharing import left_hosts
from bridge.extensions.sharing.counting import has_guests
from bridge.extensions.sharing.orders import Orders, cpus_of
from bridge.extensions.sharing.safety import keep_safe
from bridge.extensions.sharing.slots import Slots
from bridge.extensions.sharing.stage_share import NOTHING_SHARED, Shared
from bridge.extensions.sharing.switch import off_since_s, send_away
from bridge.model.learnt import Learning
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.ports import Context
from bridge.units import NEVER

_HALF = 0.5


@dataclass(frozen=True)
class StaticHalf:
    """Half of the CPUs for every guest."""

    def share(self, world: Callable[[], Snapshot], plan: Plan, context: Context) -> Shared:
        """Starts guests, first fit; see `SharePolicy`."""
        snapshot = world()
        slots = Slots(snapshot, context.site, plan, delays=True)
        if not slots.open and not has_guests(snapshot.running):
            return NOTHING_SHARED
        off, orders = off_since_s(context.state) is not None, Orders(snapshot)
        kept = Learning(context.state.learnt_by(left_hosts.NAME))
        left = left_hosts.LeftHosts(kept, snapshot.now_s)
        for row in keep_safe(slots, orders, send_away(slots, orders, off=off), left):
            orders.limit(str(snapshot.running.id[row]), cpus_of(snapshot, row), _HALF)
        starts, taken = [], left.pausing(snapshot, plan)
        for host in () if off else slots.hosts:
            for guest in slots.first_fit(host, taken):
                starts.append(slots.start(guest))
                orders.limit(starts[-1].job_id, guest.cpus, _HALF)
        left.forget({*snapshot.running.id.tolist(), *snapshot.jobs.id.tolist()})
        return Shared(
            orders.quotas(),
            orders.requeues(),
            learnt={left_hosts.NAME: kept.done()},
            again_s=NEVER if off else slots.look_again_s,
            guests=starts,
            delays=True,
        )
