# SPDX-License-Identifier: Apache-2.0
"""Running malleable jobs for operators and users: their states, and orders."""

from dataclasses import replace

import numpy as np

from bridge.errors import ControllerError
from bridge.extensions.elastic.operators.widths import last_resize, speed_ups, width_reason
from bridge.extensions.elastic.resizing.overlay import Shown
from bridge.model.job import WidthRule
from bridge.model.learnt import Learnt
from bridge.model.rules.resize_limits import ResizeBounds
from bridge.model.snapshot import Snapshot
from bridge.rpc.controller.cycles import Cycles
from bridge.rpc.pb import operator_pb2 as pb

_KEEPING = {
    pb.ChangeWidthRequest.KEEPING_HOLD: True,
    pb.ChangeWidthRequest.KEEPING_RELEASE: False,
}


def elastic_reply(cycles: Cycles, agents: int, learnt: Learnt | None = None) -> pb.ElasticReply:
    """All running malleable jobs as of the last report.

    Args:
        cycles: the service's.
        agents: nodes that have one.
        learnt: what is known of speed-ups; None: nothing.
    """
    published = cycles.published
    reply = pb.ElasticReply(agents=agents)
    if published is None:
        return reply
    reply.now_s = published.snapshot.now_s
    index = published.snapshot.nodes.index
    rows = _rows(published.snapshot)
    bounds = ResizeBounds(published.snapshot, cycles.site.resizes)
    reasons = {reason.job_id: reason for reason in published.plan.widths}
    for job in cycles.resizing.shown:
        here, there = (
            published.nodes.fold(
                np.array([index[name] for name in names if name in index], dtype=np.int32)
            )
            for names in (job.nodes, job.target)
        )
        reply.jobs.append(_job(job, here, there))
        if (row := rows.get(job.job_id)) is None:
            continue
        message = reply.jobs[-1]
        message.never = bounds.never(row)
        width = width_reason(job, row, published.snapshot, bounds, reasons.get(job.job_id))
        message.width.CopyFrom(width)
        if (last := last_resize(cycles.resizing.journal.last.get(job.job_id))) is not None:
            message.last.CopyFrom(last)
        message.speed_ups.extend(
            speed_ups(
                published.snapshot, row, learnt or Learnt(),
                minimum=job.min_nodes, maximum=job.max_nodes, mtct=job.mtct,
            )
        )  # fmt: skip
    return reply


def _rows(snapshot: Snapshot) -> dict[str, int]:
    running = snapshot.running
    rows = np.flatnonzero(~running.releasing).tolist()
    return dict(zip(running.id[rows].tolist(), rows, strict=True))


def _job(job: Shown, nodes: str, target: str) -> pb.ElasticJob:
    return pb.ElasticJob(
        job_id=job.job_id,
        user=job.user,
        nodes=nodes,
        node_count=len(job.nodes),
        min_nodes=job.min_nodes,
        max_nodes=job.max_nodes,
        rule="" if job.rule == WidthRule.ANY else job.rule.name.lower(),
        engine=job.engine,
        state=job.state,
        until_s=job.until_s,
        target_count=len(job.target),
        target_nodes=target,
        reason=job.reason,
        held=job.held,
        rests_until_s=job.rests_until_s,
        mtct=job.mtct if job.mtct >= 0 else None,
        mtct_estimate=job.mtct_estimate if job.mtct < 0 <= job.mtct_estimate else None,
    )


def change_width(cycles: Cycles, request: pb.ChangeWidthRequest, *, user: str, uid: str) -> None:
    """Carries out an order with the next cycle.

    Args:
        cycles: the service's.
        request: the order.
        user: the caller; empty: an administrator.

    Raises:
        ControllerError: the order is impossible.
    """
    with cycles.lock:
        if request.width:
            _within_limits(cycles, request.job_id, request.width, user)
        cycles.resizing.ask(
            request.job_id, user, uid=uid, hold=_KEEPING.get(request.keeping), width=request.width
        )


def _within_limits(cycles: Cycles, job_id: str, wanted: int, user: str) -> None:
    published = cycles.published
    row = None if published is None else _rows(published.snapshot).get(job_id)
    if published is None or row is None or user not in ("", published.snapshot.running.user[row]):
        return  # which is refused for other reasons
    snapshot, running = published.snapshot, published.snapshot.running
    may = running.max_nodes.copy()  # of a job that is held: what it may have by itself
    may[row] = next((job.max_nodes for job in cycles.resizing.shown if job.job_id == job_id), 0)
    world = replace(snapshot, running=replace(running, max_nodes=may))
    maximum, why = ResizeBounds(world, cycles.site.resizes, order=not user).maximum(row)
    width = int(running.indptr[row + 1] - running.indptr[row])
    if why and (not maximum or wanted > max(maximum, width)):
        raise ControllerError(f"job {job_id} {why}")
