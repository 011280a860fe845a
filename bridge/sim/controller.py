# SPDX-License-Identifier: Apache-2.0
"""The simulated controller, the authority on queue and nodes. It checks every plan.

Like slurmctld it reports its state (a `Snapshot`), receives a `Plan`, checks every start against
its own records, applies the valid ones and refuses the others, each with a reason.

Rules
    1. A plan made for another second is stale and refused as a whole; so is one with inconsistent
       columns.
    2. A start is refused unless the job is pending, and its nodes exist, are usable, belong to the
       partition, match the request (number, features, names, tasks on each), and have room for it.
       A moldable job may get any number of nodes that it allows.
    3. A job holds its nodes from its start until it ends, is cancelled, or loses a node. A job that
       loses a node is requeued at its old position and starts from the beginning.
    4. A resize is refused unless the job runs, is malleable and not adapting, and all added nodes
       are free. Added nodes belong to the job at once. Removed nodes stay with it until the time
       that the plan states; until then it is adapting.
"""

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import NONE_ENDED, EndedTable, Ending, JobTable, RunningTable
from bridge.model.plan import Plan
from bridge.model.resizes import Resizes
from bridge.model.snapshot import Reservation, Snapshot
from bridge.planning.queue.implied_switches import imply
from bridge.planning.requests.features import parse_features
from bridge.sim.allocation import Allocation
from bridge.sim.requests import requests
from bridge.sim.system import System
from bridge.sim.workload import Workload
from bridge.units import NEVER

_NO_LICENCES = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Refusal:
    """A start, or a whole plan (`job` None), that the controller did not apply."""

    now_s: int
    job: str | None
    why: str

    def __str__(self) -> str:
        return f"at {self.now_s}: {f'job {self.job}' if self.job else 'plan'}: {self.why}"


class _Columns:
    """Rows of a job table; a column with equal values is sliced instead of gathered, for speed."""

    def __init__(self, table: JobTable) -> None:
        columns = {field.name: getattr(table, field.name) for field in fields(table)}
        self._same = {
            name: column
            for name, column in columns.items()
            if name != "version" and len(column) and _is_constant(column)
        }
        self._varied = {name: c for name, c in columns.items() if name not in self._same}

    def rows(self, rows: NDArray[np.int64]) -> JobTable:
        count = len(rows)
        columns = {name: column[:count] for name, column in self._same.items()}
        for name, column in self._varied.items():
            columns[name] = column.take(rows, axis=0)
        return JobTable.of_columns(columns)


def _is_constant(column: NDArray[np.generic]) -> bool:
    if column.dtype == object:
        return all(value == column[0] for value in column)
    return bool((column == column[0]).all())


class Controller:
    """Queue and nodes at one instant; jobs are named by their row in the workload.

    Attributes:
        waiting: pending jobs in order of submission.
        running: the allocation of each running job, in order of start.
        refusals: oldest first.
        reservations: that have not ended; jobs of a workload run outside of them.
    """

    def __init__(self, workload: Workload, system: System) -> None:
        self.workload, self.system = workload, system
        jobs = requests(workload, system)
        self.jobs = replace(jobs, version=jobs.version.copy())  # `requeue` changes it
        self.nodes = system.nodes
        self.waiting: list[int] = []
        self.running: dict[int, Allocation] = {}
        self.refusals: list[Refusal] = []
        self.reservations: tuple[Reservation, ...] = ()
        self.free = system.nodes.capacity.copy()
        self._holders = np.zeros(len(system.nodes), dtype=np.int64)
        self._whole = np.zeros(len(system.nodes), dtype=bool)
        self._ended: list[tuple[int, int, int, Ending]] = []
        self._generation = 0
        self._shown: list[int] = []
        self._shown_running: list[int] = []
        self._changed: list[int] = []
        self._nothing = (
            np.zeros(0, dtype=np.int32),
            np.zeros((0, len(system.resources)), dtype=np.int64),
        )
        self._shown_s = 0
        self._columns = _Columns(self.jobs)
        self._same = {  # of running jobs
            name: column
            for name in ("id", "name", "user", "account")
            if len(column := getattr(self.jobs, name)) and _is_constant(column)
        }
        self._numbers = np.zeros((len(workload), 5), dtype=np.int64)
        self._queue: JobTable | None = None
        asked = (
            self.jobs.min_nodes, self.jobs.max_nodes, self.jobs.time_limit_s, self.jobs.tasks,
            self.jobs.max_tasks_per_node,
        )  # fmt: skip
        self._requests = list(zip(*(column.tolist() for column in asked), strict=True))
        self._table: RunningTable | None = None
        self._unread: tuple[Plan, int, str | None] | None = None
        self._in_partition = np.zeros((len(system.partitions), len(system.nodes)), dtype=bool)
        for position, partition in enumerate(system.partitions):
            self._in_partition[position, partition.nodes] = True

    @property
    def used_processors(self) -> int:
        """Processors that jobs hold."""
        return int((self.system.nodes.capacity[:, 0] - self.free[:, 0]).sum())

    # ------------------------------------------------------------ events

    def submit(self, job: int) -> None:
        """Puts a job into the queue, at its place by submission."""
        insort(self.waiting, job)

    def release(self, job: int) -> Allocation:
        """Frees a running job's nodes: it ended, was cancelled, or lost a node."""
        held = self.running.pop(job)
        self._table = None
        self._give_back(held.nodes, held.use, held.exclusive)
        if held.adaptation is not None:
            self._give_back(held.adaptation.nodes, held.adaptation.use, held.exclusive)
        return held

    def _take(self, nodes: NDArray[np.int32], use: NDArray[np.int64], exclusive: bool) -> None:
        self.free[nodes] -= use
        self._holders[nodes] += 1
        self._whole[nodes] = exclusive

    def _give_back(self, nodes: NDArray[np.int32], use: NDArray[np.int64], exclusive: bool) -> None:
        self.free[nodes] += use
        self._holders[nodes] -= 1
        if exclusive:
            self._whole[nodes] = False

    def next_adapted_s(self) -> int:
        """When the next change of width is complete; NEVER: none is in progress."""
        due = (
            held.adaptation.by_s for held in self.running.values() if held.adaptation is not None
        )
        return min(due, default=NEVER)

    def finish_adaptations(self, now_s: int) -> list[int]:
        """Ends the changes of width that are complete by now; returns the jobs."""
        done = [
            job
            for job, held in self.running.items()
            if held.adaptation is not None and held.adaptation.by_s <= now_s
        ]
        for job in done:
            held = self.running[job]
            assert held.adaptation is not None
            self._give_back(held.adaptation.nodes, held.adaptation.use, held.exclusive)
            self._hold(job, replace(held, adaptation=None))
        return done

    def end(self, job: int, now_s: int, ending: Ending) -> None:
        """Records a running job's end; the next snapshot reports it."""
        held = self.release(job)
        if now_s > held.start_s:
            self._ended.append((job, held.start_s, now_s, ending))

    def set_usable(self, node: int, usable: bool) -> None:
        """Takes a node out of service or returns it; its jobs are not changed."""
        column, states = self.nodes.usable.copy(), list(self.nodes.state)
        column[node], states[node] = usable, "UP" if usable else "DOWN"
        self.nodes = replace(self.nodes, usable=column, state=tuple(states))

    def reserve(self, reservation: Reservation) -> str:
        """Makes a reservation, as Slurm would; returns why not, empty if it is made."""
        if any(item.name == reservation.name for item in self.reservations):
            return "Reservation name duplicates existing reservation"
        for item in self.reservations:
            if (
                item.start_s < reservation.end_s
                and item.end_s > reservation.start_s
                and np.isin(item.nodes, reservation.nodes).any()
            ):
                return "Requested reservation overlaps another"
        for held in self.running.values():
            if held.limit_s > reservation.start_s and np.isin(held.nodes, reservation.nodes).any():
                return "Requested nodes are busy"
        self.reservations = (*self.reservations, reservation)
        return ""

    def unreserve(self, name: str) -> str:
        """Removes a reservation; returns why not, empty if it is gone."""
        left = tuple(item for item in self.reservations if item.name != name)
        if len(left) == len(self.reservations):
            return "Requested reservation is invalid"
        self.reservations = left
        return ""

    def _open_reservations(self, now_s: int) -> tuple[Reservation, ...]:
        if self.reservations and any(item.end_s <= now_s for item in self.reservations):
            self.reservations = tuple(item for item in self.reservations if item.end_s > now_s)
        return self.reservations

    def jobs_on(self, node: int) -> list[int]:
        """Running jobs that hold a node."""
        return [
            job
            for job, held in self.running.items()
            if node in held.nodes or (held.adaptation is not None and node in held.adaptation.nodes)
        ]

    def requeue(self, job: int) -> None:
        """Requeues a job that lost its nodes, with its next version."""
        self.jobs.version[job] += 1
        self._queue = None
        insort(self.waiting, job)

    def snapshot(self, now_s: int) -> Snapshot:
        """The present state. The rows of its job table are `waiting`, in that order."""
        self._generation += 1
        if self._queue is None or self._shown != self.waiting:
            self._shown = list(self.waiting)
            self._queue = self._columns.rows(np.array(self._shown, dtype=np.int64))
        self._shown_s = now_s
        snapshot = Snapshot(
            now_s=now_s,
            generation=self._generation,
            resources=self.system.resources,
            nodes=self.nodes,
            jobs=self._queue,
            running=self._running_table(),
            partitions=self.system.partitions,
            reservations=self._open_reservations(now_s),
            licences=(),
            licence_total=_NO_LICENCES,
            ended=self._ended_table(),
            topology=self.system.topology,
        )
        return imply(snapshot, self.system.wait_s)

    def _ended_table(self) -> EndedTable:
        """The jobs that ended since the last call."""
        if not self._ended:
            return NONE_ENDED
        table = np.array(self._ended, dtype=np.int64)
        self._ended = []
        rows = table[:, 0]
        return EndedTable(
            id=self.jobs.id[rows],
            name=self.jobs.name[rows],
            user=self.jobs.user[rows],
            start_s=table[:, 1].copy(),
            end_s=table[:, 2].copy(),
            time_limit_s=self.jobs.time_limit_s[rows],
            ending=table[:, 3].astype(np.int8),
        )

    def _running_table(self) -> RunningTable:
        """The running jobs; the same object as long as they are the same."""
        if self._table is not None:
            return self._table
        self._shown_running = list(self.running)
        held = list(self.running.values())
        rows = np.array(self._shown_running, dtype=np.int64)
        numbers = self._numbers.take(rows, axis=0)
        adapting, releasing = [], []
        if self.workload.malleable is not None:
            adapting = [at for at, one in enumerate(held) if one.adaptation is not None]
        for at in adapting:
            release = held[at].adaptation
            assert release is not None
            if not len(release.nodes):
                continue
            releasing.append(at)
            until_s = min(release.by_s, held[at].limit_s)
            held.append(replace(held[at], nodes=release.nodes, use=release.use, limit_s=until_s))
            self._shown_running.append(self._shown_running[at])
        if releasing:
            rows = np.array(self._shown_running, dtype=np.int64)
            numbers = np.concatenate((numbers, numbers[releasing]))
            numbers[-len(releasing) :, 1] = [one.limit_s for one in held[-len(releasing) :]]
            numbers[-len(releasing) :, 4] = [len(one.nodes) for one in held[-len(releasing) :]]
        start_s, end_s, partition, exclusive, widths = np.ascontiguousarray(numbers.T)
        count = len(rows)
        indptr = np.zeros(count + 1, dtype=np.int64)
        widths.cumsum(out=indptr[1:])
        words = {
            name: self._same[name][:count]
            if name in self._same
            else getattr(self.jobs, name).take(rows)
            for name in ("id", "name", "user", "account")
        }
        self._table = RunningTable.of_columns(
            {
                **words,
                "start_s": start_s,
                "end_s": end_s,
                "partition": partition,
                "exclusive": exclusive.astype(bool),
                "licences": np.zeros((count, 0), dtype=np.int64),
                "indptr": indptr,
                "nodes": np.concatenate([one.nodes for one in held]) if held else self._nothing[0],
                "use": np.concatenate([one.use for one in held]) if held else self._nothing[1],
                **self._malleable(rows, adapting, len(releasing)),
            }
        )
        return self._table

    def _malleable(
        self, rows: NDArray[np.int64], adapting: Sequence[int], releasing: int
    ) -> dict[str, NDArray[Any]]:
        """The columns for resizes of running jobs; none if no job can be resized.

        Args:
            rows: the jobs.
            adapting: positions of the jobs that are changing their width.
            releasing: how many of the last rows are for nodes being released.
        """
        widths = self.workload.malleable
        if widths is None:
            return {}
        last = np.zeros(len(rows), dtype=bool)
        last[len(rows) - releasing :] = True
        changing = np.zeros(len(rows), dtype=bool)
        changing[adapting] = True
        held = [self.running[job] for job in rows.tolist()]
        return {
            "version": self.jobs.version[rows],
            "min_nodes": widths.min_nodes[rows],
            "max_nodes": widths.max_nodes[rows],
            "width_rule": widths.width_rule[rows],
            "features": self.jobs.features[rows],
            "reservation": self.jobs.reservation[rows],
            "mtct": np.array(
                [
                    widths.mtct(job, len(one.nodes))
                    for job, one in zip(rows.tolist(), held, strict=True)
                ]
            ),
            "head": np.array([one.head for one in held], dtype=np.int64),
            "requested_nodes": np.where(widths.max_nodes[rows] > 0, widths.nominal[rows], 0),
            "resized_s": np.array([one.resized_s for one in held]),
            "adapting": changing,
            "releasing": last,
        }

    def _broken(self, plan: Plan, now_s: int) -> str | None:
        """Why a plan is refused as a whole; None if it is valid. Checked once."""
        if self._unread is None or self._unread[0] is not plan or self._unread[1] != now_s:
            self._unread = plan, now_s, _broken(plan, now_s)
        return self._unread[2]

    def announced(self, plan: Plan) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """The planned starts that a plan for the last snapshot announces to users.

        Returns:
            Jobs, ascending, and the earliest later start that the plan has for each. Empty if the
            plan is refused as a whole.
        """
        nobody = np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64)
        if self._broken(plan, self._shown_s) is not None:
            return nobody
        rows, n_shown = plan.planned, len(self._shown)
        at = plan.job[rows].tolist()
        if not all(0 <= one < n_shown for one in at):
            rows = rows[[0 <= one < n_shown for one in at]]
            at = plan.job[rows].tolist()
        if not at:
            return nobody
        jobs = np.array([self._shown[one] for one in at], dtype=np.intp)
        start_s = plan.start_s[rows]
        if len(at) == 1:  # EASY announces no more
            return jobs, start_s
        order = np.lexsort((start_s, jobs))
        jobs, start_s = jobs[order], start_s[order]
        first = np.diff(jobs, prepend=-1) > 0
        return jobs[first], start_s[first]

    def apply(self, plan: Plan, now_s: int, made_s: int | None = None) -> list[int]:
        """Starts the jobs that the plan starts now, as far as that is valid.

        Args:
            plan: for the last snapshot.
            now_s: when it is applied.
            made_s: time of that snapshot; None: now.

        Returns:
            The jobs started.
        """
        if (why := self._broken(plan, now_s if made_s is None else made_s)) is not None:
            self.refusals.append(Refusal(now_s, None, why))
            return []
        started: list[int] = []
        left = self.waiting if made_s in (None, now_s) else set(self.waiting)
        for row in plan.starts_now.tolist():
            shown, partition = int(plan.job[row]), int(plan.partition[row])
            if not 0 <= shown < len(self._shown):
                self.refusals.append(Refusal(now_s, None, f"starts a job in row {shown}: none"))
                continue
            job = self._shown[shown]
            if left is not self.waiting and job not in left:
                self.refusals.append(Refusal(now_s, self.jobs.id[job], "does not wait any more"))
                continue
            own = slice(int(plan.indptr[row]), int(plan.indptr[row + 1]))
            nodes = np.asarray(plan.nodes[own], dtype=np.int32)
            tasks = np.asarray(plan.tasks[own], dtype=np.int64)
            why = self._objection(job, nodes, tasks, partition) or self._reserved(job, nodes, now_s)
            if why is not None:
                self.refusals.append(Refusal(now_s, self.jobs.id[job], why))
                continue
            predicted_s = int(plan.end_s[row] - plan.start_s[row])
            self._start(job, nodes, tasks, partition, now_s=now_s, predicted_s=predicted_s)
            started.append(job)
        if started:
            gone = set(started)
            self.waiting = [job for job in self.waiting if job not in gone]
        for row in range(len(plan.resizes)):
            self._resize(plan.resizes, row, now_s)
        return started

    def set_limit(self, job: int, limit_s: int) -> None:
        """Changes the time limit of a running job."""
        self._hold(job, replace(self.running[job], limit_s=limit_s))

    def take_resized(self) -> list[int]:
        """Jobs that were resized since the last call."""
        changed, self._changed = self._changed, []
        return changed

    def _resize(self, resizes: Resizes, row: int, now_s: int) -> None:
        """Gives a running job other nodes, or refuses to (rule 4)."""
        shown = int(resizes.job[row])
        if not 0 <= shown < len(self._shown_running):
            self.refusals.append(Refusal(now_s, None, f"resizes a job in row {shown}: none"))
            return
        job, after = self._shown_running[shown], np.asarray(resizes.nodes_of(row), dtype=np.int32)
        if (why := self._no_resize(job, after)) is not None:
            self.refusals.append(Refusal(now_s, self.jobs.id[job], why))
            return
        held, widths = self.running[job], self.workload.malleable
        assert widths is not None
        by_s = max(int(resizes.by_s[row]), now_s + 1)
        if widths.adaptation_s is not None:
            by_s = now_s + max(widths.adaptation_s(max(len(held.nodes), len(after))), 1)
        new = np.setdiff1d(after, held.nodes)
        if len(new):
            resized = held.grown(new, self.nodes.capacity, by_s)
            self._take(new, resized.use[np.isin(resized.nodes, new)], held.exclusive)
        else:
            resized = held.shrunk(after, by_s)
        self._hold(job, replace(resized, resized_s=now_s))
        self._changed.append(job)

    def _no_resize(self, job: int, after: NDArray[np.int32]) -> str | None:
        """Why a resize is refused; None if it is valid."""
        held, widths = self.running.get(job), self.workload.malleable
        if held is None:
            return "is resized but does not run"
        if widths is None or (why := widths.objection(job, len(after))) is not None:
            return "is resized but not malleable" if widths is None else why
        if held.adaptation is not None:
            return "is resized while it is adapting"
        distinct = set(after.tolist())
        if len(distinct) < len(after) or not distinct <= set(range(len(self.nodes))):
            return "gets a node that does not exist, or one twice"
        new, leaves = np.setdiff1d(after, held.nodes), np.setdiff1d(held.nodes, after)
        if (len(new) > 0) == (len(leaves) > 0):
            return "gets nodes and loses others at once" if len(new) else "keeps the nodes it has"
        if not (self.nodes.usable[new] & self._in_partition[held.partition, new]).all():
            return "gets a node that is not usable or not in its partition"
        busy = self._holders[new] > 0
        if not held.exclusive:
            busy = self._whole[new] | (held.use[0] > self.free[new]).any(axis=1)
        if busy.any():
            return f"gets {self.nodes.names[int(new[busy][0])]}, which others hold"
        return None

    def _start(
        self,
        job: int,
        nodes: NDArray[np.int32],
        tasks: NDArray[np.int64],
        partition: int,
        *,
        now_s: int,
        predicted_s: int,
    ) -> None:
        exclusive = bool(self.jobs.exclusive[job])
        use = self.nodes.capacity[nodes] if exclusive else self._want(job, tasks)
        self._take(nodes, use, exclusive)
        limit_s = now_s + int(self.jobs.time_limit_s[job])
        held = Allocation(
            nodes, use, now_s, limit_s, partition, exclusive, predicted_s,
            head=int(nodes.min()),
        )  # fmt: skip
        self._hold(job, held)

    def _hold(self, job: int, held: Allocation) -> None:
        """Records the allocation of a job from now on."""
        self._table = None
        self.running[job] = held
        self._numbers[job] = (
            held.start_s, held.limit_s, held.partition, held.exclusive, len(held.nodes),
        )  # fmt: skip

    def _want(self, job: int, tasks: NDArray[np.int64]) -> NDArray[np.int64]:
        want: NDArray[np.int64] = (
            self.jobs.per_node[job] + tasks[:, np.newaxis] * self.jobs.per_task[job]
        )
        return want

    def _reserved(self, job: int, nodes: NDArray[np.int32], now_s: int) -> str | None:
        """The reservation that keeps a job off its nodes; None if there is none."""
        end_s = now_s + int(self.jobs.time_limit_s[job])
        for item in self.reservations:
            if item.start_s < end_s and item.end_s > now_s and np.isin(nodes, item.nodes).any():
                return f"uses nodes of reservation {item.name}"
        return None

    def _objection(
        self, job: int, nodes: NDArray[np.int32], tasks: NDArray[np.int64], partition: int
    ) -> str | None:
        """Why a start is refused; None if it is valid."""
        jobs = self.jobs
        if job in self.running:
            return "is started twice by one plan"
        if partition not in jobs.partitions[job]:
            return f"is started in partition {partition}, which it did not name"
        _, _, limit_s, wanted, most_tasks = self._requests[job]
        if (why := self._wrong_width(job, len(nodes))) is not None:
            return why
        listed = nodes.tolist()
        if len(set(listed)) < len(listed) or not 0 <= min(listed) <= max(listed) < len(self.nodes):
            return "gets a node that does not exist, or one twice"
        if not (self.nodes.usable[nodes] & self._in_partition[partition][nodes]).all():
            return "gets a node that is not usable or not in its partition"
        max_time_s = self.system.partitions[partition].max_time_s
        if 0 < max_time_s < limit_s:
            return f"asks for more than the partition's {max_time_s} s"
        if wanted and (tasks.min() < 1 or tasks.sum() != wanted):
            return f"gets {int(tasks.sum())} tasks where {wanted} belong"
        if 0 < most_tasks < tasks.max(initial=0):
            return f"gets {int(tasks.max())} tasks on a node, more than it asked for"
        if (why := self._mismatch(job, nodes)) is not None:
            return why
        want = self._want(job, tasks if wanted else np.zeros_like(tasks))
        if jobs.exclusive[job]:
            taken, room = self._holders[nodes] > 0, self.nodes.capacity[nodes]
        else:
            taken, room = self._whole[nodes], self.free[nodes]
        if taken.any() or (want > room).any():
            full = nodes[int(np.argmax(taken | (want > room).any(axis=1)))]
            return f"does not fit on {self.nodes.names[full]}, which others hold"
        return None

    def _wrong_width(self, job: int, nodes: int) -> str | None:
        """Why a job cannot start on that many nodes; None if it can."""
        least, most, *_ = self._requests[job]
        if least <= nodes <= most:
            return None
        if self.jobs.most_start[job] and self.workload.malleable is not None:
            return self.workload.malleable.objection(job, nodes)
        return f"gets {nodes} nodes where {least} to {most} belong"

    def _mismatch(self, job: int, nodes: NDArray[np.int32]) -> str | None:
        """Why nodes do not match the names or features that the job requested; None if they do."""
        jobs, names = self.jobs, self.nodes.names
        required, excluded = jobs.required[job], jobs.excluded[job]
        if required and (missing := set(required).difference(nodes.tolist())):
            return f"does not get {names[min(missing)]}, which it asked for"
        if excluded and (unwanted := set(excluded).intersection(nodes.tolist())):
            return f"gets {names[min(unwanted)]}, which it excluded"
        if jobs.features[job]:
            alternatives = parse_features(jobs.features[job])
            held = [self.nodes.features[node] for node in nodes.tolist()]
            if not any(all(map(matches, held)) for matches in alternatives):
                return f"gets nodes that do not match {jobs.features[job]}"
        return None


def _broken(plan: Plan, now_s: int) -> str | None:
    """Why a plan is refused as a whole; None if it is valid."""
    rows, nodes = len(plan.job), len(plan.nodes)
    columns = (plan.start_s, plan.end_s, plan.partition, plan.reasons)
    if any(len(column) != rows for column in columns) or len(plan.indptr) != rows + 1:
        return "has columns of different length"
    if len(plan.tasks) != nodes or plan.indptr[0] != 0 or plan.indptr[-1] != nodes:
        return "has offsets that do not fit its nodes"
    if np.count_nonzero(plan.indptr[1:] < plan.indptr[:-1]):
        return "has offsets that fall"
    if plan.now_s != now_s:
        return f"was made for {plan.now_s}: stale"
    return None
