# SPDX-License-Identifier: Apache-2.0
"""A trace as jobs, by the rules under which known results were obtained.

Rules, in this order; omitted jobs are counted by reason
1. Processors are the requested ones; where the trace has none (0 or -1), the allocated ones.
2. A job with run time <= 0, or without processors, is omitted: it never ran.
3. A job larger than the machine is omitted: it could never start.
4. A time limit <= 0 is replaced by the run time.
5. The run time is capped at the time limit, because the job would be killed there.
6. Jobs are sorted by submission; at the same instant they keep the trace's order.
7. Fractions of seconds: submissions are rounded down; run times and limits up.
8. Of jobs with the same number, the later ones get their position appended.

`FormatDeviations` describe how a log differs from the format. Node requests are kept as text, which
`bridge.lab.sim.workloads.requests` lowers.

Instants are Unix seconds: submit time + `UnixStartTime` of the header (1 without one, because an
instant of 0 means "unknown" elsewhere).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError, TraceError
from bridge.lab.sim.sharing.setting import Sharing
from bridge.lab.sim.workloads.change_costs import ChangeCosts
from bridge.lab.sim.workloads.job_power import JobPower
from bridge.lab.sim.workloads.speedup import UNKNOWN
from bridge.lab.sim.workloads.swf import LATEST_S, Field, Trace
from bridge.model.job import JobTable, WidthRule

NOT_RUN = "never ran (run time or processors <= 0)"
TOO_LARGE = "larger than the machine"
_LARGEST = float(2**53)


class MemoryUnit(Enum):
    """The unit of memory in a trace; the format says KiB."""

    BYTE = "B"
    KIB = "KiB"
    MIB = "MiB"


_UNIT_BYTES = {MemoryUnit.BYTE: 1, MemoryUnit.KIB: 1 << 10, MemoryUnit.MIB: 1 << 20}


@dataclass(frozen=True)
class FormatDeviations:
    """Where a trace differs from the format.

    Attributes:
        memory_per_node: requested memory is per node, not per processor.
        nodes_field: number of the field (19 or more) with node requests
            (`bridge.lab.sim.workloads.node_requests`); None: there is none, and jobs may use
            any nodes.
    """

    memory_unit: MemoryUnit = MemoryUnit.KIB
    memory_per_node: bool = False
    nodes_field: int | None = None


SWF = FormatDeviations()
"""The Standard Workload Format."""


@dataclass(frozen=True)
class Malleable:
    """The widths that jobs can have while they run, as columns of length n_jobs.

    Attributes:
        min_nodes, max_nodes: int64; max_nodes 0: the job keeps its initial nodes.
        width_rule: int8 `bridge.model.job.WidthRule`.
        nominal: int64: the width to which run time and time limit refer.
        speedup: object (`bridge.lab.sim.workloads.speedup.Speedup` or None): speed at other widths;
            None: the same at any.
        misread: float64: measured MTCT over the true one; None: all are measured correctly.
        changes: what changes of width take; None: as long as the plan expects, and the jobs stand
            still meanwhile.
    """

    min_nodes: NDArray[np.int64]
    max_nodes: NDArray[np.int64]
    width_rule: NDArray[np.int8]
    nominal: NDArray[np.int64]
    speedup: NDArray[np.object_]
    changes: ChangeCosts | None = None
    misread: NDArray[np.float64] | None = None

    def mtct(self, job: int, nodes: int, phase: int = 0) -> float:
        """Measured time in MPI calls over computing time on that many nodes; -1: unknown."""
        speedup = self.speedup[job]
        if speedup is None:
            return UNKNOWN
        found = float(speedup.reported(nodes, phase))
        if found < 0:
            return UNKNOWN
        factor = 1.0 if self.misread is None else float(self.misread[job])
        return factor * found

    def objection(self, job: int, nodes: int) -> str | None:
        """Why a job cannot run on this many nodes; None if it can."""
        minimum, maximum = int(self.min_nodes[job]), int(self.max_nodes[job])
        if not maximum:
            return "is given another width but is not malleable"
        if minimum <= nodes <= maximum and WidthRule(int(self.width_rule[job])).allows(nodes):
            return None
        return f"gets {nodes} nodes, which it does not allow"

    def first(self, n_jobs: int) -> "Malleable":
        """Those of the first `n_jobs` jobs."""
        columns: dict[str, Any] = {
            field.name: value[:n_jobs]
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), np.ndarray)
        }
        return replace(self, **columns)


@dataclass(frozen=True)
class Workload:
    """Jobs to simulate, as columns of length n_jobs, sorted by submission.

    Attributes:
        name: where they come from, for people.
        processors_total: size of the machine.
        id: object (str), unique.
        submit_s: int64, Unix seconds, >= 1.
        runtime_s: int64: actual run times, in [1, time_limit_s].
        time_limit_s: int64: requested, >= 1.
        processors: int64, in [1, processors_total].
        memory_kib: int64: memory per processor or node (`FormatDeviations`); 0: not stated.
        user, group, executable, queue: int64 numbers of the trace; -1 unknown.
        row: int64: line of the trace each job came from, an index into `Trace.columns`.
        left_out: reason to number of jobs that were left out.
        left_out_at: reason to the number of jobs before each of them; see `first`.
        after: object (tuple of ids): the jobs that must have ended before each is submitted; those
            that are not there have no effect. None: no job waits for another.
        repeated_id: bool: an earlier job of the trace has the same number (rule 8); None: unknown.
        node_requests: object (str): as requested, see `FormatDeviations.nodes_field`; None: any.
        requests: what the jobs ask for, where that is known in full
            (`bridge.lab.sim.workloads.streams`); None: `bridge.lab.sim.workloads.requests`
            makes it of the other columns.
        malleable: which jobs can change their width while they run; None: none can.
        power: their actual and stated power; None: unknown.
        sharing: which of them may share nodes, and how they run then; None: none may.
    """

    name: str
    processors_total: int
    id: NDArray[np.object_]
    submit_s: NDArray[np.int64]
    runtime_s: NDArray[np.int64]
    time_limit_s: NDArray[np.int64]
    processors: NDArray[np.int64]
    memory_kib: NDArray[np.int64]
    user: NDArray[np.int64]
    group: NDArray[np.int64]
    executable: NDArray[np.int64]
    queue: NDArray[np.int64]
    row: NDArray[np.int64]
    left_out: Mapping[str, int]
    node_requests: NDArray[np.object_] | None = None
    requests: JobTable | None = None
    malleable: Malleable | None = None
    power: JobPower | None = None
    sharing: Sharing | None = None
    left_out_at: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    after: NDArray[np.object_] | None = None
    repeated_id: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.id)

    def first(self, n_jobs: int) -> "Workload":
        """The first `n_jobs` jobs; counts as left out those that come before the last of them."""
        if n_jobs >= len(self):
            return self
        columns: dict[str, Any] = {
            field.name: value[:n_jobs]
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), np.ndarray)
        }
        at = {reason: before[before < n_jobs] for reason, before in self.left_out_at.items()}
        if at:
            columns["left_out_at"] = at
            columns["left_out"] = {reason: len(them) for reason, them in at.items() if len(them)}
        if self.requests is not None:
            columns["requests"] = self.requests.rows(slice(n_jobs))
        if self.malleable is not None:
            columns["malleable"] = self.malleable.first(n_jobs)
        if self.power is not None:
            columns["power"] = self.power.first(n_jobs)
        if self.sharing is not None:
            columns["sharing"] = self.sharing.first(n_jobs)
        return replace(self, **columns)


def machine_size(trace: Trace) -> int:
    """Processors of the machine by the header: `MaxProcs`, else `MaxNodes`.

    Raises:
        TraceError: the header states neither.
    """
    stated = (trace.whole_number(name) for name in ("MaxProcs", "MaxNodes"))
    size = next((number for number in stated if number is not None and number > 0), 0)
    if not size:
        raise TraceError(
            trace.path, None, "the header states neither MaxProcs nor MaxNodes; give --procs"
        )
    return size


def workload_from(
    trace: Trace, processors_total: int | None = None, dialect: FormatDeviations = SWF
) -> Workload:
    """Turns a trace into jobs.

    Args:
        trace: what `read_swf` read.
        processors_total: size of the machine; None: as the header says.

    Raises:
        TraceError: no size is stated, the header's begin is impossible, no job is left, or there is
            no such field.
        ConfigError: the size is not positive.
    """
    total = machine_size(trace) if processors_total is None else processors_total
    if total < 1:
        raise ConfigError("procs", f"a machine has at least 1 processor, not {total}")
    whole = np.floor(trace.columns).astype(np.int64)
    requested = whole[:, Field.REQUESTED_PROCESSORS]
    processors = np.where(requested > 0, requested, whole[:, Field.ALLOCATED_PROCESSORS])
    runtime_s = np.ceil(trace.columns[:, Field.RUNTIME_S]).astype(np.int64)
    submit_s = trace.columns[:, Field.SUBMIT_S]
    ran = (runtime_s > 0) & (processors > 0)
    fits = processors <= total
    kept = np.flatnonzero(ran & fits)
    if not len(kept):
        why = f"{np.sum(~ran):,} did not run, {np.sum(ran & ~fits):,} are larger"
        raise TraceError(trace.path, None, f"no job that ran fits {total} processors: {why}")
    kept = kept[np.argsort(submit_s[kept], kind="stable")]
    left_out_at = {
        reason: np.searchsorted(submit_s[kept], submit_s[rows])
        for reason, rows in (
            (NOT_RUN, np.flatnonzero(~ran)),
            (TOO_LARGE, np.flatnonzero(ran & ~fits)),
        )
        if len(rows)
    }
    whole, processors, runtime_s = whole[kept], processors[kept], runtime_s[kept]
    requested_s = np.ceil(trace.columns[kept, Field.REQUESTED_TIME_S]).astype(np.int64)
    time_limit_s = np.where(requested_s > 0, requested_s, runtime_s)
    memory = np.maximum(whole[:, Field.REQUESTED_MEMORY_KIB], 0)
    memory_kib = np.ceil(memory * (_UNIT_BYTES[dialect.memory_unit] / 1024))
    origin_s = max(trace.whole_number("UnixStartTime") or 0, 1)
    if origin_s > LATEST_S:
        raise TraceError(trace.path, None, "UnixStartTime in the header is not a possible time")
    ids, repeated = _ids(whole[:, Field.JOB])
    return Workload(
        name=trace.path,
        processors_total=total,
        id=ids,
        submit_s=whole[:, Field.SUBMIT_S] + origin_s,
        runtime_s=np.minimum(runtime_s, time_limit_s),
        time_limit_s=time_limit_s,
        processors=processors,
        memory_kib=np.minimum(memory_kib, _LARGEST).astype(np.int64),
        user=whole[:, Field.USER],
        group=whole[:, Field.GROUP],
        executable=whole[:, Field.EXECUTABLE],
        queue=whole[:, Field.QUEUE],
        row=kept,
        left_out={reason: len(before) for reason, before in left_out_at.items()},
        node_requests=None
        if dialect.nodes_field is None
        else np.array(trace.text(dialect.nodes_field), dtype=object)[kept],
        left_out_at=left_out_at,
        repeated_id=repeated,
    )


def _ids(numbers: NDArray[np.int64]) -> tuple[NDArray[np.object_], NDArray[np.bool_]]:
    """Job numbers as text, and which of them an earlier job has; these get their position."""
    _, first = np.unique(numbers, return_index=True)
    ids = np.array([str(number) for number in numbers.tolist()], dtype=object)
    repeated = np.ones(len(numbers), dtype=bool)
    repeated[first] = False
    for position in np.flatnonzero(repeated).tolist():
        ids[position] = f"{ids[position]}.{position}"
    return ids, repeated
