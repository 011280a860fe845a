# SPDX-License-Identifier: Apache-2.0
"""Checks whether resizes of running jobs are legal, without code of the policies that decide them.

Rules
    1. Only malleable jobs are resized, each at most once, and none that is adapting.
    2. Nodes are either added or removed, never both, and at least one. The job's head stays, as
       the batch script runs there.
    3. The new number of nodes lies within the job's own bounds and the partition's largest, and
       follows the job's width rule.
    4. Removed nodes are released after the present second, and no job is expected to have ended.
    5. A new job of the same user, partition, constraint and reservation could start on the added
       nodes now and hold them until the job's end, together with all other jobs and added nodes:
       `added_nodes` makes these jobs, and `bridge.check.legality.check` checks them. They do not
       count in limits on the number of jobs. They draw as much power as the job.
    6. Jobs keep the limits on resizes of their users and partitions
       (`bridge.model.rules.resize_limits`).
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.check.fabrics import fabrics
from bridge.check.known_power import running_lower_w, running_upper_w
from bridge.model.decisions.resizes import Resizes
from bridge.model.job import JobTable, RunningTable, WidthRule
from bridge.model.job_columns import objects
from bridge.model.plan import Plan
from bridge.model.rules.limits import ARRAY_JOBS, JOBS
from bridge.model.rules.resize_limits import ResizeBounds
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.units import UNLIMITED_S

_PER_JOB: Final = frozenset({JOBS, ARRAY_JOBS})


def broken_resizes(
    snapshot: Snapshot, resizes: Resizes, bounds: ResizeBounds
) -> list[tuple[str, str]]:
    """Finds resizes that break rules 1 to 4, or 6.

    Args:
        bounds: bounds of rule 6.

    Returns:
        Job ids and violations; the id is empty if the columns do not fit together.
    """
    if not _fit(snapshot, resizes):
        return [("", "has columns of resizes that do not fit together")]
    found = _broken(snapshot, resizes, _held(snapshot, resizes))
    return [*found, *_beyond_limits(snapshot, resizes, bounds)]


def _fit(snapshot: Snapshot, resizes: Resizes) -> bool:
    """Whether the columns fit together and to the snapshot."""
    n, widths = len(resizes), resizes.indptr[1:] - resizes.indptr[:-1]
    return bool(
        len(resizes.by_s) == n
        and len(resizes.reasons) == n
        and len(resizes.end_s) == n
        and len(resizes.indptr) == n + 1
        and resizes.indptr[0] == 0
        and resizes.indptr[-1] == len(resizes.nodes)
        and (widths > 0).all()
        and resizes.job.min(initial=0) >= 0
        and resizes.job.max(initial=-1) < len(snapshot.running)
        and (resizes.job[1:] > resizes.job[:-1]).all()
        and resizes.nodes.min(initial=0) >= 0
        and resizes.nodes.max(initial=-1) < len(snapshot.nodes)
    )


def _broken(snapshot: Snapshot, resizes: Resizes, held: NDArray[np.bool_]) -> list[tuple[str, str]]:
    """Rules 1 to 4, of columns that fit; `held`: see `_held`."""
    return [
        (str(snapshot.running.id[job]), text)
        for row in _doubtful(snapshot, resizes, held)
        for job in (int(resizes.job[row]),)
        for text in _problems(snapshot, resizes, row, job)
    ]


def _beyond_limits(
    snapshot: Snapshot, resizes: Resizes, bounds: ResizeBounds
) -> Iterator[tuple[str, str]]:
    """Resizes beyond a limit (rule 6); of several jobs that grow, the first ones may."""
    if not bounds.binds:
        return
    running, grown = snapshot.running, Counter[str]()
    before = np.diff(running.indptr)[resizes.job]
    for job, width, held in zip(
        resizes.job.tolist(), np.diff(resizes.indptr).tolist(), before.tolist(), strict=True
    ):
        if why := bounds.never(job):
            yield str(running.id[job]), why
        elif width > held:
            maximum, why = bounds.maximum(job)
            left, user = bounds.left(job), str(running.user[job])
            grown[user] += 1
            if width > maximum and why:
                yield str(running.id[job]), why
            elif left is not None and grown[user] > left:
                yield str(running.id[job]), f"grows with too many other jobs of {user}"


def broken_returns(snapshot: Snapshot, returns: Resizes) -> list[tuple[str, str]]:
    """Finds later resizes that break rules 1 to 4, or add nodes; see `broken_resizes`.

    Args:
        snapshot: the cluster, with the jobs that are resized now as they will be.
    """
    if not len(returns):
        return []
    calm = np.zeros_like(snapshot.running.adapting)
    running = RunningTable.of_columns({**vars(snapshot.running), "adapting": calm})
    world = snapshot.with_running(running)
    if not _fit(world, returns):
        return [("", "has columns of resizes that do not fit together")]
    held = _held(world, returns)
    bounds = ResizeBounds(world, ())
    found = [*_broken(world, returns, held), *_beyond_limits(world, returns, bounds)]
    given = ~held
    if not given.any():
        return found
    for job in np.unique(returns.job.repeat(np.diff(returns.indptr))[given]).tolist():
        found.append((str(running.id[job]), "is to give nodes back later, but is given some"))
    return found


def _held(snapshot: Snapshot, resizes: Resizes) -> NDArray[np.bool_]:
    """(nnz,) which of the nodes of resizes their jobs already hold."""
    running, n_nodes = snapshot.running, len(snapshot.nodes)
    job = resizes.job.astype(np.int64)
    sizes = running.indptr[job + 1] - running.indptr[job]
    ends = sizes.cumsum()
    entries = np.arange(sizes.sum()) + (running.indptr[job] - ends + sizes).repeat(sizes)
    held = np.sort(job.repeat(sizes) * n_nodes + running.nodes[entries])
    wanted = job.repeat(resizes.indptr[1:] - resizes.indptr[:-1]) * n_nodes + resizes.nodes
    if not len(held):
        return np.zeros(len(wanted), dtype=bool)
    found: NDArray[np.bool_] = held[np.minimum(held.searchsorted(wanted), len(held) - 1)] == wanted
    return found


def _doubtful(snapshot: Snapshot, resizes: Resizes, held: NDArray[np.bool_]) -> list[int]:
    """The rows that may have a problem, by columns; `_problems` judges them one by one."""
    running, job = snapshot.running, resizes.job.astype(np.int64)
    after = resizes.indptr[1:] - resizes.indptr[:-1]
    before = running.indptr[job + 1] - running.indptr[job]
    row = np.arange(len(job)).repeat(after)
    repeats = (row[1:] == row[:-1]) & (resizes.nodes[1:] <= resizes.nodes[:-1])
    kept = np.bincount(row[held], minlength=len(job))
    first = np.where(
        before > 0, running.nodes[running.indptr[job].clip(0, len(running.nodes) - 1)], -1
    )
    head = np.where(running.head[job] >= 0, running.head[job], first)
    fine = (running.max_nodes[job] > 0) & ~running.releasing[job] & ~running.adapting[job]
    fine &= (after >= running.min_nodes[job]) & (after <= running.max_nodes[job])
    fine &= (kept == after) != (kept == before)  # it only loses nodes, or only gets some
    fine &= (kept == after) | (kept == before)
    fine &= np.bincount(row[resizes.nodes == head[row]], minlength=len(job)) == 1
    fine[row[1:][repeats]] = False
    fine &= (resizes.end_s == 0) | (resizes.end_s > snapshot.now_s)
    fine &= (kept == before) | (resizes.by_s > snapshot.now_s)
    fine &= running.width_rule[job] == WidthRule.ANY
    fine &= (kept == after) | (snapshot.topology is None)
    if any(partition.max_nodes for partition in snapshot.partitions):
        fine &= kept == after
    found: list[int] = np.flatnonzero(~fine).tolist()
    return found


def _problems(snapshot: Snapshot, resizes: Resizes, row: int, job: int) -> Iterator[str]:
    running = snapshot.running
    before = running.nodes[running.indptr[job] : running.indptr[job + 1]]
    after = resizes.nodes_of(row)
    minimum, maximum = int(running.min_nodes[job]), int(running.max_nodes[job])
    if maximum == 0 or running.releasing[job]:
        yield "is resized but not malleable"
        return
    if running.adapting[job]:
        yield "is resized while it is adapting"
    if (np.diff(after) <= 0).any():
        yield "is given a node twice or out of order"
        return
    added, removed = np.setdiff1d(after, before), np.setdiff1d(before, after)
    if len(added) and len(removed):
        yield "gains and loses nodes at once"
    if not len(added) and not len(removed):
        yield "is resized to the nodes it has"
    if running.head_of(job) not in after:
        yield "loses the node of its batch script"
    rule = WidthRule(int(running.width_rule[job]))
    if not minimum <= len(after) <= maximum or not rule.allows(len(after)):
        yield f"is resized to {len(after)} nodes, which it does not allow"
    partition = int(running.partition[job])
    if partition >= 0 and len(added):
        bound = snapshot.partitions[partition].max_nodes
        if 0 < bound < len(after):
            name = snapshot.partitions[partition].name
            yield f"is resized to {len(after)} nodes; partition {name} allows {bound}"
    if len(added) and snapshot.topology is not None:
        fabric = fabrics(snapshot.topology)[after]
        if len(after) > 1 and ((fabric < 0) | (fabric != fabric[0])).any():
            yield "is given nodes that no fabric connects with its own"
    yield from _problems_of_times(snapshot, resizes, row, removes=len(removed) > 0)


def _problems_of_times(
    snapshot: Snapshot, resizes: Resizes, row: int, *, removes: bool
) -> Iterator[str]:
    if 0 < resizes.end_s[row] <= snapshot.now_s:
        yield "is expected to have ended"
    if removes and resizes.by_s[row] <= snapshot.now_s:
        yield "gives nodes back at once"


def added_nodes(
    snapshot: Snapshot, site: Site, resizes: Resizes
) -> tuple[Snapshot, Site, Plan] | None:
    """Turns added nodes into jobs that start now (rule 5); None: no nodes are added.

    Returns:
        A snapshot with these jobs alone waiting, the rules that bind them, and the plan that starts
        them.
    """
    running, now_s = snapshot.running, snapshot.now_s
    is_new = ~_held(snapshot, resizes)
    counts = np.bincount(
        np.arange(len(resizes)).repeat(resizes.indptr[1:] - resizes.indptr[:-1])[is_new],
        minlength=len(resizes),
    )
    grows = np.flatnonzero(counts)
    if not len(grows):
        return None
    rows, widths = resizes.job[grows].astype(np.int64), counts[grows]
    first = running.indptr[rows]  # on each node it holds its present amounts, or all
    holds = ~running.exclusive[rows] & (first < running.indptr[rows + 1])
    wants = np.zeros((len(rows), running.use.shape[1]), dtype=np.int64)
    wants[holds] = running.use[first[holds]]
    end_s = resizes.end_s[grows]
    left_s = np.where(end_s != 0, end_s, running.end_s[rows]) - now_s
    left_s = np.minimum(np.maximum(left_s, 1), UNLIMITED_S)
    indptr = np.concatenate(([0], np.cumsum(widths))).astype(np.int64)
    plan = Plan(
        now_s=now_s,
        policy="",
        job=np.arange(len(rows), dtype=np.int32),
        start_s=np.full(len(rows), now_s, dtype=np.int64),
        end_s=now_s + left_s,
        partition=running.partition[rows].astype(np.int32),
        indptr=indptr,
        nodes=resizes.nodes[is_new].astype(np.int32),
        tasks=np.zeros(int(indptr[-1]), dtype=np.int32),
        reasons=(None,) * len(rows),
    )
    world = dataclasses.replace(
        snapshot,
        jobs=_jobs(snapshot, rows, widths, wants, left_s),
        partitions=tuple(
            dataclasses.replace(one, min_nodes=0, max_nodes=0, max_time_s=0)
            if one.min_nodes or one.max_nodes or one.max_time_s
            else one
            for one in snapshot.partitions
        ),
    )
    limits = tuple(limit for limit in site.rules.limits if limit.resource not in _PER_JOB)
    rules = dataclasses.replace(site.rules, limits=limits)
    return world, dataclasses.replace(site, rules=rules), plan


def _jobs(
    snapshot: Snapshot,
    rows: NDArray[np.int64],
    widths: NDArray[np.int64],
    wants: NDArray[np.int64],
    left_s: NDArray[np.int64],
) -> JobTable:
    running, n = snapshot.running, len(rows)
    zeros = np.zeros(n, dtype=np.int64)
    return JobTable.of_columns(
        {
            "id": running.id[rows],
            "version": running.version[rows],
            "name": running.name[rows],
            "user": running.user[rows],
            "account": running.account[rows],
            "priority": zeros,
            "submit_s": zeros,
            "eligible_s": zeros,
            "time_limit_s": left_s,
            "partitions": objects((partition,) for partition in running.partition[rows].tolist()),
            "min_nodes": widths,
            "max_nodes": widths,
            "per_node": wants,
            "per_task": np.zeros_like(wants),
            "exclusive": running.exclusive[rows],
            "features": running.features[rows],
            "licences": np.zeros((n, len(snapshot.licences)), dtype=np.int64),
            "reservation": running.reservation[rows],
            "min_power_w": running_lower_w(running)[rows],
            "max_power_w": running_upper_w(running)[rows],
        }
    )
