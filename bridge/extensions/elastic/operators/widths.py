# SPDX-License-Identifier: Apache-2.0
"""The reasons for the widths of running malleable jobs, and the speed-ups of other widths.

Rules
    1. Reasons that forbid any change come first: a change under way, a limit, the launcher, an
       operator. Then comes the policy's reason of the last cycle.
    2. Codes and numbers are the policy's and the service's; this module makes the sentences.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from bridge.extensions.elastic.resizing.journal import JournalEntry, ResizeResult
from bridge.extensions.elastic.resizing.overlay import Shown
from bridge.model.decisions.width_reasons import WidthCode, WidthReason
from bridge.model.learnt import Learnt
from bridge.model.rules.resize_limits import ResizeBounds
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.observing import kept_of
from bridge.planning.malleable.speed import serial_fractions
from bridge.planning.malleable.speed_ups import AtWidth, curve
from bridge.rpc.pb import operator_pb2 as pb
from bridge.units import format_duration

MAX_POINTS: Final = 12

_TEXTS: Final = {
    WidthCode.NONE: "nothing is decided about it yet",
    WidthCode.GROWS: "grows to {nodes} nodes: they are idle",
    WidthCode.SHRINKS: "shrinks to {nodes} nodes: other jobs start on the rest",
    WidthCode.ADAPTING: "is changing its width",
    WidthCode.NO_LAUNCHER: "keeps its nodes: no launcher is attached (schedbridge run)",
    WidthCode.HELD: "keeps its nodes: it is held (schedbridge elastic hold --release)",
    WidthCode.RESTS: "keeps its nodes for {left}: its last change failed",
    WidthCode.ELSEWHERE: "keeps its nodes: its processes run on other nodes than it holds",
    WidthCode.TOO_SOON: "keeps its width for {left}: it was changed a moment ago",
    WidthCode.OTHER_ADAPTS: "keeps its width: another job is changing its own",
    WidthCode.ENDS_SOON: "keeps its width: it ends too soon for a change",
    WidthCode.WIDEST: "does not grow: it has the most nodes that it may have",
    WidthCode.NO_IDLE_NODES: "does not grow: no node that it could use is idle",
    WidthCode.PLANNED_NODES: "does not grow: waiting jobs are promised the idle nodes",
    WidthCode.TOO_FEW_NODES: "does not grow: too few nodes are idle for {nodes}, the next width"
    " that is worth a change",
    WidthCode.NO_GAIN: "does not grow: at no width would it recover the cost of the change",
    WidthCode.OTHERS_FIRST: "does not grow: other jobs get the idle nodes",
    WidthCode.RULE: "keeps its width: a limit, a FreePool, a protection or a reservation forbids"
    " the change",
    WidthCode.POLICY: "keeps its width: the policy resizes no running jobs",
}


def width_reason(
    job: Shown, row: int, snapshot: Snapshot, bounds: ResizeBounds, decided: WidthReason | None
) -> pb.WidthReason:
    """The reason for a job's width (rule 1).

    Args:
        row: the row of `Snapshot.running`.
        snapshot: the snapshot of the last cycle.
        bounds: the site's.
        decided: by the policy; None: nothing.
    """
    now_s = snapshot.now_s
    if job.state != "running":
        return _message(WidthReason(job.job_id, WidthCode.ADAPTING, len(job.target)), now_s)
    if why := bounds.never(row):
        return pb.WidthReason(code=pb.WIDTH_CODE_LIMIT, text=why)
    if not job.engine:
        found = WidthReason(job.job_id, WidthCode.NO_LAUNCHER)
    elif job.held:
        found = WidthReason(job.job_id, WidthCode.HELD)
    elif job.rests_until_s > now_s:
        found = WidthReason(job.job_id, WidthCode.RESTS, until_s=job.rests_until_s)
    elif job.strays:
        found = WidthReason(job.job_id, WidthCode.ELSEWHERE)
    else:
        found = decided or WidthReason(job.job_id, WidthCode.POLICY)
        maximum, why = bounds.maximum(row)
        if why and found.code in (WidthCode.WIDEST, WidthCode.POLICY):
            return pb.WidthReason(code=pb.WIDTH_CODE_LIMIT, nodes=maximum, text=why)
    return _message(found, now_s)


def _message(reason: WidthReason, now_s: int) -> pb.WidthReason:
    left = format_duration(max(reason.until_s - now_s, 0))
    text = _TEXTS[reason.code].format(nodes=reason.nodes, left=left)
    return pb.WidthReason(
        code=int(reason.code),  # type: ignore[arg-type]
        nodes=reason.nodes,
        until_s=reason.until_s,
        text=text,
    )


def last_resize(entry: JournalEntry | None) -> pb.LastResize | None:
    """The last ended resize of a job; None: there is none."""
    if entry is None:
        return None
    return pb.LastResize(
        from_nodes=entry.before,
        to_nodes=entry.after,
        outcome=entry.result.value,
        at_s=entry.at_s,
        lasted_s=entry.lasted_s,
        reason=entry.reason,
    )


def width_lines(job: pb.ElasticJob, now_s: int) -> list[str]:
    """The same as sentences, for `explain`."""
    found = [
        f"is malleable: {job.node_count} nodes now, {job.min_nodes} to {job.max_nodes} allowed"
    ]
    if job.width.text:
        found.append(job.width.text)
    if job.HasField("last"):
        found.append(last_line(job.last, now_s))
    return found


def last_line(last: pb.LastResize, now_s: int) -> str:
    """The last resize as a sentence."""
    ago = format_duration(max(now_s - last.at_s, 0))
    verb = "grow" if last.to_nodes > last.from_nodes else "shrink"
    why = f": {last.reason}" if last.reason else ""
    took = f" {last.lasted_s} s after it was decided," if last.HasField("lasted_s") else ""
    was = last.outcome if last.outcome == ResizeResult.FAILED else f"was {last.outcome}"
    change = f"{verb} from {last.from_nodes} to {last.to_nodes} nodes"
    return f"its last change, to {change}, {was}{took} {ago} ago{why}"


def speed_ups(
    snapshot: Snapshot, row: int, learnt: Learnt, *, minimum: int, maximum: int, mtct: float
) -> Iterable[pb.SpeedUp]:
    """Speed-ups at some of the widths that a job may have, its own among them.

    Args:
        snapshot: the snapshot of the last cycle.
        row: the row of `Snapshot.running`.
        minimum: minimum number of nodes.
        maximum: maximum number of nodes.
        mtct: as measured at its width; less than 0: not measured.
    """
    running = snapshot.running
    width = int(running.indptr[row + 1] - running.indptr[row])
    kept = kept_of(learnt, str(running.user[row]), str(running.name[row]))
    if mtct >= 0 and width > 1:  # present measurements come before earlier ones
        (serial,) = serial_fractions(np.array([mtct]), np.array([width])).tolist()
        kept = (*(at for at in kept if at.width != width), AtWidth(width, 1, serial))
    powers = [1 << bit for bit in range(21) if minimum <= 1 << bit <= maximum]
    known = [at.width for at in kept if minimum <= at.width <= maximum]
    chosen = sorted({minimum, width, maximum, *known, *powers[:MAX_POINTS]})
    while len(chosen) > MAX_POINTS:
        chosen.remove(next(each for each in chosen if each not in {minimum, width, maximum}))
    for point in curve(kept, chosen):
        yield pb.SpeedUp(width=point.width, speed_up=point.speed_up, source=point.source)
