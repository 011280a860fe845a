# SPDX-License-Identifier: Apache-2.0
"""Running jobs as shown to planning and users while resizes are under way.

Rules
    1. A job with a change under way is adapting: it is shown with the nodes that it will have, and
       those that it gives back are being released. So nothing is planned on nodes that are not free
       yet or are promised.
    2. A job keeps its nodes while it has no launcher, while it rests after a failure, while an
       operator holds it, and if its launcher names other nodes than the controller.
    3. A launcher may narrow the bounds of its job, not widen them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from bridge.extensions.elastic.resizing.changes import OpenResizes
from bridge.extensions.elastic.resizing.launchers import LauncherReport, Launchers, Names
from bridge.extensions.elastic.resizing.world import World
from bridge.model.decisions.resizes import Resizes, resized
from bridge.model.job import WidthRule
from bridge.model.snapshot import Snapshot


@dataclass(frozen=True)
class Shown:
    """A running malleable job, for display.

    Attributes:
        min_nodes, max_nodes: that it may hold.
        rule: which numbers of nodes between them are allowed.
        engine: the engine of its launcher; empty: none is attached, so the job keeps its nodes.
        state: the state of its change; "running" without one.
        target: nodes that it will hold.
        until_s: the state's deadline, Unix seconds; 0: none.
        held: an operator keeps its nodes.
        rests_until_s: it keeps its nodes until then, because a change failed; 0: it does not.
        reason: the reason of the change, or of the last failure.
        strays: its processes run on other nodes than it holds.
        mtct: time in MPI over computing time at its width, as measured; -1: unknown.
        mtct_estimate: by CPU time, for display; -1: unknown.
    """

    job_id: str
    user: str
    nodes: Names
    min_nodes: int
    max_nodes: int
    rule: WidthRule
    engine: str
    state: str
    target: Names
    until_s: int
    held: bool
    rests_until_s: int
    reason: str
    mtct: float = -1.0
    mtct_estimate: float = -1.0
    strays: bool = False


def shown_jobs(
    snapshot: Snapshot,
    world: World,
    changes: OpenResizes,
    launchers: Launchers,
    held: Collection[str],
) -> tuple[Shown, ...]:
    """All running malleable jobs, for display.

    Args:
        changes: under way.
        held: jobs that operators keep as they are.
    """
    found, running = [], snapshot.running
    for job_id in world.malleable():
        row, user, nodes = world.row(job_id), world.user(job_id), world.nodes(job_id)
        attached = launchers.attached(job_id, user)
        change = changes.under_way.get(job_id)
        rest = changes.resting.get(job_id)
        found.append(
            Shown(
                job_id=job_id,
                user=user,
                nodes=nodes,
                min_nodes=max(int(running.min_nodes[row]), 1),
                max_nodes=int(running.max_nodes[row]),
                rule=WidthRule(int(running.width_rule[row])),
                engine="" if attached is None else attached.engine or "unknown",
                state=change.state.value if change else "running",
                target=change.target if change else nodes,
                until_s=change.until_s if change else 0,
                held=job_id in held,
                rests_until_s=rest[1] + changes.deadlines.rest_s if rest else 0,
                reason=change.reason if change else changes.reasons.get(job_id, ""),
                mtct=launchers.mtct(job_id, user),
                mtct_estimate=launchers.mtct(job_id, user, estimate=True),
                strays=_strays(attached, nodes),
            )
        )
    return tuple(found)


def overlaid(
    snapshot: Snapshot,
    world: World,
    changes: OpenResizes,
    launchers: Launchers,
    shown: Sequence[Shown],
) -> Snapshot:
    """The snapshot for planning.

    Args:
        changes: under way.
        shown: what `shown_jobs` returned.
    """
    running = snapshot.running
    adapting = running.adapting.copy()
    minimum, maximum = running.min_nodes.copy(), running.max_nodes.copy()
    mtct, resized_s = running.mtct.copy(), running.resized_s.copy()
    begun = running.user_resizes.copy()
    rows, end_s = [], {}
    changed = False
    for job in shown:
        row = world.row(job.job_id)
        if job.mtct >= 0:
            mtct[row], changed = job.mtct, True
        if since_s := changes.resize_times.of_job(job.job_id):
            resized_s[row], changed = since_s, True
        if times := changes.resize_times.of_user(job.user):
            begun[row], changed = times, True
        attached = launchers.attached(job.job_id, job.user)
        change = changes.under_way.get(job.job_id)
        if change is not None:
            adapting[row] = changed = True
            end_s[row] = change.end_s
            by_s = max(change.by_s, world.now_s + 1)
            rows.append((row, by_s, world.indexes(change.target), change.reason))
        elif attached is None or job.job_id in changes.resting or job.held or job.strays:
            maximum[row], changed = 0, True
        elif attached.min_nodes or attached.max_nodes:
            minimum[row] = max(minimum[row], attached.min_nodes)
            maximum[row] = min(maximum[row], attached.max_nodes or maximum[row])
            maximum[row] = maximum[row] if minimum[row] <= maximum[row] else 0
            changed = True
    if not changed:
        return snapshot
    table = replace(
        running, adapting=adapting, min_nodes=minimum, max_nodes=maximum, mtct=mtct,
        resized_s=resized_s, user_resizes=begun,
    )  # fmt: skip
    return resized(replace(snapshot, running=table), Resizes.of(rows, end_s))


def _strays(attached: LauncherReport | None, nodes: Names) -> bool:
    """Whether a job's processes run on other nodes than it holds."""
    return attached is not None and attached.nodes is not None and {*attached.nodes} != {*nodes}
