# SPDX-License-Identifier: Apache-2.0
"""The effect of a change of the corridor: the last report planned with and without it.

Rules
    1. The policy in force makes both plans from the same report, without its state. So they differ
       by the corridor alone; they may differ more from the announced plan.
    2. Only the first planned task of an array is compared.
    3. Nothing is changed: this runs in the operators' process.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import yaml

from bridge.cycle import run_cycle
from bridge.errors import ConfigError
from bridge.extensions.power.corridor.corridor_switch import NOT_BOUNDED
from bridge.extensions.power.corridor.entry_log import Author, EntryLog
from bridge.extensions.power.corridor.resolve import Entries, bounded_by, corridor_at
from bridge.extensions.power.operators.power_changes import author_of
from bridge.extensions.power.operators.power_messages import (
    check_request,
    entry_message,
    step_messages,
    wish_of,
)
from bridge.extensions.power.operators.power_view import entries_of
from bridge.extensions.power.rules import Corridor, power_of
from bridge.model.plan import Plan
from bridge.model.policy import PolicySpec
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.ports import State
from bridge.registry import build, for_live, parse_policy
from bridge.rpc.controller.cycles import Published
from bridge.rpc.operators.explain import planned_job, running_job
from bridge.rpc.operators.requester import Requester
from bridge.rpc.operators.view import View
from bridge.rpc.pb import operator_pb2 as pb
from bridge.units import DAY_S, NEVER, UNPLANNED

MAX_EFFECTS = 200
_SEED = 0
_ORDER = {
    pb.CORRIDOR_EFFECT_KIND_HELD: 0,
    pb.CORRIDOR_EFFECT_KIND_SHRUNK: 1,
    pb.CORRIDOR_EFFECT_KIND_DELAYED: 2,
    pb.CORRIDOR_EFFECT_KIND_PLANNED: 3,
    pb.CORRIDOR_EFFECT_KIND_GROWN: 4,
    pb.CORRIDOR_EFFECT_KIND_EARLIER: 5,
}

Planner = Callable[[Snapshot, Site], Plan]


def trial(
    view: View, published: Published, request: pb.CorridorRequest, who: Requester
) -> pb.CorridorReply:
    """Plans with the requested bounds, and lists the changes.

    Raises:
        ConfigError: the request is invalid, or power is not bounded.
        PolicyError: the policy in force has no plan.
    """
    site, now_s = view.in_force.conditions.site, published.snapshot.now_s
    if power_of(site) is None:
        raise ConfigError("power corridor", NOT_BOUNDED)
    check_request(request)
    before = entries_of(view)
    after, entry = _changed(before, request, author_of(who), now_s)
    plan = planner(_spec(view.in_force.policy_yaml))
    snapshot = published.snapshot
    found = effects(
        published,
        plan(snapshot, bounded_by(site, corridor_at(before, now_s))),
        plan(snapshot, bounded_by(site, corridor_at(after, now_s))),
    )
    return pb.CorridorReply(
        entry=entry,
        steps=step_messages(after, now_s, now_s + DAY_S),
        effects=found[:MAX_EFFECTS],
        effects_total=len(found),
        warnings=_warnings(site, corridor_at(after, now_s), now_s),
    )


def planner(spec: PolicySpec) -> Planner:
    """Plans with a policy that starts with this report (rule 1)."""
    policy = build(spec)

    def plan(snapshot: Snapshot, site: Site) -> Plan:
        return run_cycle(snapshot, site, State(), policy, lambda: np.random.default_rng(_SEED)).plan

    return plan


def effects(published: Published, before: Plan, after: Plan) -> list[pb.CorridorEffect]:
    """The jobs for which two plans of one report differ, the largest losses first."""
    found = [
        *_of_running(published, before, after),
        *_of_waiting(replace(published, plan=before), replace(published, plan=after)),
    ]
    found.sort(key=lambda effect: (_ORDER[effect.kind], -abs(effect.start_s - effect.job.start_s)))
    return found


def _of_running(published: Published, before: Plan, after: Plan) -> list[pb.CorridorEffect]:
    running = published.snapshot.running
    held = np.diff(running.indptr)

    def widths(plan: Plan) -> dict[int, int]:
        return {int(row): len(plan.resizes.nodes_of(at)) for at, row in enumerate(plan.resizes.job)}

    then, now = widths(before), widths(after)
    found = []
    for row in sorted(then.keys() | now.keys()):
        one, other = then.get(row, int(held[row])), now.get(row, int(held[row]))
        if one == other:
            continue
        grows = other > one
        kind = pb.CORRIDOR_EFFECT_KIND_GROWN if grows else pb.CORRIDOR_EFFECT_KIND_SHRUNK
        job = running_job(published, row)
        job.node_count = one
        found.append(pb.CorridorEffect(kind=kind, job=job, node_count=other, start_s=job.start_s))
    return found


def _of_waiting(before: Published, after: Published) -> list[pb.CorridorEffect]:
    found = []
    earlier, later = _first_rows(before.plan), _first_rows(after.plan)
    for job in sorted(earlier.keys() & later.keys()):
        row, other = earlier[job], later[job]
        kind = _kind(_start(before.plan, row), _start(after.plan, other))
        if kind is None:
            continue
        start_s, reason = _start(after.plan, other), after.plan.reasons[other]
        found.append(
            pb.CorridorEffect(
                kind=kind,
                job=planned_job(before, row),
                start_s=start_s or 0,
                node_count=len(after.plan.nodes_of(other)),
                reason="" if reason is None else reason.text,
            )
        )
    return found


def _kind(before_s: int | None, after_s: int | None) -> pb.CorridorEffectKind | None:
    if before_s == after_s:
        return None
    if after_s is None:
        return pb.CORRIDOR_EFFECT_KIND_HELD
    if before_s is None:
        return pb.CORRIDOR_EFFECT_KIND_PLANNED
    if after_s > before_s:
        return pb.CORRIDOR_EFFECT_KIND_DELAYED
    return pb.CORRIDOR_EFFECT_KIND_EARLIER


def _start(plan: Plan, row: int) -> int | None:
    start_s = int(plan.start_s[row])
    return None if start_s in (NEVER, UNPLANNED) else start_s


def _first_rows(plan: Plan) -> dict[int, int]:
    """From job to its row; the first to start of several (rule 2)."""
    found: dict[int, int] = {}
    key = np.where(plan.start_s == UNPLANNED, NEVER, plan.start_s)
    for row in np.argsort(key, kind="stable").tolist():
        found.setdefault(int(plan.job[row]), row)
    return found


def _changed(
    entries: Entries, request: pb.CorridorRequest, author: Author, now_s: int
) -> tuple[Entries, pb.CorridorEntry]:
    entry_log = EntryLog(
        entries.entered, max((entry.id for entry in entries.entered), default=0) + 1
    )
    if request.HasField("undo"):
        entry_log, entry = entry_log.remove(request.undo, author, now_s)
    elif request.HasField("restore"):
        entry_log, entry = entry_log.restore(request.restore, author, now_s)
    else:
        entry_log, (entry,) = entry_log.add([wish_of(request, now_s)], author, now_s)
    return replace(entries, entered=entry_log.entries), entry_message(entry, now_s)


def _spec(text: str) -> PolicySpec:
    return for_live(parse_policy(yaml.safe_load(text)))


def _warnings(site: Site, corridor: Corridor, now_s: int) -> list[str]:
    power = power_of(site)
    if power is None or power.node_types:
        return []
    upper = corridor.at(now_s)[1]
    return ["no node has a power (planning.power.nodes): no job counts"] if upper != NEVER else []
