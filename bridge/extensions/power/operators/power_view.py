# SPDX-License-Identifier: Apache-2.0
"""The bounds and estimates of system power, as of the last cycle, for operators and users.

All powers are upper estimates (`bridge.extensions.power.planning.estimates`), by which jobs start.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.power.corridor.resolve import Entries
from bridge.extensions.power.operators.power_messages import MAX_STEPS, entry_message, step_messages
from bridge.extensions.power.operators.power_source import measured_words
from bridge.extensions.power.planning.estimates import (
    NodePowers,
    node_powers,
    running_estimates,
    running_upper_w,
    system_power,
)
from bridge.extensions.power.planning.planned import planned_draws
from bridge.extensions.power.planning.violations import NOT_KEPT
from bridge.extensions.power.rules import NAME, PowerRules, power_of
from bridge.model.snapshot import Snapshot
from bridge.rpc.controller.cycles import Published
from bridge.rpc.operators.explain import running_job
from bridge.rpc.operators.view import View
from bridge.rpc.pb import operator_pb2 as pb
from bridge.units import DAY_S, NEVER, UNPLANNED

MAX_JOBS, USUAL_JOBS = 1000, 10
MAX_SPAN_S = 60 * DAY_S


def entries_of(view: View) -> Entries:
    """The sources of the corridor in force."""
    entries = view.in_force.parts.get(NAME)
    return entries if isinstance(entries, Entries) else Entries()


def power_reply(view: View, published: Published, request: pb.PowerRequest) -> pb.PowerReply:
    """The bounds, the estimates, and the jobs that draw most."""
    now_s = published.snapshot.now_s
    until_s = now_s + min(request.span_s or DAY_S, MAX_SPAN_S)
    entries = entries_of(view)
    reply = pb.PowerReply(
        now_s=now_s,
        steps=step_messages(entries, now_s, until_s),
        entries=(entry_message(entry, now_s) for entry in entries.entered),
        problems=view.live.problems.get(NAME, ()),
    )
    rules = power_of(view.in_force.conditions.site)
    reply.bounded = rules is not None
    if rules is not None:
        _fill(reply, rules, published, until_s, min(request.limit or USUAL_JOBS, MAX_JOBS))
    return reply


def _fill(
    reply: pb.PowerReply, rules: PowerRules, published: Published, until_s: int, limit: int
) -> None:
    snapshot = published.snapshot
    powers = node_powers(rules, snapshot)
    reply.lower_estimate_w, reply.estimate_w = system_power(rules, snapshot)
    reply.base_w, reply.idle_w = rules.base_w, powers.idle_total_w
    reply.problems.extend(_not_kept(reply, rules, published))
    beyond = running_upper_w(rules, snapshot, powers)
    running = snapshot.running
    owner = np.repeat(np.arange(len(running)), np.diff(running.indptr))
    reply.jobs_w, reply.jobs_running = int(beyond.sum()), int((~running.releasing).sum())
    reply.planned.extend(_planned(published, powers, rules.base_w, beyond, until_s))
    floor = np.bincount(owner, powers.floor_w[running.nodes], len(running)).astype(np.int64)
    order = np.argsort(-(beyond + floor), kind="stable")
    for row in [row for row in order.tolist() if not running.releasing[row]][:limit]:
        reply.jobs.append(
            pb.PowerJob(
                job=running_job(published, row),
                estimate_w=int(beyond[row] + floor[row]),
                source=_source(snapshot, row),
            )
        )


def _not_kept(reply: pb.PowerReply, rules: PowerRules, published: Published) -> Iterator[str]:
    """A message that the corridor cannot be kept, and what would end that."""
    upper_w = rules.corridor.at(reply.now_s)[1]
    if (rest_w := reply.base_w + reply.idle_w) > upper_w:
        yield (
            f"without jobs the system draws {rest_w:,} W, more than the upper bound of "
            f"{upper_w:,} W: no job starts"
        )
    yield from (note for note in published.plan.notes if note.startswith(NOT_KEPT))


def _source(snapshot: Snapshot, row: int) -> str:
    running = snapshot.running
    if running.measured_max_power_w[row] > 0:
        return measured_words(running, row, snapshot.now_s)
    if running.learnt_max_power_w[row] > 0:
        return "learnt"
    if running_estimates(running).upper_w[row] > 0:
        return "stated"
    return "maximum of its nodes"


def _planned(
    published: Published,
    powers: NodePowers,
    base_w: int,
    running_w: NDArray[np.int64],
    until_s: int,
) -> Iterator[pb.PowerStep]:
    """Power by the plan: running jobs until their ends, planned ones from their starts."""
    snapshot, plan = published.snapshot, published.plan
    now_s = snapshot.now_s
    rows = np.flatnonzero((plan.start_s != NEVER) & (plan.start_s != UNPLANNED))
    start_s = np.concatenate((np.full(len(running_w), now_s), plan.start_s[rows]))
    end_s = np.concatenate((np.maximum(snapshot.running.end_s, now_s + 1), plan.end_s[rows]))
    amount = np.concatenate((running_w, planned_draws(snapshot, powers, plan, rows).upper_w))
    edges = np.unique(np.concatenate(([now_s], start_s, end_s)))
    edges = edges[(edges >= now_s) & (edges < until_s)]
    change = np.zeros(len(edges) + 1, dtype=np.int64)
    np.add.at(change, np.searchsorted(edges, start_s), amount)
    np.add.at(change, np.searchsorted(edges, end_s), -amount)
    total = np.cumsum(change[:-1]) + base_w + powers.idle_total_w
    keep = np.concatenate(([True], np.diff(total) != 0)) if len(total) else np.empty(0, bool)
    starts, values = edges[keep].tolist()[:MAX_STEPS], total[keep].tolist()
    for start, end, value in zip(starts, [*starts[1:], until_s], values, strict=False):
        yield pb.PowerStep(from_s=start, until_s=end, estimate_w=value)
