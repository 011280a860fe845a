# SPDX-License-Identifier: Apache-2.0
"""Decisions about running jobs on the wire: new sets of nodes, quotas, requeues and extensions.

Rules
    1. `bridge.resizing` decides how a resize is carried out, and when the controller gets which
       message; this module writes the messages.
    2. A quota is sent when it differs from the last one sent. If the plan drops the quota of a
       running job, the removal is sent.
    3. A sentence on the change under way is sent when it changes. It is lost if the job's version
       has changed meanwhile.
    4. A guest is requeued once per run: the decision is sent again if the controller refused it, or
       has not answered for `REQUEUE_AGAIN_S`.
    5. The extension of a host's limit is sent when the plan's differs from the last one sent, and
       again if the report does not show it after `EXTEND_AGAIN_S`. It is absolute, so a repetition
       does no harm.
    6. After `reset` no quota and no sentence is known to the controller.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from bridge.model.decisions.extensions import whole_minutes_s
from bridge.model.decisions.quotas import USUAL_WEIGHT
from bridge.model.decisions.resizes import Resizes
from bridge.model.job import RunningTable
from bridge.model.plan import Plan
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.resizing.budgets import Budgets
from bridge.resizing.runtime import Runtime
from bridge.resizing.wishes import wished
from bridge.resizing.world import World
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.features import Feature
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.rpc.reported.safe_text import plain, printable

_NO_QUOTA = (0, USUAL_WEIGHT)
REQUEUE_AGAIN_S: Final = 30
EXTEND_AGAIN_S: Final = 30


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
        self._quotas: dict[str, tuple[int, int]] = {}
        self._requeued: dict[str, tuple[int, int]] = {}
        self._extended: dict[str, tuple[int, int]] = {}
        self._reported: Snapshot | None = None
        self._nodes_awaited = False
        self._progress_told: dict[str, str] = {}
        self._budgets = Budgets()
        self.runtime = runtime

    def reset(self) -> None:
        """Handles a restart of the controller."""
        self.runtime.reset()
        self._quotas.clear()
        self._requeued.clear()
        self._extended.clear()
        self._progress_told.clear()

    def close(self, result: pb.Fate, now_s: int) -> bool:
        """Reads a result; False if it belongs neither to a resize nor to a requeue."""
        applied = result.outcome == pb.OUTCOME_APPLIED
        for job_id, (decision, _) in list(self._requeued.items()):
            if decision == result.decision_id:
                if not applied:
                    del self._requeued[job_id]
                return True
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
        self,
        shown: Snapshot,
        plan: Plan,
        site: Site,
        nodes: NodeIndex,
        features: frozenset[str],
    ) -> list[pb.Decision]:
        """The messages to the controller about running jobs.

        Args:
            shown: what `overlay` returned.
        """
        found: list[pb.Decision] = []
        if Feature.RESIZE in features:
            found += self._resizes(shown, plan, site, nodes)
        if Feature.PROGRESS in features:
            found += self._progress(shown)
        if Feature.QUOTA in features:
            found += self._new_quotas(shown, plan)
        if Feature.SHARE in features:
            found += self._new_requeues(shown, plan)
        if Feature.EXTEND in features:
            found += self._new_extensions(shown, plan)
        return found

    def _new_extensions(self, snapshot: Snapshot, plan: Plan) -> list[pb.Decision]:
        """Extensions to be sent: changed ones, and those that the report does not show (rule 5)."""
        extensions, now_s = plan.extensions, snapshot.now_s
        if not len(extensions) and not self._extended:
            return []
        rows, found, sent = _rows(snapshot.running), [], {}
        for job_id, total_s in zip(
            extensions.id.tolist(), extensions.total_s.tolist(), strict=True
        ):
            if job_id not in rows:
                continue
            wanted_s = whole_minutes_s(total_s)
            before_s, at_s = self._extended.get(job_id, (0, 0))
            if wanted_s == before_s and abs(now_s - at_s) < EXTEND_AGAIN_S:
                sent[job_id] = before_s, at_s
                continue
            version = int(snapshot.running.version[rows[job_id]])
            message = pb.Decision(id=self._take_id(), job_id=job_id, job_version=version)
            message.extend.total_s = total_s
            sent[job_id] = wanted_s, now_s
            found.append(message)
        self._extended = sent
        return found

    def _new_requeues(self, snapshot: Snapshot, plan: Plan) -> list[pb.Decision]:
        """Requeues to be sent, once for each run (rule 4)."""
        rows, now_s = _rows(snapshot.running), snapshot.now_s
        self._requeued = {
            job_id: sent
            for job_id, sent in self._requeued.items()
            if job_id in rows and abs(now_s - sent[1]) < REQUEUE_AGAIN_S
        }
        found = []
        for job_id, reason in zip(plan.requeues.id.tolist(), plan.requeues.reasons, strict=True):
            if job_id in self._requeued or job_id not in rows:
                continue
            version = int(snapshot.running.version[rows[job_id]])
            message = pb.Decision(id=self._take_id(), job_id=job_id, job_version=version)
            message.requeue.reason = plain(reason)
            self._requeued[job_id] = message.id, now_s
            found.append(message)
        return found

    def _resizes(
        self, shown: Snapshot, plan: Plan, site: Site, nodes: NodeIndex
    ) -> list[pb.Decision]:
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

    def _progress(self, shown: Snapshot) -> list[pb.Decision]:
        """The sentences for `squeue` and `scontrol` that have changed: on resizes and on pairs."""
        found, now = [], dict(_pairs(shown.running))
        for change in self.runtime.changes:
            verb = "growing" if change.grows else "shrinking"
            text = f"{verb} from {len(change.before)} to {len(change.wanted)} nodes: {change.state}"
            now[change.job_id] = plain(text)
        rows = _rows(shown.running) if now or self._progress_told else {}
        for job_id in now.keys() | self._progress_told.keys():
            text, row = now.get(job_id, ""), rows.get(job_id)
            if row is not None and text != self._progress_told.get(job_id, ""):
                version = int(shown.running.version[row])
                message = pb.Decision(id=self._take_id(), job_id=job_id, job_version=version)
                message.progress.text = text
                found.append(message)
        self._progress_told = now
        return found

    def _new_quotas(self, snapshot: Snapshot, plan: Plan) -> list[pb.Decision]:
        running, quotas = snapshot.running, plan.quotas
        versions = {job_id: int(running.version[row]) for job_id, row in _rows(running).items()}
        wanted = {
            job_id: (quota, weight)
            for job_id, quota, weight in zip(
                quotas.id.tolist(), quotas.milli_cpus_per_node.tolist(), quotas.weight.tolist(),
                strict=True,
            )
        }  # fmt: skip
        found = []
        for job_id in sorted(wanted.keys() | self._quotas.keys()):
            quota, weight = now = wanted.get(job_id, _NO_QUOTA)
            if job_id not in versions:  # it ended, or starts now
                self._quotas.pop(job_id, None)
            elif now != self._quotas.get(job_id, _NO_QUOTA):
                self._quotas[job_id] = now
                message = pb.Decision(
                    id=self._take_id(), job_id=job_id, job_version=versions[job_id]
                )
                message.quota.milli_cpus_per_node, message.quota.weight = quota, weight
                found.append(message)
        return found


def _resizable(shown: Snapshot, reported: Snapshot, row: int) -> Snapshot:
    """A snapshot in which a held job may be resized on an operator's request."""
    minimum, maximum = shown.running.min_nodes.copy(), shown.running.max_nodes.copy()
    minimum[row], maximum[row] = reported.running.min_nodes[row], reported.running.max_nodes[row]
    return replace(shown, running=replace(shown.running, min_nodes=minimum, max_nodes=maximum))


def _pairs(running: RunningTable) -> Iterator[tuple[str, str]]:
    """The sentences for guests and hosts about each other, and for hosts whose limits grew."""
    guests_of: dict[str, list[str]] = {}
    longer = {
        str(running.id[row]): f"time limit {int(running.extended_s[row]) // 60} min longer: "
        for row in running.extended_s.nonzero()[0].tolist()
        if not running.host_id[row]
    }
    for row in running.host_id.nonzero()[0].tolist():
        guest, host = str(running.id[row]), str(running.host_id[row])
        guests_of.setdefault(host, []).append(guest)
        yield guest, plain(f"a guest on the nodes of job {host}")
    for host, guests in guests_of.items():
        who = "a guest, job" if len(guests) == 1 else f"{len(guests)} guests, jobs"
        yield host, plain(f"{longer.pop(host, '')}shares its nodes with {who} {', '.join(guests)}")
    for host, text in longer.items():
        yield host, plain(f"{text}guests shared its nodes")


def _rows(running: RunningTable) -> dict[str, int]:
    """Running jobs by their ids, without the rows of nodes that they are releasing."""
    releasing = running.releasing.tolist()
    return {job_id: row for row, job_id in enumerate(running.id.tolist()) if not releasing[row]}
