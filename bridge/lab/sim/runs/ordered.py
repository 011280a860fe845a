# SPDX-License-Identifier: Apache-2.0
"""Replays a whole trace on counts under any order, with backfilling of any depth or with `search`.

The decisions are the policy's own: its order sees the waiting jobs as the cycle's would
(`_Queue`), and `search` runs the code that it runs in the cycle, on a queue of counts
(`_CountedQueue`). Only nodes, reasons, checks and site rules are left out, which cannot change a
start on a pool of identical one-processor nodes. `tests/unit/lab/sim/test_ordered.py` compares the
starts and promises of both engines.
"""

import time
from collections.abc import Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bridge.core import UNLIMITED, NodeProblem, plan_counts
from bridge.lab.sim.runs.backlog import Watch
from bridge.lab.sim.runs.counted import Counted, Running
from bridge.lab.sim.runs.simulation_result import Observe, SimulationResult
from bridge.lab.sim.workloads.system import System
from bridge.lab.sim.workloads.workload import Workload
from bridge.model.job import JobTable
from bridge.model.learnt import Learnt
from bridge.model.policy import PolicySpec
from bridge.model.snapshot import Snapshot
from bridge.planning.dispatch.account import Account
from bridge.policies.plan.search import Search, SearchedCycle
from bridge.registry import build
from bridge.state.accuracy import PromiseColumns
from bridge.units import NEVER, UNPLANNED

_BY_SUBMISSION = ("fcfs", "slurm", "pbs")
"""Orders that are the order of submission here: priorities fall with it, and nobody has shares."""
_PLANS = ("easy", "conservative", "search")
LARGE = 512
"""Processors from which `search` sees a pool as one node."""
_WIDTH = attrgetter("processors")
_NO_INSTANT = np.zeros(0, dtype=np.int64)


def unordered_because(spec: PolicySpec, system: System) -> str | None:
    """Why only the cycle can replay a policy; None: this module can."""
    if not system.pool:
        return "nodes described by --system are not counts"
    if spec.plan.name not in _PLANS:
        return f"plan {spec.plan.name} (only easy, conservative and search work on counts)"
    if "array_depth" in spec.plan.parameters:
        return "array_depth is a matter of the cycle"
    for stage, used in (("reshape", spec.reshape), ("share", spec.share)):
        if used.name != "none":
            return f"{stage} {used.name} changes jobs that run"
    return None


def replay_ordered(
    workload: Workload,
    system: System,
    spec: PolicySpec,
    *,
    seed: int = 0,
    placed: bool = False,
    watch: Watch | None = None,
    observe: Observe | None = None,
) -> SimulationResult:
    """Replays a workload on a pool.

    Args:
        spec: a policy for which `unordered_because` names nothing.
        seed: the seed of `search`, as that of the cycle's decider.
        placed: also determine which nodes each job held.
        watch: ends the run when its queue is hopeless; None: nothing does.
        observe: called with the progress after every decision.
    """
    kind = SearchedPool if spec.plan.name == "search" else OrderedPool
    run = kind(workload, system, spec, seed)
    run.watch, run.observe = watch, observe
    run.to_the_end()
    return run.result(system, placed=placed)


class _Columns:
    """The columns of some rows of a job table, each gathered when it is first read."""

    def __init__(self, jobs: JobTable, rows: NDArray[np.int64], takes_s: NDArray[np.int64]) -> None:
        self._jobs, self._rows = jobs, rows
        self.time_limit_s = takes_s

    def __len__(self) -> int:
        return len(self._rows)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._jobs, name)[self._rows]
        setattr(self, name, found)
        return found


class _View:
    """What order policies and `search` read of a snapshot."""

    def __init__(self, now_s: int, jobs: _Columns, system: System) -> None:
        self.now_s, self.jobs = now_s, jobs
        self.nodes, self.partitions = system.nodes, system.partitions


class OrderedPool(Counted):
    """A pool under an order and backfilling.

    Attributes:
        cpu_ms: CPU time of the plan stage, by decision.
    """

    is_one_node = False

    def __init__(self, workload: Workload, system: System, spec: PolicySpec, seed: int = 0) -> None:
        super().__init__(workload, system, spec)
        self.system, self.seed = system, seed
        self.promises = PromiseColumns(len(workload))
        self.cpu_ms: list[float] = []
        policy = build(spec)
        self._order = None if spec.order.name in _BY_SUBMISSION else policy.order
        self._plan = policy.plan
        depth = getattr(policy.plan, "depth", None)
        self._depth = UNLIMITED if depth is None else depth

    def decide(self, now_s: int) -> tuple[list[Running], int]:
        """Starts what the plan starts now, and announces the rest."""
        rows = np.array(self.waiting, dtype=np.int64)
        takes_s = self.all_take_s(rows)
        view = cast(Snapshot, _View(now_s, _Columns(self.jobs, rows, takes_s), self.system))
        order = np.arange(len(rows)) if self._order is None else self._order.order(view)
        began = time.process_time()
        queue = _CountedQueue(self, view, order, now_s)
        start_s = np.empty(len(rows), dtype=np.int64)
        start_s[order] = self.starts(queue, view)
        self.cpu_ms.append((time.process_time() - began) * 1e3)
        now = start_s == now_s
        later = ~now & (start_s != NEVER) & (start_s != UNPLANNED)
        begun = rows[now]
        started = [
            self.start(job, now_s, length_s)
            for job, length_s in zip(begun.tolist(), takes_s[now].tolist(), strict=True)
        ]
        if started:
            self.promised[begun] = self.promises.take(begun)
            self.waiting = rows[~now].tolist()
        self.promises.announce(rows[later], start_s[later], now_s)
        return started, int(start_s[later].min(initial=NEVER))

    def starts(self, queue: "_CountedQueue", view: Snapshot) -> NDArray[np.int64]:
        """The planned start of each row, by position."""
        del view
        return queue.starts(None, self._depth)

    def held(self, now_s: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The predicted ends of the running jobs, and their processors."""
        running, n = self.running.values(), len(self.running)
        end_s = np.fromiter(map(self.end_of, running), np.int64, n)
        widths = np.fromiter(map(_WIDTH, running), np.int64, n)
        return np.maximum(end_s, now_s + 1), widths


class SearchedPool(OrderedPool):
    """A pool under `search`.

    Attributes:
        bound: the promises on which bounds rest.
        account: the account of the waits, from the last decision.
        is_one_node: whether the kernel gets all processors as one node. Never with a budget: it
            counts steps, which depend on the number of nodes.
    """

    bound: Mapping[str, int] = MappingProxyType({})
    account = Learnt()

    def __init__(self, workload: Workload, system: System, spec: PolicySpec, seed: int = 0) -> None:
        super().__init__(workload, system, spec, seed)
        self._just_ended: list[tuple[str, int, int]] = []
        self.is_one_node = self.size >= LARGE and not cast(Search, self._plan).budget_ms

    def end(self, job: int, now_s: int) -> None:
        self._just_ended.append((self.jobs.id[job], self.running[job].start_s, now_s))
        super().end(job, now_s)

    def starts(self, queue: "_CountedQueue", view: Snapshot) -> NDArray[np.int64]:
        """As the policy would in the cycle: each has random numbers of its own."""
        rng = np.random.default_rng((self.seed, len(self.decision_ms) + 1))
        settings = cast(Search, self._plan)
        account = self._opened(settings)
        cycle = SearchedCycle(settings, view, queue, None, self.bound, account=account)
        found = cycle.found(int(rng.integers(1 << 63)))
        self.bound = cycle.promised
        if account is not None:
            self.account = account.done()
        return found.starts.start_s

    def _opened(self, settings: Search) -> Account | None:
        """The account, with the jobs that have ended since the last decision."""
        ended, self._just_ended = self._just_ended, []
        if not settings.keeps_account:
            return None
        account = Account(self.account)
        if ended:
            account.end(*zip(*ended, strict=True))
        account.running = self._starts_by_id
        return account

    def _starts_by_id(self) -> dict[str, int]:
        return {self.jobs.id[job]: one.start_s for job, one in self.running.items()}


class _Planned:
    """One schedule of a queue of counts, by position."""

    def __init__(self, start_s: NDArray[np.int64], length_s: NDArray[np.int64]) -> None:
        self.start_s = start_s
        self.end_s = np.where((start_s == NEVER) | (start_s == UNPLANNED), 0, start_s + length_s)


class _CountedQueue:
    """A pool's waiting jobs in the stage order; a `bridge.policies.plan.search.SearchQueue`."""

    def __init__(
        self, pool: OrderedPool, view: Snapshot, order: NDArray[np.int64], now_s: int
    ) -> None:
        self._pool, self._view, self._now_s = pool, view, now_s
        self._size = pool.size
        self.job = order
        self.length_s = view.jobs.time_limit_s[order]
        self.min_nodes = view.jobs.min_nodes[order]
        self._held = pool.held(now_s)

    def schedule(self, order: NDArray[np.int64] | None = None) -> _Planned:
        """Plans all rows from scratch, in an order of the positions."""
        return _Planned(self.starts(order, UNLIMITED), self.length_s)

    def starts(self, order: NDArray[np.int64] | None, depth: int) -> NDArray[np.int64]:
        """The starts by position, if `depth` rows may hold a later one."""
        at: NDArray[np.int64] | slice = slice(None) if order is None else order
        start_s = np.empty(len(self.job), dtype=np.int64)
        start_s[at] = plan_counts(
            self._now_s, self._size, *self._held, self.min_nodes[at], self.length_s[at],
            np.zeros(len(self.job), dtype=np.int64), depth,
        )  # fmt: skip
        return start_s

    def problem(self, order: NDArray[np.int64]) -> NodeProblem:
        """What `plan_nodes` plans; which nodes the running jobs hold does not matter."""
        take, n = self.job[order], len(order)
        return NodeProblem(
            now=self._now_s, depth=UNLIMITED, select=0,
            run_end=self._held[0],
            run_counter=np.zeros((len(self._held[0]), 0), dtype=np.int64),
            blackout_class=np.zeros(0, dtype=np.int32),
            blackout_start=_NO_INSTANT, blackout_end=_NO_INSTANT,
            counter_capacity=_NO_INSTANT,
            job_counter=np.zeros((n, 0), dtype=np.int64),
            alt_indptr=np.arange(n + 1, dtype=np.int64),
            alt_class=np.zeros(n, dtype=np.int32),
            alt_time_limit_s=self.length_s[order],
            tasks=np.zeros(n, dtype=np.int32),
            per_task=np.ascontiguousarray(self._view.jobs.per_task[take]),
            max_tasks_per_node=np.zeros(n, dtype=np.int32),
            not_before=np.zeros(n, dtype=np.int64),
            width_rule=np.zeros(n, dtype=np.int8),
            required=np.full(n, -1, dtype=np.int32),
            **(self._one_node(order) if self._pool.is_one_node else self._nodes(order)),
        )  # fmt: skip

    def _nodes(self, order: NDArray[np.int64]) -> dict[str, Any]:
        """The machine and what jobs take of it, with a node for each processor."""
        widths, nodes = self._held[1], self._view.nodes
        width = self.min_nodes[order].astype(np.int32)
        held = int(widths.sum())
        return {
            **_machine(nodes.capacity),
            "run_indptr": np.concatenate(([0], np.cumsum(widths))).astype(np.int64),
            "run_nodes": np.arange(held, dtype=np.int32),
            "run_use": np.ones((held, nodes.capacity.shape[1]), dtype=np.int64),
            "run_exclusive": np.ones(len(widths), dtype=bool),
            "alt_min_nodes": width, "alt_max_nodes": width,
            "per_node": np.ascontiguousarray(self._view.jobs.per_node[self.job[order]]),
            "exclusive": np.ones(len(order), dtype=bool),
        }  # fmt: skip

    def _one_node(self, order: NDArray[np.int64]) -> dict[str, Any]:
        """The same with all processors on one node: the same starts."""
        widths, capacity = self._held[1], self._view.nodes.capacity
        width = self.min_nodes[order]
        return {
            **_machine(capacity.sum(axis=0, keepdims=True)),
            "run_indptr": np.arange(len(widths) + 1, dtype=np.int64),
            "run_nodes": np.zeros(len(widths), dtype=np.int32),
            "run_use": np.outer(widths, capacity[0]),
            "run_exclusive": np.zeros(len(widths), dtype=bool),
            "alt_min_nodes": np.ones(len(order), dtype=np.int32),
            "alt_max_nodes": np.ones(len(order), dtype=np.int32),
            "per_node": np.outer(width, capacity[0]),
            "exclusive": np.zeros(len(order), dtype=bool),
        }


def _machine(capacity: NDArray[np.int64]) -> dict[str, Any]:
    """Columns of nodes that are all of one class."""
    nodes, words = len(capacity), -(-len(capacity) // 64)
    return {
        "capacity": capacity,
        "node_rank": np.zeros(nodes, dtype=np.int32),
        "class_nodes": _all_of(nodes, words),
        "blackout_nodes": np.zeros((0, words), dtype=np.uint64),
        "required_nodes": np.zeros((0, words), dtype=np.uint64),
    }


def _all_of(nodes: int, words: int) -> NDArray[np.uint64]:
    """(1, words) a set of all nodes."""
    bits: Sequence[int] = [(1 << min(64, nodes - 64 * word)) - 1 for word in range(words)]
    return np.array([bits], dtype=np.uint64)
