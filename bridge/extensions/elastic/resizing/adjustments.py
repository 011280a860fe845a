# SPDX-License-Identifier: Apache-2.0
"""Resizes on the wire: new sets of nodes of running jobs.

Rules
    1. `runtime.py` decides how a resize is carried out, and when the controller gets which message;
       this module writes the messages.
    2. While no running job may change its width, and nothing has to be forgotten of jobs that
       might, it is idle (`Runtime.is_idle`): the caller calls nothing.
"""

from collections.abc import Callable
from dataclasses import replace

from bridge.extensions.elastic.resizing.budgets import Budgets
from bridge.extensions.elastic.resizing.runtime import Runtime
from bridge.extensions.elastic.resizing.wishes import wished
from bridge.extensions.elastic.resizing.world import World
from bridge.model.decisions.resizes import Resizes
from bridge.model.plan import Plan
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.rpc.reported.safe_text import plain, printable


class Adjustments:
    """The changes of running jobs for one controller.

    Attributes:
        runtime: carries resizes out.
    """

    def __init__(self, take_id: Callable[[], int], runtime: Runtime) -> None:
        """Begins without any.

        Args:
            take_id: gives the number of the next decision.
            runtime: carries resizes out.
        """
        self._take_id = take_id
        self._reported: Snapshot | None = None
        self._nodes_awaited = False
        self._budgets = Budgets()
        self.runtime = runtime

    def reset(self) -> None:
        """Handles a restart of the controller."""
        self.runtime.reset()

    def close(self, result: pb.Fate, now_s: int) -> bool:
        """Reads a result; False if it does not belong to a resize."""
        applied = result.outcome == pb.OUTCOME_APPLIED
        busy = result.outcome == pb.OUTCOME_BUSY
        text = printable(result.text)
        return self.runtime.answered(
            result.decision_id, now_s, applied=applied, busy=busy, text=text
        )

    def overlay(self, snapshot: Snapshot, *, nodes_awaited: bool = False) -> Snapshot:
        """The snapshot with what is under way.

        Args:
            nodes_awaited: a waiting job may be about to get idle nodes, so no running job gets any
                in this cycle.
        """
        self._nodes_awaited = nodes_awaited
        self._reported = snapshot
        self.runtime.see(snapshot)
        self._budgets.see(snapshot)
        return self.runtime.overlay(snapshot)

    def decide(
        self, shown: Snapshot, plan: Plan, site: Site, nodes: NodeIndex
    ) -> list[pb.Decision]:
        """The messages to a controller that can resize.

        Args:
            shown: what `overlay` returned.
        """
        snapshot = self._reported or shown
        world = World(snapshot)
        self._begin(world, snapshot, plan.resizes)
        for job_id, width, order in self._wishes(world, shown):
            row = world.row(job_id)
            requested = _resizable(shown, snapshot, row)
            resizes = wished(requested, site, plan, row, width, order=order)
            if len(resizes):
                del self.runtime.wishes[job_id]
                self._begin(world, snapshot, resizes)
                break  # the next one is judged with this one under way
        found = []
        for send in self.runtime.sends(world):
            message = pb.Decision(
                id=self._take_id(), job_id=send.change.job_id, job_version=send.version
            )
            message.resize.nodes = nodes.fold(world.indexes(send.nodes))
            message.resize.by_s = send.change.by_s
            message.resize.reason = send.change.reason
            row = world.row(send.change.job_id)
            message.resize.end_s = self._budgets.end_s(snapshot, row, len(send.nodes))
            send.change.decision = message.id
            found.append(message)
        return found

    def _wishes(self, world: World, shown: Snapshot) -> list[tuple[str, int, bool]]:
        """The requests of operators for jobs without a change under way."""
        adapting = shown.running.adapting
        begun = {change.job_id for change in self.runtime.changes}
        found = []
        for job_id, (width, order) in list(self.runtime.wishes.items()):
            if job_id not in world or len(world.nodes(job_id)) == width:
                del self.runtime.wishes[job_id]
            elif job_id not in begun and not adapting[world.row(job_id)]:
                found.append((job_id, width, order))
        return found

    def _begin(self, world: World, snapshot: Snapshot, resizes: Resizes) -> None:
        for row, job in enumerate(resizes.job.tolist()):
            held = world.nodes(str(snapshot.running.id[job]))
            if self._nodes_awaited and len(resizes.nodes_of(row)) > len(held):
                continue
            self.runtime.begin(
                world,
                str(snapshot.running.id[job]),
                tuple(snapshot.nodes.names[node] for node in resizes.nodes_of(row).tolist()),
                by_s=int(resizes.by_s[row]),
                end_s=int(resizes.end_s[row]),
                reason=plain(resizes.reasons[row]),
            )

    def sentences(self) -> dict[str, str]:
        """What users see of the changes under way, by job id."""
        found = {}
        for change in self.runtime.changes:
            verb = "growing" if change.grows else "shrinking"
            text = f"{verb} from {len(change.before)} to {len(change.wanted)} nodes: {change.state}"
            found[change.job_id] = plain(text)
        return found


def _resizable(shown: Snapshot, reported: Snapshot, row: int) -> Snapshot:
    """A snapshot in which a held job may be resized on an operator's request."""
    minimum, maximum = shown.running.min_nodes.copy(), shown.running.max_nodes.copy()
    minimum[row], maximum[row] = reported.running.min_nodes[row], reported.running.max_nodes[row]
    return replace(shown, running=replace(shown.running, min_nodes=minimum, max_nodes=maximum))
