# SPDX-License-Identifier: Apache-2.0
"""`bench.py planning`: times the book on a system like OpenCCS's and on queues.

The system is OCuLUS, as Keller describes it (JSSPP 2017, section 6): 616 nodes, 9,920 cores, 32
GPUs, 8 Xeon Phis, nodes of 64 GB, 256 GB and 1 TB; or any described one (see
`bridge.lab.sim.workloads.system`). The jobs are drawn from the paper's Example 3: its ten core
counts, each as often as such jobs stand in the queue at any time (arrivals times mean waiting
time), with walltimes around the mean there (a tenth to three times of it, in round numbers,
as users ask).
15,000 of them fill about nine weeks (the paper's plan: eight to ten). Jobs of 16 cores and more
ask for chunks of 16, `place=free`; some small ones ask for a GPU or a Phi. Every job counts on the
core limit of its user and on a FreePool that keeps a fifth of the cores free for small jobs in the
daytime of working days; so each plan obeys 201 constraints. Nodes with a GPU or a Phi keep two
cores for jobs that use it.

Figures:
    replans_per_s    jobs revoked, searched again from now and booked again, per second, over whole
                     passes through the plan after a running job has ended early. With the jobs
                     moved, since those cost more.
    array_10k_s      one array of 10,000 one-core tasks planned into a book of 5,000 jobs.
    recover_5000_s   time to rebuild a book of 5,000 jobs from columns, including requests and
                     constraints, with each booking checked.
    peak_mib         peak memory of the whole process, including Python; book_mib is the growth
                     while the book of all the jobs was made.
    table            seconds to plan a queue of `bench plan`'s shared jobs on 1,000 nodes, and the
                     ratio to `plan_nodes` for the same queue in the same run (1: as fast).

The paper's own figures, measured on its own machine: 500 replans per second, 30 s, 20 s, 6 GB.
"""

import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bridge.core import (
    NEVER,
    UNLIMITED,
    Arrangement,
    Book,
    BookPlan,
    TermMode,
    pack_nodes,
    plan_nodes,
)
from bridge.lab.sim.workloads.system import System
from policy_bench.workloads import QueueShape, node_problem, queue, shares

Column: TypeAlias = NDArray[np.int64]

_CORES_PER_CHUNK: Final = 16
_MIB_PER_CORE: Final = np.array([1024, 2048, 3072])
_HOUR_S: Final = 3600
_DAY_S: Final = 24 * _HOUR_S
# Example 3: cores, jobs a year, mean walltime in minutes, mean waiting time in hours.
_MIX: Final = np.array([
    (16, 57_516, 600, 7), (32, 9_701, 1_490, 20), (1_024, 277, 1_140, 210), (768, 468, 600, 298),
    (64, 3_883, 780, 11), (128, 14_002, 60, 5), (256, 684, 780, 14), (1_536, 77, 960, 550),
    (1, 1_480_565, 60, 2), (512, 151, 960, 17),
])  # fmt: skip
_OF_MEAN: Final = np.array([0.1, 0.25, 0.5, 1, 2, 3])
_OF_MEAN_WEIGHT: Final = np.array([0.15, 0.2, 0.2, 0.2, 0.15, 0.1])
_USERS: Final = 200
_POOL: Final = _USERS  # the constraint after those of the users


@dataclass(frozen=True)
class PlannedMachine:
    """The machine that is planned.

    Attributes:
        capacity: (n_nodes, n_res): cores, MiB, then countable extras.
        rank: (n_nodes,) cheap nodes first: without extras, then by size.
    """

    name: str
    capacity: Column

    @property
    def cores(self) -> int:
        """Cores of all nodes."""
        return int(self.capacity[:, 0].sum())

    @property
    def rank(self) -> NDArray[np.int32]:
        """(n_nodes,) cheap nodes first: those without extras, then by memory."""
        extras = np.where(self.capacity[:, 2:].any(axis=1), 1_000, 0)
        return np.asarray(extras + self.capacity[:, 1] // 65_536, dtype=np.int32)

    def empty_book(self) -> Book:
        """A book with one class of all nodes, cores kept for extras, and all constraints."""
        nodes, n_res = self.capacity.shape
        protections = []
        for extra in range(2, n_res):
            keep = np.zeros((nodes, n_res), dtype=np.int64)
            keep[self.capacity[:, extra] > 0, 0] = 2
            protections.append((extra, keep))
        book = Book(0, self.capacity, self.rank, protections)
        book.add_class(pack_nodes(np.ones(nodes, dtype=np.bool_)))
        always = np.zeros(1, dtype=np.int64)
        for _ in range(_USERS):
            book.add_constraint(always, np.array([max(2_048, self.cores // 4)]))
        days = np.array([day * _DAY_S for day in range(84) if day % 7 < 5], dtype=np.int64)
        starts = np.sort(np.concatenate([days + 8 * _HOUR_S, days + 18 * _HOUR_S]))
        kept = np.where(np.arange(len(starts)) % 2 == 0, self.cores // 5, 0)
        book.add_constraint(
            np.concatenate([always, starts]), self.cores - np.concatenate([always, kept])
        )
        return book


def openccs() -> PlannedMachine:
    """OCuLUS by its published totals; how many nodes are of which kind is ours."""
    kinds = [
        (552, (16, 65_536, 0, 0)),
        (20, (16, 262_144, 0, 0)),
        (32, (16, 65_536, 1, 0)),
        (8, (16, 65_536, 0, 1)),
        (4, (32, 1_048_576, 0, 0)),
    ]
    rows = [row for count, row in kinds for _ in range(count)]
    return PlannedMachine("openccs", np.array(rows, dtype=np.int64))


def machine_of(system: System) -> PlannedMachine:
    """A described system."""
    return PlannedMachine(system.name, np.ascontiguousarray(system.nodes.capacity, dtype=np.int64))


@dataclass(frozen=True)
class QueuedJobs:
    """Jobs as columns, before their requests are known to a book."""

    chunks: Column
    want: Column  # (n, n_res)
    arrangement: NDArray[np.int8]
    length_s: Column
    user: NDArray[np.int32]

    def __len__(self) -> int:
        """How many."""
        return len(self.chunks)

    def cores(self) -> Column:
        """(n,) cores of each job."""
        return self.chunks * self.want[:, 0]

    def requests(self, book: Book) -> NDArray[np.int32]:
        """(n,) each job's request in a book."""
        first = np.zeros(1, dtype=np.int32)
        known: dict[tuple[int, ...], int] = {}
        rows = np.column_stack([self.chunks, self.arrangement, self.want]).tolist()
        found = np.empty(len(self), dtype=np.int32)
        for j, row in enumerate(map(tuple, rows)):
            if row not in known:
                known[row] = book.add_request(
                    self.chunks[j : j + 1], self.want[j : j + 1], first, row[1]
                )
            found[j] = known[row]
        return found

    def terms(self) -> dict[str, Any]:
        """Each job counts on its user's limit and on the pool, whose cores small ones may use."""
        cores, n = self.cores(), len(self)
        small = (cores < 4) & (self.length_s <= _HOUR_S)
        return {
            "term_indptr": np.arange(0, 2 * n + 1, 2, dtype=np.int64),
            "term_constraint": np.column_stack([self.user, np.full(n, _POOL, np.int32)]).ravel(),
            "term_amount": np.repeat(cores, 2),
            "term_mode": np.column_stack(
                [np.full(n, TermMode.BOTH, np.int8), np.where(small, TermMode.COUNT, TermMode.BOTH)]
            ).astype(np.int8).ravel(),
        }  # fmt: skip


def example_3(machine: PlannedMachine, n: int, seed: int) -> QueuedJobs:
    """Draws jobs from the paper's Example 3, none larger than half the machine."""
    rng = np.random.default_rng(seed)
    waiting = _MIX[:, 1] * _MIX[:, 3]
    which = rng.choice(len(_MIX), n, p=waiting / waiting.sum())
    cores = np.minimum(_MIX[which, 0], max(1, machine.cores // 2))
    per_chunk = np.minimum(cores, min(_CORES_PER_CHUNK, int(machine.capacity[:, 0].min())))
    minutes = _MIX[which, 2] * rng.choice(_OF_MEAN, n, p=_OF_MEAN_WEIGHT / _OF_MEAN_WEIGHT.sum())
    want = np.zeros((n, machine.capacity.shape[1]), dtype=np.int64)
    want[:, 0] = per_chunk
    want[:, 1] = np.minimum(
        per_chunk * rng.choice(_MIB_PER_CORE, n), int(machine.capacity[:, 1].min())
    )
    for extra in range(2, machine.capacity.shape[1]):
        want[:, extra] = (cores <= per_chunk) & (rng.random(n) < 0.01)
    return QueuedJobs(
        cores // per_chunk,
        want,
        np.full(n, Arrangement.FREE, np.int8),
        (np.ceil(minutes / 10) * 600).astype(np.int64),
        rng.integers(0, _USERS, n, dtype=np.int32),
    )


def plan(book: Book, jobs: QueuedJobs, first_job: int) -> BookPlan:
    """Plans jobs in order, numbered from `first_job`."""
    n = len(jobs)
    return book.plan_many(
        job=np.arange(first_job, first_job + n, dtype=np.int64),
        request=jobs.requests(book),
        length=jobs.length_s,
        not_before=np.zeros(n, dtype=np.int64),
        latest=np.full(n, NEVER, dtype=np.int64),
        last=np.zeros(n, dtype=np.bool_),
        **jobs.terms(),
        reasons=False,
    )


def _replans(book: Book, passes: int, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    seconds = 0.0
    replans = moved = 0
    for _ in range(passes):
        rows = book.bookings()
        running = rows.job[rows.start == book.now]
        book.revoke(int(rng.choice(running)))
        later = rows.start > book.now
        jobs, before = rows.job[later], rows.start[later]
        none = np.zeros(len(jobs), dtype=np.int64)
        began = time.perf_counter()
        after = book.replan_many(jobs, none)
        seconds += time.perf_counter() - began
        replans += len(jobs)
        moved += int((after < before).sum())
    return {
        "replans_per_s": round(replans / seconds, 1) if seconds else 0.0,
        "replans": replans,
        "replans_moved": moved,
    }


def _recovery(machine: PlannedMachine, jobs: QueuedJobs, book: Book) -> float:
    rows = book.bookings(np.arange(len(jobs), dtype=np.int64))
    began = time.perf_counter()
    again = machine.empty_book()
    booked = again.book_many(
        job=rows.job,
        request=jobs.requests(again),
        start=rows.start,
        length=rows.end - rows.start,
        indptr=rows.indptr,
        nodes=rows.nodes,
        groups=rows.groups,
        chunks=rows.chunks,
        **jobs.terms(),
    )
    seconds = time.perf_counter() - began
    if not booked.all():
        raise AssertionError("a booking of the recovered book does not fit")
    return seconds


def _resident_bytes() -> int:
    """The memory that this process occupies."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def measure_system(machine: PlannedMachine, jobs: int, seed: int) -> dict[str, Any]:
    """Measures the paper's figures.

    Args:
        machine: where.
        jobs: how many are in the plan whose jobs are replanned and whose memory is measured.
        seed: of the jobs.

    Returns:
        The figures of the module's text, and what they are about.
    """
    queue_of_all = example_3(machine, jobs, seed)
    before = _resident_bytes()
    book = machine.empty_book()
    began = time.perf_counter()
    starts = plan(book, queue_of_all, 0).start
    plan_s = time.perf_counter() - began
    grown = _resident_bytes() - before
    planned = starts[starts != NEVER]
    replanned = _replans(book, 5, seed)

    few = example_3(machine, 5_000, seed)
    half = machine.empty_book()
    plan(half, few, 0)
    recover_s = _recovery(machine, few, half) if len(half) == len(few) else None
    array = QueuedJobs(
        np.ones(10_000, dtype=np.int64),
        np.tile(np.array([1, 1024] + [0] * (machine.capacity.shape[1] - 2)), (10_000, 1)),
        np.zeros(10_000, np.int8),
        np.full(10_000, _HOUR_S, dtype=np.int64),
        np.zeros(10_000, np.int32),
    )
    began = time.perf_counter()
    plan(half, array, 5_000)
    array_s = time.perf_counter() - began
    return {
        "system": machine.name,
        "nodes": len(machine.capacity),
        "cores": machine.cores,
        "jobs": jobs,
        "jobs_booked": len(planned),
        "plan_s": round(plan_s, 4),
        "plan_span_days": round(float(planned.max()) / _DAY_S, 2),
        **replanned,
        "array_10k_s": round(array_s, 4),
        "recover_5000_s": None if recover_s is None else round(recover_s, 4),
        "book_mib": round(grown / 2**20, 1),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def measure_table(
    shape: QueueShape, jobs: int, nodes: int, *, against: bool, repeats: int
) -> dict[str, Any]:
    """Times the book, and `plan_nodes` by turns with it, on shared nodes.

    Args:
        shape: which queue.
        jobs: number of jobs.
        nodes: number of nodes.
        against: whether `plan_nodes` plans them, too; its starts must be the same.
        repeats: the least of so many times counts.

    Returns:
        One cell: seconds and the ratio.
    """
    _, limit_s = queue(shape, jobs, nodes, 1)
    few, per_node = shares(shape, jobs, 1)
    problem = node_problem(nodes, few, limit_s, per_node, UNLIMITED)
    task = QueuedJobs(
        few,
        per_node,
        np.full(jobs, Arrangement.SCATTER, np.int8),
        limit_s,
        np.zeros(jobs, np.int32),
    )
    nothing = np.zeros(0, dtype=np.int64)
    book_s, nodes_s = [], []
    for _ in range(repeats):
        book = Book(0, problem.capacity, problem.node_rank)
        book.add_class(problem.class_nodes[0])
        requests = task.requests(book)
        began = time.perf_counter()
        planned = book.plan_many(
            job=np.arange(jobs, dtype=np.int64),
            request=requests,
            length=limit_s,
            not_before=np.zeros(jobs, dtype=np.int64),
            latest=np.full(jobs, NEVER, dtype=np.int64),
            last=np.zeros(jobs, dtype=np.bool_),
            term_indptr=np.zeros(jobs + 1, dtype=np.int64),
            term_constraint=nothing.astype(np.int32),
            term_amount=nothing,
            term_mode=nothing.astype(np.int8),
            reasons=False,
        )
        book_s.append(time.perf_counter() - began)
        if against:
            began = time.perf_counter()
            same = plan_nodes(problem)
            nodes_s.append(time.perf_counter() - began)
            if not np.array_equal(same.start, planned.start):
                raise AssertionError("plan_nodes and the book disagree")
    cell: dict[str, Any] = {"shape": shape.value, "jobs": jobs, "nodes": nodes}
    cell["book_s"] = round(min(book_s), 4)
    if against:
        cell["plan_nodes_s"] = round(min(nodes_s), 4)
        cell["ratio"] = round(min(book_s) / min(nodes_s), 3)
    return cell


def measure_tables() -> list[dict[str, Any]]:
    """The table: clustered and log-uniform queues of 1,000 to 100,000 jobs on 1,000 nodes."""
    return [
        measure_table(
            shape, jobs, 1_000, against=jobs <= 10_000, repeats=3 if jobs <= 10_000 else 1
        )
        for shape in QueueShape
        for jobs in (1_000, 10_000, 100_000)
    ]
