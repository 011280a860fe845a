# SPDX-License-Identifier: Apache-2.0
"""The queries of operators and users, as functions of a frozen view: status, plan, explain etc.

None of them blocks or calls the service's process: see `bridge.rpc.operators.server`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import grpc
from google.protobuf.message import Message

from bridge.planning.site_rules.lowered_rules import unknown_to
from bridge.registry import SIMULATION_ONLY, choices, left_out, summaries
from bridge.rpc.controller.cycles import Published
from bridge.rpc.operators.explain import WhatIf, explain, planned_jobs
from bridge.rpc.operators.topology_view import topology_reply
from bridge.rpc.operators.view import View
from bridge.rpc.pb import operator_pb2 as pb
from bridge.units import NEVER, UNPLANNED

MAX_READ = 10_000
"""Most jobs of the plan in one reply to an ordinary user."""


class Refused(Exception):
    """The query is refused.

    Attributes:
        text: for display.
    """

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def refuse(code: grpc.StatusCode, text: str) -> NoReturn:
    """Says no."""
    raise Refused(code, text)


def published_of(view: View) -> Published:
    """The last cycle; refused if there was none."""
    if view.published is None:
        refuse(grpc.StatusCode.NOT_FOUND, "the controller has not called yet: nothing is known")
    return view.published


def need_admin(admin: bool, what: str) -> None:
    """Refuses ordinary users."""
    if not admin:
        refuse(
            grpc.StatusCode.PERMISSION_DENIED,
            f"only administrators may {what} (operator.admins)",
        )


@dataclass(frozen=True)
class Asking:
    """The caller, and the search for changes of a job.

    Attributes:
        admin: may see everything, and make changes.
        what_if: finds changes that would let a row of the plan start earlier; None: not available.
    """

    admin: bool
    what_if: WhatIf | None = None


def status(view: View, request: pb.StatusRequest, asking: Asking) -> pb.StatusReply:
    del request, asking
    reply = pb.StatusReply.FromString(view.live.status)
    reply.left_out.extend(left_out())
    if view.published is not None:
        snapshot, plan = view.published.snapshot, view.published.plan
        planned = (plan.start_s != NEVER) & (plan.start_s != UNPLANNED)
        reply.generation, reply.dialect = snapshot.generation, snapshot.dialect
        reply.jobs_pending = len(snapshot.jobs)
        reply.jobs_running = int((~snapshot.running.releasing).sum())
        reply.jobs_malleable = int(snapshot.running.malleable.sum())
        reply.jobs_planned = len(set(plan.job[planned].tolist()))
        reply.nodes = len(snapshot.nodes)
        reply.nodes_usable = int(snapshot.nodes.usable.sum())
        reply.unknown_resources.extend(_unknown(view))
    return reply


def plan(view: View, request: pb.PlanRequest, asking: Asking) -> pb.PlanReply:
    """The plan of the last cycle."""
    published = published_of(view)
    limit = request.limit
    if not asking.admin:
        limit = min(limit or MAX_READ, MAX_READ)
    return pb.PlanReply(
        now_s=published.snapshot.now_s,
        policy=published.plan.policy,
        jobs=planned_jobs(published, limit),
        dialect=published.snapshot.dialect,
    )


def explained(view: View, request: pb.ExplainRequest, asking: Asking) -> pb.ExplainReply:
    """Why a job waits."""
    published = published_of(view)
    reply = explain(published, request.job_id, asking.what_if)
    if reply is None:
        shown = request.job_id[:64]
        refuse(
            grpc.StatusCode.NOT_FOUND,
            f"no job '{shown}' is waiting or running (ended, or not yet reported)",
        )
    reply.dialect = published.snapshot.dialect
    return reply


def topology(view: View, request: pb.TopologyRequest, asking: Asking) -> pb.TopologyReply:
    """The switches and their jobs."""
    del request
    return topology_reply(published_of(view), 0 if asking.admin else MAX_READ)


def policy(view: View, request: pb.PolicyRequest, asking: Asking) -> pb.PolicyReply:
    """The policy in force; it is changed elsewhere."""
    del request, asking
    return pb.PolicyReply(
        yaml=view.in_force.policy_yaml,
        choices=_told(choices()),
        unknown_resources=() if view.published is None else _unknown(view),
        left_out=left_out(),
        presets=[pb.PresetSummary(name=name, summary=line) for name, line in summaries().items()],
    )


@dataclass(frozen=True)
class Read:
    """A query that changes nothing.

    Attributes:
        request: its message.
        of_cycle: the answer is the same until the next cycle, or until the policy changes.
    """

    request: type[Message]
    answer: Callable[[View, Any, Asking], Message]
    of_cycle: bool


READS: Final = {
    "Status": Read(pb.StatusRequest, status, of_cycle=False),
    "Plan": Read(pb.PlanRequest, plan, of_cycle=True),
    "Explain": Read(pb.ExplainRequest, explained, of_cycle=True),
    "Topology": Read(pb.TopologyRequest, topology, of_cycle=True),
    "Policy": Read(pb.PolicyRequest, policy, of_cycle=False),
}
"""By method name; those of extensions are in `extension_methods.py`."""


def _unknown(view: View) -> tuple[str, ...]:
    """Resources in the limits and FreePools in force that the cluster does not have."""
    assert view.published is not None
    return unknown_to(view.in_force.conditions.site, view.published.snapshot)


def _told(choices: Mapping[str, Sequence[str]]) -> list[str]:
    """A line for each stage; policies that need a simulation are marked."""
    lines = []
    for stage, known in choices.items():
        only = SIMULATION_ONLY if stage == "predict" else frozenset[str]()
        names = [f"{name} (simulation only)" if name in only else name for name in known]
        lines.append(f"{stage}: {', '.join(names)}")
    return lines
