# SPDX-License-Identifier: Apache-2.0
"""Determines the leaf switches that a job may use together: `--switches=N@time`, and fabrics.

Terms
    wish      to be on at most N leaf switches (`JobTable.switches`) of one fabric.
    pending   a wish is pending for `JobTable.switches_wait_s` after its job became eligible; after
              that the job may use any nodes.
    union     at most N leaf switches whose nodes a job with a pending wish may use.
    units     tasks, or nodes if the job has no number of tasks.

Rules
    1. Jobs that need one node only have no wish; without a topology no job has.
    2. The wait starts when the job becomes eligible (begin time, dependencies).
    3. A job with a pending wish starts on a union now, or anywhere after the wait. The
       `MAX_UNIONS` unions on which it fits earliest are tried, considering running jobs and
       announced downtime; of these first the ones below the fewest switches, then those with the
       least to spare. For one leaf switch, all are tried if there are at most that many.
    4. Nodes without a switch belong to no fabric and run jobs of one node only.

Deviates: Slurm counts from when it first considers the job, and (topology/tree) tries only the
switches that its best-fit finds.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import JobTable
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.snapshot import Snapshot
from bridge.model.topology import Topology
from bridge.units import format_instant

MAX_UNIONS = 16
"""Maximum number of sets of leaf switches tried for a job."""

MAX_INSTANTS = 64
"""Maximum number of different ends of waits in announcements."""

_MAX_INSTANTS = 48

_OF_RESERVATIONS = (ReasonCode.RESERVATION, ReasonCode.MAINTENANCE)

Closed = Iterable[tuple[int, int, NDArray[np.bool_]]]
"""The times at which nodes are closed: start, end and (n_nodes,) bool."""


def since_s(jobs: JobTable) -> NDArray[np.int64]:
    """(n_jobs,) the instant at which jobs began to wait: when they became eligible."""
    since: NDArray[np.int64] = np.maximum(jobs.eligible_s, jobs.begin_s)
    known: NDArray[np.int64] = np.where(since > 0, since, jobs.submit_s)
    return known


def waits_until_s(jobs: JobTable) -> NDArray[np.int64]:
    """(n_jobs,) the instant from which a job can use any nodes; 0: always."""
    wishes = (jobs.switches > 0) & (jobs.max_nodes > 1)
    until: NDArray[np.int64] = np.where(wishes, since_s(jobs) + jobs.switches_wait_s, 0)
    return until


def pending(snapshot: Snapshot) -> NDArray[np.bool_]:
    """(n_jobs,) which jobs have a pending wish."""
    if snapshot.topology is None or not snapshot.jobs.switches.any():
        return np.zeros(len(snapshot.jobs), dtype=bool)
    waits: NDArray[np.bool_] = waits_until_s(snapshot.jobs) > snapshot.now_s
    return waits


def announced_until_s(snapshot: Snapshot) -> NDArray[np.int64]:
    """(n_jobs,) as `waits_until_s`, but of `MAX_INSTANTS` different instants at most.

    Only announcements use the later ones: a job that has waited is no longer pending.
    """
    until, waits = waits_until_s(snapshot.jobs), pending(snapshot)
    instants = np.unique(until[waits])
    if len(instants) > MAX_INSTANTS:
        at = np.linspace(0, len(instants) - 1, MAX_INSTANTS).round().astype(int)
        instants = instants[at]
    until[waits] = instants[np.searchsorted(instants, until[waits])]
    return until


def next_change_s(snapshot: Snapshot) -> int | None:
    """When the next wait for leaf switches ends; None: no job waits for any."""
    if snapshot.topology is None:
        return None
    waits = pending(snapshot)
    return int(waits_until_s(snapshot.jobs)[waits].min()) if waits.any() else None


def wish_reason(
    reason: Reason, number: int, until_s: int, *, node: str, impossible: bool, for_switches: bool
) -> Reason:
    """The reason of a job that waits, with the leaf switches it waits for.

    Args:
        reason: why it does not start now, of its nodes whatever their switches.
        until_s: the end of its wait for them.
        node: what users call a node.
        impossible: no set of that many leaf switches can hold it.
        for_switches: it starts when its wait is over; else as soon as it fits on them.
    """
    switches = f"{number} leaf switch" + ("es" if number != 1 else "")
    until = format_instant(until_s)
    if reason.code is ReasonCode.PRIORITY or (reason.code in _OF_RESERVATIONS and not for_switches):
        return Reason(reason.code, f"{reason.text}; waits for {switches} until {until}")
    if reason.code not in (ReasonCode.RESOURCES, *_OF_RESERVATIONS):
        return reason
    if impossible:
        text = f"no {switches} can hold it: waits until {until}, then takes any {node}s"
        return Reason(ReasonCode.RESOURCES, text)
    return Reason(
        ReasonCode.RESOURCES, f"waits for room on {switches} until {until}, then takes any {node}s"
    )


@dataclass(frozen=True)
class Leaves:
    """The leaf switches with nodes of a topology, renumbered.

    Attributes:
        of_node: (n_nodes,) each node's; -1: on no switch.
        above: (n_leaves,) the switch above; -1: none.
        fabric: (n_leaves,) which fabric each belongs to, from 0.
    """

    of_node: NDArray[np.int64]
    above: NDArray[np.int64]
    fabric: NDArray[np.int64]

    @staticmethod
    @lru_cache(maxsize=4)
    def of(topology: Topology) -> "Leaves":
        """Those of a topology; made once."""
        used = np.unique(topology.leaf_of_node[topology.leaf_of_node >= 0])
        root = used.astype(np.int64)
        while len(root) and (higher := topology.parent[root] >= 0).any():
            root = np.where(higher, topology.parent[root], root)
        of_node = np.searchsorted(used, topology.leaf_of_node).astype(np.int64)
        of_node[topology.leaf_of_node < 0] = -1
        _, fabric = np.unique(root, return_inverse=True)
        return Leaves(of_node, topology.parent[used].astype(np.int64), fabric.astype(np.int64))

    @property
    def n_fabrics(self) -> int:
        """How many fabrics there are."""
        return int(self.fabric.max(initial=-1)) + 1

    @property
    def whole(self) -> bool:
        """Whether one job may have any nodes: there is one fabric with every node in it."""
        return self.n_fabrics == 1 and bool((self.of_node >= 0).all())

    def fabric_of_node(self) -> NDArray[np.int64]:
        """(n_nodes,) each node's fabric; -1: on no switch."""
        if not len(self.fabric):
            return np.full(len(self.of_node), -1, dtype=np.int64)
        return np.where(self.of_node >= 0, self.fabric[self.of_node], -1)

    def apart(self, mask: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
        """The nodes of each fabric, of those given; the fewest first."""
        fabric = self.fabric_of_node()
        parts = [mask & (fabric == each) for each in range(self.n_fabrics)]
        return sorted((part for part in parts if part.any()), key=np.count_nonzero)


@dataclass(frozen=True)
class SwitchRequest:
    """What a job needs of the nodes of a union.

    Attributes:
        nodes: minimum number of nodes.
        on_idle, on_free: (n_nodes,) units that fit on a node when idle, and in addition to what
            runs now.
    """

    units: int
    nodes: int
    on_idle: NDArray[np.int64]
    on_free: NDArray[np.int64]


class SwitchLoad:
    """What runs on the nodes of a snapshot, as far as relevant for unions."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        nodes, running = snapshot.nodes, snapshot.running
        self._free = nodes.capacity.astype(np.int64).copy()
        np.subtract.at(self._free, running.nodes, running.use)
        whole = np.repeat(running.exclusive, np.diff(running.indptr))
        self._free[running.nodes[whole]] = -1
        self._idle = np.ones(len(nodes), dtype=bool)
        self._idle[running.nodes] = False
        ends = np.repeat(np.maximum(running.end_s, snapshot.now_s + 1), np.diff(running.indptr))
        self.release_s = np.full(len(nodes), snapshot.now_s, dtype=np.int64)
        np.maximum.at(self.release_s, running.nodes, ends)

    def request(self, job: int, min_nodes: int) -> SwitchRequest:
        """What a job needs, and how much of it fits on each node.

        Args:
            job: row of the snapshot's jobs.
            min_nodes: minimum number of nodes.
        """
        snapshot, jobs = self._snapshot, self._snapshot.jobs
        idle = _units(snapshot.nodes.capacity, jobs, job)
        free = np.where(self._idle, idle, 0)
        if not jobs.exclusive[job]:
            free = np.minimum(_units(self._free, jobs, job), idle)
        return SwitchRequest(int(jobs.tasks[job]) or min_nodes, min_nodes, idle, free)


def _units(room: NDArray[np.int64], jobs: JobTable, job: int) -> NDArray[np.int64]:
    """(n_nodes,) how many units of a job fit into free resources."""
    left = room - jobs.per_node[job]
    tasks = int(jobs.tasks[job])
    fits = (left >= 0).all(axis=1)
    if not tasks:
        return np.where(fits, 1, 0)
    want = jobs.per_task[job]
    maximum = np.full(len(room), int(jobs.max_tasks_per_node[job]) or tasks, dtype=np.int64)
    if (want > 0).any():
        each = left[:, want > 0] // want[want > 0]
        maximum = np.minimum(maximum, each.min(axis=1))
    units: NDArray[np.int64] = np.where(fits, np.clip(maximum, 0, tasks), 0)
    return units


def unions(
    leaves: Leaves,
    mask: NDArray[np.bool_],
    requested: SwitchRequest,
    *,
    maximum: int,
    required: Sequence[int],
    load: SwitchLoad,
    now_s: int,
    length_s: int,
    closed: Closed,
) -> list[NDArray[np.bool_]]:
    """Finds unions that can hold a job, as (n_nodes,) bool, the most promising first.

    Args:
        mask: (n_nodes,) that the job may use.
        maximum: maximum number of leaf switches.
        required: nodes that it must have.
        length_s: how long the job takes.
        closed: times during which nodes are closed.
    """
    fixed = np.unique(leaves.of_node[list(required)])
    if len(fixed) > maximum or (fixed < 0).any() or len(np.unique(leaves.fabric[fixed])) > 1:
        return []
    free, release_s = np.where(mask, requested.on_free, 0), load.release_s.copy()
    for start_s, end_s, shut in closed:
        if start_s < now_s + length_s:
            free[shut], release_s[shut] = 0, np.maximum(release_s[shut], end_s)
    idle = np.where(mask, requested.on_idle, 0)
    capacity = _LeafCapacity(leaves, free, idle, release_s, now_s)
    found: dict[tuple[int, ...], tuple[int, int, int]] = {}
    for fabric in range(leaves.n_fabrics):
        if len(fixed) and leaves.fabric[fixed[0]] != fabric:
            continue
        members = np.flatnonzero((leaves.fabric == fabric) & capacity.ever)
        for union, rank in capacity.choose(members, fixed, maximum, requested):
            found.setdefault(union, rank)
    ranked = sorted(found, key=lambda union: (found[union], union))[:MAX_UNIONS]
    chosen = np.zeros((len(ranked), len(leaves.fabric) + 1), dtype=bool)
    for at, union in enumerate(ranked):
        chosen[at, list(union)] = True
    return [mask & those[leaves.of_node] for those in chosen]  # -1, on no switch: the last


class _LeafCapacity:
    """How many units, and nodes, there are on every leaf switch at some instants."""

    def __init__(
        self,
        leaves: Leaves,
        free: NDArray[np.int64],
        idle: NDArray[np.int64],
        release_s: NDArray[np.int64],
        now_s: int,
    ) -> None:
        self._leaves = leaves
        more = idle > free
        instants = np.unique(release_s[more])
        instants = instants[instants > now_s]
        if len(instants) > _MAX_INSTANTS:
            picks = np.linspace(0, len(instants) - 1, _MAX_INSTANTS).round().astype(int)
            instants = instants[picks]
        shape = (len(instants) + 1, len(leaves.fabric))
        on = leaves.of_node >= 0
        at = np.searchsorted(instants, release_s) + 1
        self.units = np.zeros(shape, dtype=np.int64)
        self.nodes = np.zeros(shape, dtype=np.int64)
        np.add.at(self.units[0], leaves.of_node[on], free[on])
        np.add.at(self.nodes[0], leaves.of_node[on], free[on] > 0)
        later = on & more
        where = (np.minimum(at[later], shape[0] - 1), leaves.of_node[later])
        np.add.at(self.units, where, (idle - free)[later])
        np.add.at(self.nodes, where, free[later] == 0)
        self.units, self.nodes = self.units.cumsum(axis=0), self.nodes.cumsum(axis=0)
        self.ever = self.units[-1] > 0

    def choose(
        self,
        members: NDArray[np.int64],
        fixed: NDArray[np.int64],
        maximum: int,
        requested: SwitchRequest,
    ) -> Iterator[tuple[tuple[int, ...], tuple[int, int, int]]]:
        """Unions within one fabric: when the job fits, below how many switches, and the rest.

        One is searched around every leaf switch, at the first instant at which there is one.
        """
        others = members[~np.isin(members, fixed)]
        left = maximum - len(fixed)
        if not left or len(others) <= left:
            whole = np.sort(np.concatenate((fixed, others[:left])))
            if (enough := self._enough(whole, requested)).any():
                union = tuple(whole.tolist())
                yield union, self._rank(union, int(enough.argmax()), requested)
            return
        has_units, has_nodes = self.units[:, fixed].sum(axis=1), self.nodes[:, fixed].sum(axis=1)
        enough = (has_units[:, None] + _best(self.units[:, others], left) >= requested.units) & (
            has_nodes[:, None] + _best(self.nodes[:, others], left) >= requested.nodes
        )
        possible, first = np.flatnonzero(enough.any(axis=0)), enough.argmax(axis=0)
        above = self._leaves.above[others]
        unions: set[tuple[int, ...]] = set()
        for when in np.unique(first[possible]).tolist():
            seeds = possible[first[possible] == when]
            near = has_units[when] + _best_among(self.units[when, others], above, left)[seeds]
            spare = near - requested.units
            for seed in seeds[np.lexsort((spare, spare < 0))].tolist():
                union = self._around(others, seed, fixed, left, when=when, requested=requested)
                if union not in unions:
                    yield union, self._rank(union, when, requested)
                    unions.add(union)
                if len(unions) == MAX_UNIONS:
                    return

    def _around(
        self,
        others: NDArray[np.int64],
        seed: int,
        fixed: NDArray[np.int64],
        left: int,
        *,
        when: int,
        requested: SwitchRequest,
    ) -> tuple[int, ...]:
        """A leaf switch with its neighbours if the job fits there, else with the emptiest."""
        rest, centre, above = np.delete(others, seed), others[seed], self._leaves.above
        units = self.units[when, rest]
        for order in (np.lexsort((-units, above[rest] != above[centre])), np.argsort(-units)):
            union = np.concatenate((fixed, [centre], rest[order[: left - 1]]))
            if self._enough(union, requested, when).all():
                break
        return tuple(np.sort(union).tolist())

    def _enough(
        self, union: NDArray[np.int64], requested: SwitchRequest, when: int | None = None
    ) -> NDArray[np.bool_]:
        """Whether the job fits on a union, at one instant or at each of them."""
        at = slice(None) if when is None else slice(when, when + 1)
        enough: NDArray[np.bool_] = (self.units[at, union].sum(axis=1) >= requested.units) & (
            self.nodes[at, union].sum(axis=1) >= requested.nodes
        )
        return enough

    def _rank(
        self, union: tuple[int, ...], when: int, requested: SwitchRequest
    ) -> tuple[int, int, int]:
        members = list(union)
        apart = len(np.unique(self._leaves.above[members]))
        return when, apart, int(self.units[when, members].sum()) - requested.units


def _best(amounts: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """(n_instants, n) the largest sum of `count` columns of which this is one."""
    ranked = -np.sort(-amounts, axis=1)
    without = ranked[:, : count - 1].sum(axis=1, keepdims=True)
    if count == 1:
        return amounts
    among = amounts >= ranked[:, count - 2 : count - 1]
    best: NDArray[np.int64] = np.where(
        among, without + ranked[:, count - 1 : count], without + amounts
    )
    return best


def _best_among(
    amounts: NDArray[np.int64], group: NDArray[np.int64], count: int
) -> NDArray[np.int64]:
    """(n,) for each the largest sum of at most `count` of its group of which it is one."""
    order = np.lexsort((-amounts, group))
    ranked, where = amounts[order], group[order]
    fresh = np.concatenate(([True], where[1:] != where[:-1]))
    first = np.flatnonzero(fresh)[np.cumsum(fresh) - 1]
    last = np.append(np.flatnonzero(fresh)[1:], len(order))[np.cumsum(fresh) - 1]
    sums = np.concatenate(([0], ranked.cumsum()))
    among = np.arange(len(order)) - first < count
    top = sums[np.minimum(first + count, last)] - sums[first]
    rest = sums[np.minimum(first + count - 1, last)] - sums[first]
    best = np.empty_like(amounts)
    best[order] = np.where(among, top, ranked + rest)
    return best
