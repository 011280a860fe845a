# SPDX-License-Identifier: Apache-2.0
"""Lowers FreePools to ceilings and closures, and says which jobs they let in.

Rules
    1. A FreePool that keeps K of A available items is a ceiling of A - K while it is in force. All
       jobs that use the resource count on it; only those without access must stay under it.
    2. A FreePool of nodes closes them, while it is in force, to all jobs without access.
    3. A job has access if it meets all that one of the conditions states. What it asks for counts,
       and the whole nodes it takes.
    4. A percentage is of what is available at present, rounded up: so much is kept at least.

Source: Keller, JSSPP 2017, sections 3 (FreePool) and 5.1 (sRS + FreePool).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.model.limits import TIME, Access, ConsumerKind, FreePool, NodeSet
from bridge.model.snapshot import Snapshot
from bridge.planning.amounts import Amounts
from bridge.planning.ceilings import UNBOUNDED, CeilingList, Mode, TermList
from bridge.planning.features import parse_features
from bridge.planning.limits import Consumers, Horizon, in_force, simplified, steps_of


@dataclass(frozen=True)
class Closure:
    """Nodes that only jobs with access may use at certain times.

    Attributes:
        name: of the FreePool.
        nodes: (n_nodes,) bool.
        windows: (n, 2) int64 starts and ends, ascending and disjoint.
    """

    name: str
    nodes: NDArray[np.bool_]
    windows: NDArray[np.int64]


@dataclass(frozen=True)
class Asked:
    """Jobs at the gates: n of them.

    Attributes:
        who: for each kind (n,) the consumer of each job.
        used: (n, n_columns) int64.
        time_limit_s: (n,) int64.
    """

    who: dict[ConsumerKind, NDArray[np.int64]]
    used: NDArray[np.int64]
    time_limit_s: NDArray[np.int64]


class LoweredFreePools:
    """The FreePools of one snapshot.

    Attributes:
        closures: those of nodes.
    """

    def __init__(
        self,
        pools: Sequence[FreePool],
        snapshot: Snapshot,
        *,
        amounts: Amounts,
        consumers: Consumers,
        horizon: Horizon,
        ceilings: CeilingList,
    ) -> None:
        self._amounts = amounts
        self._consumers = consumers
        self._kept: list[tuple[FreePool, int, int]] = []  # pool, column, ceiling
        self._closing: list[FreePool] = []
        closures = []
        for pool in pools:
            opened = horizon.windows(pool.validity)
            if not len(opened):
                continue
            if pool.nodes is not None:
                self._closing.append(pool)
                closures.append(Closure(pool.name, _members(pool.nodes, snapshot, amounts), opened))
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
            ceiling = ceilings.add(
                *simplified(starts, steps), key=f"pool/{pool.name}", label=label, refusal=refusal
            )
            self._kept.append((pool, column, ceiling))
        self.closures = tuple(closures)

    def add_terms(self, terms: TermList, asked: Asked) -> None:
        """Adds the terms of pending jobs."""
        for pool, column, ceiling in self._kept:
            amount = asked.used[:, column]
            jobs = np.flatnonzero(amount > 0)
            mode = np.where(self._lets_in(pool, asked)[jobs], Mode.COUNT, Mode.BOTH)
            terms.add(
                jobs,
                np.full(len(jobs), ceiling, dtype=np.int64),
                amount[jobs],
                mode.astype(np.int8),
            )

    def count_running(self, terms: TermList, used: NDArray[np.int64]) -> None:
        """Adds what running jobs count."""
        for _, column, ceiling in self._kept:
            jobs = np.flatnonzero(used[:, column] > 0)
            count = len(jobs)
            terms.add(
                jobs,
                np.full(count, ceiling, dtype=np.int64),
                used[jobs, column],
                np.full(count, Mode.COUNT, dtype=np.int8),
            )

    def closed_to(self, asked: Asked) -> NDArray[np.bool_]:
        """(n, n_closures) bool: which closures keep which jobs out."""
        n_jobs = len(asked.time_limit_s)
        verdicts = [~self._lets_in(pool, asked) for pool in self._closing]
        return np.array(verdicts, dtype=bool).reshape(len(self._closing), n_jobs).T

    def _lets_in(self, pool: FreePool, asked: Asked) -> NDArray[np.bool_]:
        let_in = np.zeros(len(asked.time_limit_s), dtype=bool)
        for access in pool.access:
            let_in |= self._meets(access, asked)
        return let_in

    def _meets(self, access: Access, asked: Asked) -> NDArray[np.bool_]:
        meets = np.ones(len(asked.time_limit_s), dtype=bool)
        for kind, names in (
            (ConsumerKind.USER, access.users),
            (ConsumerKind.ACCOUNT, access.accounts),
            (ConsumerKind.PARTITION, access.partitions),
        ):
            if names is not None:
                known = self._consumers.names[kind]
                numbers = [known[name] for name in sorted(names) if name in known]
                meets &= np.isin(asked.who[kind], np.array(numbers, dtype=np.int64))
        for what, most in access.most:
            if what == TIME:
                meets &= asked.time_limit_s <= most
            elif (column := self._amounts.column(what)) is not None:
                meets &= asked.used[:, column] <= most
        return meets


def _members(nodes: NodeSet, snapshot: Snapshot, amounts: Amounts) -> NDArray[np.bool_]:
    """Which nodes are meant; a resource that the cluster does not have is on none."""
    table = snapshot.nodes
    meant = np.ones(len(table), dtype=bool)
    if nodes.names:
        meant &= np.isin(np.array(table.names), np.array(nodes.names))
    if nodes.features:
        alternatives = parse_features(nodes.features)
        verdict = {
            features: any(matches(features) for matches in alternatives)
            for features in set(table.features)
        }
        meant &= np.array([verdict[features] for features in table.features], dtype=bool)
    if nodes.having:
        column = amounts.column(nodes.having)
        on_nodes = column is not None and column < len(snapshot.resources)
        meant &= (table.capacity[:, column] > 0) if on_nodes else False
    return meant
