# SPDX-License-Identifier: Apache-2.0
"""Lowers FreePools to constraints and closures, and determines which jobs have access.

Rules
    1. A FreePool that keeps K of A available items is a constraint of A - K while it is in force.
       All jobs that use the resource count on it; only those without access are checked.
    2. A FreePool of nodes closes them, while it is in force, to all jobs without access.
    3. A job has access if it meets all parts of one of the conditions. Upper bounds apply to the
       whole nodes it takes, too; lower bounds to its request alone: taking more than requested
       gives no access.
    4. A condition on chunks holds for each chunk separately: chunks that meet it may be on the
       nodes, the job's others may not. A chunk is what must be together on one node
       (`bridge.planning.queue.layouts.Group`).
    5. A percentage is of what is available at present, rounded up.

Source: Keller, JSSPP 2017, sections 3 (FreePool), 5.1 (sRS + FreePool) and 5.4 (expensive nodes).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.model.rules.limits import TIME, Access, ConsumerKind, FreePool
from bridge.model.snapshot import Snapshot
from bridge.planning.requests.amounts import Amounts
from bridge.planning.requests.node_sets import members
from bridge.planning.site_rules.capacity_constraints import (
    UNBOUNDED,
    CapacityConstraintList,
    Mode,
    TermList,
)
from bridge.planning.site_rules.limits import Consumers, Horizon, in_force, simplified, steps_of


@dataclass(frozen=True)
class Closure:
    """Nodes that only jobs with access may use at certain times.

    Attributes:
        nodes: (n_nodes,) bool.
        windows: (n, 2) int64 starts and ends, ascending and disjoint.
        access: jobs with access, as text; empty: none.
    """

    name: str
    nodes: NDArray[np.bool_]
    windows: NDArray[np.int64]
    access: str = ""


@dataclass(frozen=True, slots=True)
class JobClosure:
    """A closure that excludes a job, or some of its chunks.

    Attributes:
        closure: position among the closures.
        chunks: conditions, as (column, least, most) each; a chunk that meets one of them has
            access. Empty: none has. Column -1: a resource that the cluster does not have.
    """

    closure: int
    chunks: tuple[tuple[tuple[int, int, int], ...], ...] = ()

    def shuts(self, want: Sequence[int]) -> bool:
        """Whether it excludes a chunk with this request."""
        return not any(
            all(
                minimum <= (want[column] if 0 <= column < len(want) else 0) <= maximum
                for column, minimum, maximum in condition
            )
            for condition in self.chunks
        )


JobClosures = tuple[JobClosure, ...]


@dataclass(frozen=True)
class AccessRequests:
    """Jobs to check for access: n of them.

    Attributes:
        who: for each kind (n,) the consumer of each job.
        used: (n, n_columns) int64, whole nodes included.
        requested: (n, n_columns) int64, without them.
        time_limit_s: (n,) int64.
        shortest_s: (n,) int64 what each may be cut to; a condition must hold for any such length.
    """

    who: dict[ConsumerKind, NDArray[np.int64]]
    used: NDArray[np.int64]
    requested: NDArray[np.int64]
    time_limit_s: NDArray[np.int64]
    shortest_s: NDArray[np.int64]


class LoweredFreePools:
    """The FreePools of one snapshot.

    Attributes:
        bounds_minimum: a condition states the least of something.
    """

    def __init__(
        self,
        pools: Sequence[FreePool],
        snapshot: Snapshot,
        *,
        amounts: Amounts,
        consumers: Consumers,
        horizon: Horizon,
        constraints: CapacityConstraintList,
    ) -> None:
        self._amounts = amounts
        self._consumers = consumers
        self._kept: list[tuple[FreePool, int, int]] = []  # pool, column, constraint
        self._closing: list[FreePool] = []
        self.bounds_minimum = any(
            bound.minimum for pool in pools for access in pool.access for bound in access.bounds
        )
        closures = []
        for pool in pools:
            opened = horizon.windows(pool.validity)
            if not len(opened):
                continue
            if pool.nodes is not None:
                self._closing.append(pool)
                inside = members(pool.nodes, snapshot)
                access = ", or ".join(str(one) for one in pool.access)
                closures.append(Closure(pool.name, inside, opened, access))
                continue
            column = amounts.column(pool.resource)
            if column is None:
                continue
            available = int(amounts.available[column])
            left = max(available - pool.keep.of(available, round_up=True), 0)
            starts = steps_of(horizon.now_s, [opened])
            steps = np.where(in_force(opened, starts), left, UNBOUNDED)
            label = f"{amounts.names[column]} that FreePool {pool.name} leaves to all"
            refusal = f"has no access to FreePool {pool.name}, which keeps all free" * (left == 0)
            constraint = constraints.add(
                *simplified(starts, steps), key=f"pool/{pool.name}", label=label, refusal=refusal
            )
            self._kept.append((pool, column, constraint))
        self.closures = tuple(closures)

    def add_terms(self, terms: TermList, requests: AccessRequests) -> None:
        """Adds the terms of pending jobs."""
        for pool, column, constraint in self._kept:
            amount = requests.used[:, column]
            jobs = np.flatnonzero(amount > 0)
            mode = np.where(self._lets_in(pool.access, requests)[jobs], Mode.COUNT, Mode.BOTH)
            terms.add(
                jobs,
                np.full(len(jobs), constraint, dtype=np.int64),
                amount[jobs],
                mode.astype(np.int8),
            )

    def count_running(self, terms: TermList, used: NDArray[np.int64]) -> None:
        """Adds the amounts of running jobs."""
        for _, column, constraint in self._kept:
            jobs = np.flatnonzero(used[:, column] > 0)
            count = len(jobs)
            terms.add(
                jobs,
                np.full(count, constraint, dtype=np.int64),
                used[jobs, column],
                np.full(count, Mode.COUNT, dtype=np.int8),
            )

    def closed_to(self, requests: AccessRequests) -> list[JobClosures]:
        """The closures for each job; jobs with equal requests share one."""
        n_jobs = len(requests.time_limit_s)
        columns: list[NDArray[np.bool_]] = []
        pools = []
        for at, pool in enumerate(self._closing):
            plain = [access for access in pool.access if not access.chunk]
            chunked = [access for access in pool.access if access.chunk]
            pools.append((at, [self._chunk(access) for access in chunked]))
            columns.append(self._lets_in(plain, requests))
            columns += [self._meets(access, requests) for access in chunked]
        results = np.array(columns, dtype=bool).reshape(len(columns), n_jobs).T
        known: dict[bytes, JobClosures] = {}
        found = []
        for row in results:
            key = row.tobytes()
            if key not in known:
                known[key] = tuple(_gates(pools, row.tolist()))
            found.append(known[key])
        return found

    def _chunk(self, access: Access) -> tuple[tuple[int, int, int], ...]:
        found = []
        for bound in access.chunk:
            column = self._amounts.column(bound.what)
            found.append((-1 if column is None else column, bound.minimum, bound.maximum))
        return tuple(found)

    def _lets_in(self, conditions: Sequence[Access], requests: AccessRequests) -> NDArray[np.bool_]:
        let_in = np.zeros(len(requests.time_limit_s), dtype=bool)
        for access in conditions:
            let_in |= self._meets(access, requests)
        return let_in

    def _meets(self, access: Access, requests: AccessRequests) -> NDArray[np.bool_]:
        """Which jobs meet the conditions on the whole job."""
        meets = np.ones(len(requests.time_limit_s), dtype=bool)
        for kind, names in (
            (ConsumerKind.USER, access.users),
            (ConsumerKind.ACCOUNT, access.accounts),
            (ConsumerKind.PARTITION, access.partitions),
        ):
            if names is not None:
                known = self._consumers.names[kind]
                numbers = [known[name] for name in sorted(names) if name in known]
                meets &= np.isin(requests.who[kind], np.array(numbers, dtype=np.int64))
        for bound in access.bounds:
            column = self._amounts.column(bound.what)
            if bound.what == TIME:
                minimum, maximum = requests.shortest_s, requests.time_limit_s
            elif column is not None:
                minimum, maximum = requests.requested[:, column], requests.used[:, column]
            else:
                minimum = maximum = np.zeros(len(meets), dtype=np.int64)
            meets &= (minimum >= bound.minimum) & (maximum <= bound.maximum)
        return meets


def _gates(
    pools: Sequence[tuple[int, list[tuple[tuple[int, int, int], ...]]]], results: list[bool]
) -> Iterator[JobClosure]:
    """The closures of a job with these verdicts: each pool for all of it, then by condition.

    A condition on chunks applies if the job meets the rest of its item.
    """
    rest = iter(results)
    for at, chunked in pools:
        open_to_all = next(rest)
        conditions = tuple(condition for condition in chunked if next(rest))
        if not open_to_all:
            yield JobClosure(at, conditions)
