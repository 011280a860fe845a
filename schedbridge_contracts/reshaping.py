# SPDX-License-Identifier: Apache-2.0
"""Malleable worlds, a policy that resizes at random, and an oracle that counts second by second."""

from dataclasses import dataclass, replace

import numpy as np

from bridge.model.decisions.resizes import NO_RESIZES, Resizes
from bridge.model.job import WidthRule
from bridge.units import NEVER, UNPLANNED
from schedbridge_contracts.worlds import random_world


def malleable(snapshot, rng):
    """The world with some running jobs malleable, a few of them adapting, on heads anywhere."""
    running, n = snapshot.running, len(snapshot.running)
    widths = np.diff(running.indptr)
    some = rng.random(n) < 0.8
    dice = np.random.default_rng(len(running.nodes))
    heads = [int(dice.choice(running.nodes[a:b])) if a < b and dice.random() < 0.5 else -1
             for a, b in zip(running.indptr, running.indptr[1:], strict=False)]  # fmt: skip
    return replace(
        snapshot,
        running=replace(
            snapshot.running,
            version=np.arange(1, n + 1, dtype=np.uint64),
            min_nodes=np.where(some, np.minimum(widths, rng.integers(1, 4, n)), 0),
            max_nodes=np.where(some, np.maximum(widths, rng.integers(1, 10, n)), 0),
            width_rule=np.where(rng.random(n) < 0.3, WidthRule.POF2, WidthRule.ANY).astype(np.int8),
            adapting=some & (rng.random(n) < 0.1),
            head=np.array(heads, dtype=np.int64),
            requested_nodes=np.where(some, rng.integers(0, 6, n), 0),
            resized_s=np.where(rng.random(n) < 0.3, snapshot.now_s - rng.integers(0, 90, n), 0),
        ),
        jobs=replace(
            snapshot.jobs,
            min_start=np.ones(len(snapshot.jobs), dtype=np.int64),
            max_start=np.where(rng.random(len(snapshot.jobs)) < 0.5, 9, 0),
        ),
    )


def a_malleable_world(seed):
    """A malleable world with at least two running jobs."""
    worlds = (random_world(50 * seed + at, arrays=False) for at in range(50))
    world = next(world for world in worlds if len(world.running) > 1)
    return malleable(world, np.random.default_rng(seed))


def random_resizes(snapshot, rng, *, wild=False):
    """Resizes of some running jobs: within all rules, or of any kind if `wild`."""
    running, n_nodes = snapshot.running, len(snapshot.nodes)
    usable = snapshot.nodes.usable.copy()
    kept = np.zeros(n_nodes, dtype=bool)
    for item in snapshot.reservations:
        kept[item.nodes] = True
    idle = set(np.flatnonzero(usable & ~kept).tolist()) - set(running.nodes.tolist())
    rows = []
    for job in range(len(running)):
        held = running.nodes[running.indptr[job] : running.indptr[job + 1]].tolist()
        by_s = snapshot.now_s + int(rng.integers(0 if wild else 1, 20))
        if wild:
            if rng.random() < 0.5:
                continue
            after = set(held)
            for _ in range(int(rng.integers(1, 3))):
                after ^= {int(rng.integers(n_nodes))}
            if not after:
                continue
        else:
            rule = WidthRule(int(running.width_rule[job]))
            in_partition = set(snapshot.partitions[int(running.partition[job])].nodes.tolist())
            free = sorted(idle & in_partition)
            minimum, maximum = int(running.min_nodes[job]), int(running.max_nodes[job])
            maximum = min(maximum, len(held) + len(free))
            width = [
                w for w in range(max(minimum, 1), maximum + 1) if rule.allows(w) and w != len(held)
            ]
            if not width or running.adapting[job] or running.releasing[job] or rng.random() < 0.3:
                continue
            if (w := int(rng.choice(width))) < len(held):
                head = running.head_of(job)
                others = [node for node in held if node != head]
                after = {head, *rng.permutation(others)[: w - 1].tolist()}
            else:
                new = rng.permutation(free)[: w - len(held)].tolist()
                idle -= set(new)
                after = {*held, *new}
        rows.append((job, by_s, np.array(sorted(after), dtype=np.int32), "for a test"))
    return Resizes.of(rows) if rows else NO_RESIZES


@dataclass(frozen=True)
class RandomReshape:
    """A reshape stage without a purpose: whatever is allowed, on nodes that no start needs."""

    seed: int = 0

    def reshape(self, snapshot, order, planned, replan, context):
        rng = np.random.default_rng((self.seed, snapshot.now_s))
        starting = [planned.plan.nodes_of(row) for row in planned.plan.starts_now]
        usable = snapshot.nodes.usable.copy()
        usable[np.concatenate([*starting, np.zeros(0, np.int32)]).astype(np.int64)] = False
        world = replace(snapshot, nodes=replace(snapshot.nodes, usable=usable))
        resizes = random_resizes(world, rng)
        return replan(resizes) if len(resizes) else planned


def naive_problem(snapshot, plan):
    """What is wrong with the changes of a plan and the rows around them; None: nothing.

    Judges capacity and exclusiveness second by second, with sets and sums.
    """
    back = {int(job): row for row, job in enumerate(plan.returns.job)}
    width = dict(zip(plan.start_widths.job.tolist(), plan.start_widths.nodes.tolist(), strict=True))
    running, nodes, resizes = snapshot.running, snapshot.nodes, plan.resizes
    now_s = snapshot.now_s
    afterwards = {int(job): row for row, job in enumerate(resizes.job)}
    spans = []  # (node, from, to, use, exclusive, who)
    for job in range(len(running)):
        own = slice(running.indptr[job], running.indptr[job + 1])
        held, use = running.nodes[own].tolist(), running.use[own].tolist()
        end_s = max(int(running.end_s[job]), now_s + 1)
        alone = bool(running.exclusive[job])
        kept = held
        if job in back:
            kept = plan.returns.nodes_of(back[job]).tolist()
            later_s = int(plan.returns.by_s[back[job]])
            now_has = resizes.nodes_of(afterwards[job]).tolist() if job in afterwards else held
            if not set(kept) < set(now_has) or running.head_of(job) not in kept or later_s <= now_s:
                return "gives back later what it does not have"
            kept_until_s = max(int(plan.returns.end_s[back[job]]) or end_s, now_s + 1)
        if job not in afterwards:
            for n, u in zip(held, use, strict=True):
                until_s = end_s if job not in back else kept_until_s
                until_s = until_s if n in kept else max(min(later_s, end_s), now_s + 1)
                spans.append((n, now_s, until_s, u, alone, job))
            continue
        row = afterwards[job]
        after = resizes.nodes_of(row).tolist()
        if running.max_nodes[job] == 0 or running.adapting[job]:
            return "cannot be resized"
        head = running.head[job] if running.head[job] >= 0 else held[0]
        if bool(set(after) - set(held)) == bool(set(held) - set(after)) or head not in after:
            return "mixed, or nothing, or without its head"
        if not running.min_nodes[job] <= len(after) <= running.max_nodes[job]:
            return "width"
        if not WidthRule(int(running.width_rule[job])).allows(len(after)):
            return "rule"
        if set(held) - set(after) and resizes.by_s[row] <= now_s:
            return "at once"
        for node in after:
            if node not in held:
                if not nodes.usable[node]:
                    return "unusable"
                for item in snapshot.reservations:
                    if node in item.nodes and item.start_s < end_s and item.end_s > now_s:
                        return "reserved"
        until_s = max(min(int(resizes.by_s[row]), end_s), now_s + 1)
        new_end_s = max(int(resizes.end_s[row]) or end_s, now_s + 1)
        lent_s = max(min(later_s, new_end_s), now_s + 1) if job in back else 0
        for n, u in zip(held, use, strict=True):
            stays_s = new_end_s if job not in back else kept_until_s if n in kept else lent_s
            spans.append((n, now_s, stays_s if n in after else until_s, u, alone, job))
        for n in set(after) - set(held):
            spans.append((n, now_s, lent_s if job in back else new_end_s,
                          nodes.capacity[n].tolist() if alone else use[0], alone, job))  # fmt: skip
    for row in range(len(plan)):
        start_s, end_s = int(plan.start_s[row]), int(plan.end_s[row])
        if start_s in (NEVER, UNPLANNED):
            continue
        job = int(plan.job[row])
        if len(plan.nodes_of(row)) != width.get(job, len(plan.nodes_of(row))):
            return "is not as wide as planned"
        alone = bool(
            snapshot.jobs.exclusive[job] or snapshot.partitions[int(plan.partition[row])].exclusive
        )
        tasks = plan.tasks[plan.indptr[row] : plan.indptr[row + 1]]
        for node, there in zip(plan.nodes_of(row).tolist(), tasks.tolist(), strict=True):
            use = (snapshot.jobs.per_node[job] + there * snapshot.jobs.per_task[job]).tolist()
            if alone:
                use = nodes.capacity[node].tolist()
            spans.append((node, start_s, end_s, use, alone, ("row", row)))
    for instant in sorted({span[1] for span in spans}):
        for node in range(len(nodes)):
            there = [s for s in spans if s[0] == node and s[1] <= instant < s[2]]
            if len(there) > 1 and any(s[4] for s in there):
                return f"shares node {node} at {instant}"
            total = np.sum([s[3] for s in there], axis=0) if there else 0
            if (total > nodes.capacity[node]).any():
                return f"too much on node {node} at {instant}"
    return None
