# SPDX-License-Identifier: Apache-2.0
"""Keeps the tables of a server up to date with few and small queries.

Rules
    1. A job is read again when its `mtime` is not older than `SLACK_S` before the last query: the
       server's instants are whole seconds, and a job can change twice within one.
    2. Such an answer does not contain jobs that have left. Their number is compared with the
       server's own count (`state_count`: arrays, and tasks that have started, included); where it
       differs, all ids are listed. `total_jobs` also counts ended jobs that the server remembers.
    3. All jobs are read when the link starts, after the server has restarted, and every `ALL_S`.
    4. Vnodes and queues send no command and have no `mtime`: all are read at intervals, and queues
       whenever starts are about to be sent.
    5. An object that did not change stays the same dictionary; `mtime` itself, comments and
       estimates are not read, so that what the link writes is no change.
    6. Just before starts are sent, vnodes and the jobs that have changed are enough if everything
       was read a moment ago (`refresh_jobs`). A job that has left by then is refused by the server.
       Vnodes are left out then only if reading them takes more than a fifth of the time.
    7. A comment that this link wrote raises the job's `mtime`. As long as an answer contained such
       jobs only, unchanged, and no command has arrived since, the next query for jobs is
       `OWN_WRITES_S` later.
    8. Queries of one kind take at most a fifth of the time: `Interval` spaces them.
    9. Counts that change with every job, and the state of vnodes that are full, are left out of
       servers, queues and vnodes: the jobs say the same.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from bridge.pbs.ifl.port import Ifl
from bridge.pbs.tables import Attributes, Objects, Tables, text

JOB_ATTRIBUTES = (
    "job_state", "substate", "Job_Name", "Job_Owner", "euser", "egroup", "project", "queue",
    "Account_Name", "Priority", "Resource_List", "schedselect", "ctime", "qtime", "etime", "stime",
    "eligible_time", "accrue_type", "Execution_Time", "Hold_Types", "depend", "exec_vnode", "array",
    "array_id", "array_index", "array_indices_submitted", "array_indices_remaining",
    "max_run_subjobs", "run_count", "run_version", "Rerunable", "queue_rank", "topjob_ineligible",
    "resources_released", "resource_released_list", "sched_hint", "interactive",
)  # fmt: skip
"""The attributes of a job on which a decision may depend."""

_COUNTS = frozenset((
    "state_count", "total_jobs", "resources_assigned", "license_count", "jobs", "last_used_time",
    "last_state_change_time",
))  # fmt: skip
_BUSY, _FREE = "job-busy", "free"

SLACK_S = 2
ALL_S = 300.0
OWN_WRITES_S = 1.0
_NODES_S, _QUEUES_S, _DEFINITIONS_S = 1.0, 0.2, 60.0
_MAX_DIFFERED = 4
"""Lists one after the other that differ from the server's count, which may be a moment older."""
_SHARE = 5


@dataclass
class Interval:
    """Spaces queries: not before `min_s`, and not more than a fifth of the time."""

    min_s: float
    due_s: float = 0.0
    cheap_s: float = 0.0

    def is_due(self, now: float) -> bool:
        """Tells whether it is time."""
        return now >= self.due_s

    def is_cheap(self, now: float) -> bool:
        """Tells whether it takes no more than a fifth of the time, if it is needed at once."""
        return now >= self.cheap_s

    def took(self, began: float, ended: float) -> None:
        """Records the duration of a query."""
        self.cheap_s = ended + (_SHARE - 1) * (ended - began)
        self.due_s = max(ended + self.min_s, self.cheap_s)

    def force(self) -> None:
        """Makes it due."""
        self.due_s = 0.0


def keep_same(old: Objects, new: Objects) -> Objects:
    """Returns the new objects, with unchanged ones as the old dictionaries; or the old ones."""
    found = {
        name: known if (known := old.get(name)) == attributes and known is not None else attributes
        for name, attributes in new.items()
    }
    same = len(found) == len(old) and all(old.get(name) is each for name, each in found.items())
    return old if same else found


def steady(attributes: Attributes) -> Attributes:
    """Returns a server, queue or vnode without what changes with every job (rule 9)."""
    found = {name: value for name, value in attributes.items() if name not in _COUNTS}
    if _BUSY in text(attributes, "state"):
        others = [word for word in text(attributes, "state").split(",") if word != _BUSY]
        found["state"] = ",".join(others) or _FREE
    return found


def _steady(objects: Objects) -> Objects:
    return {name: steady(attributes) for name, attributes in objects.items()}


@dataclass
class Counts:
    """Counts of queries, for metrics and benchmarks."""

    refreshes: int = 0
    all_jobs: int = 0
    lists: int = 0
    jobs_read: int = 0


@dataclass
class Mirror:
    """The tables of one server, read on one connection.

    Attributes:
        scheduler: name of the scheduler object.
        clock: wall clock, s; the server's machine and this one must agree within `SLACK_S`.
        monotonic: for intervals, s.
        read_s: when the last refresh of everything began, monotonic, s.
    """

    ifl: Ifl
    connection: int
    scheduler: str
    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    counts: Counts = field(default_factory=Counts)
    ended: dict[str, Attributes] = field(default_factory=dict)
    read_s: float = -1e9
    _tables: Tables | None = None
    _requested_s: int = 0
    _differed: int = 0
    _rest_until_s: float = 0.0
    _all: Interval = field(default_factory=lambda: Interval(ALL_S))
    _lists: Interval = field(default_factory=lambda: Interval(0.0))
    _nodes: Interval = field(default_factory=lambda: Interval(_NODES_S))
    _queues: Interval = field(default_factory=lambda: Interval(_QUEUES_S))
    _definitions: Interval = field(default_factory=lambda: Interval(_DEFINITIONS_S))

    def settle(self, poll_s: float) -> None:
        """Sets the least time between two queries for vnodes."""
        self._nodes.min_s = poll_s

    def expect_change(self) -> None:
        """Reads definitions and reservations again with the next refresh."""
        self._definitions.force()
        self._queues.force()
        self._nodes.force()

    def read_all(self) -> None:
        """Reads everything again with the next refresh."""
        self._all.force()
        self.expect_change()

    def take_ended(self) -> dict[str, Attributes]:
        """Returns the jobs with vnodes that left since the last call, in their last known state."""
        ended, self.ended = self.ended, {}
        return ended

    def refresh(self, *, notified: bool = True, starting: bool = False) -> Tables:
        """Reads the objects that may have changed.

        Args:
            notified: a command has arrived since the last one: rule 7.
            starting: starts are about to be sent: rule 6.

        Raises:
            IflError: the server does not answer, or refuses.
        """
        old = self._tables
        ifl, connection = self.ifl, self.connection
        self.counts.refreshes += 1
        now_s = int(self.clock())
        name, server = ifl.stat_server(connection)
        began = self.monotonic()
        empty: Objects = {}
        vnodes, reservations = (old.vnodes, old.reservations) if old else (empty, empty)
        resources, sched = (old.resources, old.sched) if old else (empty, {})
        due = self._nodes.is_cheap(began) if starting else self._nodes.is_due(began)
        if old is None or due:
            vnodes = keep_same(vnodes, _steady(ifl.stat_vnodes(connection)))
            reservations = keep_same(reservations, ifl.stat_reservations(connection))
            self._nodes.took(began, self.monotonic())
        if old is None or self._definitions.is_due(began):
            resources = keep_same(resources, ifl.stat_resources(connection))
            sched = ifl.stat_scheduler(connection, self.scheduler)
            self._definitions.took(began, self.monotonic())
        queues = old.queues if old else empty
        if old is None or starting or self._queues.is_due(began):
            queues = keep_same(queues, _steady(ifl.stat_queues(connection)))
            self._queues.took(began, self.monotonic())
        if notified:
            self._rest_until_s = 0.0
        jobs = self._jobs(old.jobs if old else None, server, now_s)
        kept = steady(server)
        if old is not None and old.server == kept:
            kept = old.server
        self.read_s = began
        self._tables = Tables(
            now_s, name, kept, sched, queues, vnodes, jobs, reservations, resources
        )
        return self._tables

    @property
    def tables(self) -> Tables | None:
        """What was read last; None: nothing yet."""
        return self._tables

    def refresh_new(self) -> Tables:
        """Reads only jobs that are new or may have changed; none has left.

        Raises:
            IflError: the server does not answer, or refuses.
        """
        if self._tables is None:
            return self.refresh()
        now_s = int(self.clock())
        self._rest_until_s = 0.0
        self._tables = replace(
            self._tables, now_s=now_s, jobs=self._changed(self._tables.jobs, now_s)
        )
        return self._tables

    def refresh_jobs(self) -> Tables:
        """Reads the jobs that may have changed, and vnodes: rule 6.

        Raises:
            IflError: the server does not answer, or refuses.
        """
        if self._tables is None:
            return self.refresh()
        now_s, began, vnodes = int(self.clock()), self.monotonic(), self._tables.vnodes
        if self._nodes.is_cheap(began):
            vnodes = keep_same(vnodes, _steady(self.ifl.stat_vnodes(self.connection)))
            self._nodes.took(began, self.monotonic())
        jobs = self._changed(self._tables.jobs, now_s)
        self._tables = replace(self._tables, now_s=now_s, jobs=jobs, vnodes=vnodes)
        return self._tables

    def _jobs(self, old: Objects | None, server: Attributes, now_s: int) -> Objects:
        began = self.monotonic()
        if old is None or self._all.is_due(began):
            return self._read_all(old or {}, now_s)
        rests = began < self._rest_until_s and _is_complete(old, server)
        jobs = old if rests else self._changed(old, now_s)
        if not _is_complete(jobs, server) and self._lists.is_due(began):
            jobs = self._without_gone(jobs)
            self._differed = 0 if _is_complete(jobs, server) else self._differed + 1
            if self._differed >= _MAX_DIFFERED:
                self._differed = 0
                self.expect_all(began)
            self._lists.took(began, self.monotonic())
        return jobs

    def _changed(self, old: Objects, now_s: int) -> Objects:
        """Reads jobs that are new or may have changed; none has left."""
        since_s, self._requested_s = self._requested_s - SLACK_S, now_s
        changed = self.ifl.stat_jobs(self.connection, JOB_ATTRIBUTES, changed_since_s=since_s)
        self.counts.jobs_read += len(changed)
        changed = {
            name: known if (known := old.get(name)) == each and known is not None else each
            for name, each in changed.items()
        }
        is_known = changed and all(old.get(name) is each for name, each in changed.items())
        self._rest_until_s = self.monotonic() + OWN_WRITES_S if is_known else 0.0
        if any(old.get(name) is not attributes for name, attributes in changed.items()):
            return {**old, **changed}
        return old

    def expect_all(self, now: float) -> None:
        """Reads all jobs soon: the server's count differs from this link's."""
        self._all.due_s = min(self._all.due_s, now + _NODES_S)

    def _read_all(self, old: Objects, now_s: int) -> Objects:
        began = self.monotonic()
        self.counts.all_jobs += 1
        self._requested_s = now_s
        jobs = keep_same(old, self.ifl.stat_jobs(self.connection, JOB_ATTRIBUTES))
        self.counts.jobs_read += len(jobs)
        self._note_ended(old, jobs)
        self._all.took(began, self.monotonic())
        return jobs

    def _without_gone(self, jobs: Objects) -> Objects:
        """Lists the ids, and drops jobs that have left."""
        self.counts.lists += 1
        there = self.ifl.stat_jobs(self.connection, ("job_state",))
        kept = {name: attributes for name, attributes in jobs.items() if name in there}
        self._note_ended(jobs, kept)
        return kept

    def _note_ended(self, before: Objects, after: Objects) -> None:
        for name, attributes in before.items():
            if name not in after and "exec_vnode" in attributes:
                self.ended[name] = attributes


def _is_complete(jobs: Objects, server: Attributes) -> bool:
    """Compares the number of jobs with the server's counts by state, which leave out ended jobs."""
    counts = [word.rpartition(":")[2] for word in text(server, "state_count").split()]
    if not counts or not all(count.isdecimal() for count in counts):
        return False
    return sum(map(int, counts)) == len(jobs)
