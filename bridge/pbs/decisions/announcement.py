# SPDX-License-Identifier: Apache-2.0
"""Shows decisions to a job's owner: comment and estimated start, in PBS's terms.

Rules
    1. A job that waits has the comment `Not Running: ...`, as under pbs_sched.
    2. A planned start is `estimated.start_time` and `estimated.exec_vnode`; the latter are the
       vnodes without amounts, which are decided when the job starts.
    3. A comment is one line of printable ASCII.
"""

from collections.abc import Mapping

from bridge.errors import BadRequest
from bridge.model import hostlist
from bridge.pbs.objects.exec_vnode import format_exec_vnode
from bridge.pbs.tables import Attributes
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.units import format_instant

MAX_COMMENT = 250
MAX_VNODES = 4096


def announcement(
    decision: pb.Decision, nodes: Mapping[str, tuple[str, ...]]
) -> tuple[str, Attributes]:
    """Returns the job, and the attributes that show a planned start or a reason.

    Args:
        decision: has a planned start, or a reason.
        nodes: nodes of the wire to their vnodes.
    """
    if decision.WhichOneof("action") == "planned_start":
        planned = decision.planned_start
        why = _sentence(planned.reason)
        when = f"expected to start {format_instant(planned.start_s)}"
        shown: Attributes = {"comment": _line(f"Not Running: {why}; {when}" if why else when)}
        estimated = {"start_time": str(planned.start_s)}
        if vnodes := _exec_vnode(planned.nodes, nodes):
            estimated["exec_vnode"] = vnodes
        shown["estimated"] = estimated
        return decision.job_id, shown
    return decision.job_id, {"comment": _line(f"Not Running: {_sentence(decision.pending)}")}


def _sentence(reason: pb.Pending) -> str:
    return reason.text or _CODES.get(reason.code, "")


_CODES = {
    pb.REASON_RESOURCES: "not enough free resources",
    pb.REASON_PRIORITY: "would delay a job before it",
    pb.REASON_LICENCES: "too few licences are free",
    pb.REASON_RESERVATION: "a reservation is in the way",
    pb.REASON_BEGIN_TIME: "its execution time (-a) has not come",
    pb.REASON_HELD: "held",
    pb.REASON_DEPENDENCY: "a dependency is not met",
    pb.REASON_LIMIT: "a limit is reached",
    pb.REASON_ARRAY_LIMIT: "as many tasks of the array run as may (max_run_subjobs)",
    pb.REASON_PARTITION: "its queue starts no jobs",
    pb.REASON_NEVER: "can never run: no set of vnodes has what it asks for",
    pb.REASON_BAD_REQUEST: "its request cannot be met",
    pb.REASON_REFUSED: "the server refused it",
    pb.REASON_MAINTENANCE: "a reservation for maintenance is in the way",
    pb.REASON_NODES_DOWN: "vnodes that it asks for are down",
    pb.REASON_POWER: "would draw more power than the site allows",
}


def _line(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text[:MAX_COMMENT]
    clean = "".join(letter if 32 <= ord(letter) < 127 else "?" for letter in text)
    return clean[:MAX_COMMENT]


def _exec_vnode(listed: str, nodes: Mapping[str, tuple[str, ...]]) -> str:
    try:
        named = hostlist.expand(listed) if listed else []
    except ValueError:
        return ""
    vnodes = [nodes[node][0] for node in named[:MAX_VNODES] if nodes.get(node)]
    try:
        return format_exec_vnode([[(vnode, {})] for vnode in vnodes], {}) if vnodes else ""
    except BadRequest:
        return ""
