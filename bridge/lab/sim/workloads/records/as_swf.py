# SPDX-License-Identifier: Apache-2.0
"""A site workload as a trace in the Standard Workload Format.

Rules
    1. Jobs are numbered in order of submission; times count from the first one (`UnixStartTime`).
    2. Users, accounts (groups), job names (executables) and partitions (queues) become numbers, in
       order of appearance; the header names the queues.
    3. Memory becomes KiB for each processor, rounded up. Of several dependencies the last job is
       the preceding one. All else is lost: features, GPUs, QOS, arrays, reservations, outages.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bridge.errors import TraceError
from bridge.lab.sim.workloads.records.job_record import LARGEST, JobEnding, JobRecord, SiteWorkload
from bridge.lab.sim.workloads.swf import Field, Trace

_KIB = 1024
_STATUS = {
    JobEnding.COMPLETED: 1,
    JobEnding.CANCELLED: 5,
    JobEnding.RUNNING: 4,
    JobEnding.PENDING: -1,
}
_FAILED = 0


def by_submission(jobs: Sequence[JobRecord]) -> list[JobRecord]:
    """The jobs in order of submission; those of one second in their order."""
    return sorted(jobs, key=lambda job: job.submit_s)


def codes(texts: Sequence[str]) -> NDArray[np.int64]:
    """Numbers from 1 in order of appearance; -1 for an empty text."""
    known: dict[str, int] = {"": -1}
    return np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.int64)


def as_swf(site: SiteWorkload, processors: int = 0) -> Trace:
    """The trace.

    Args:
        processors: processors of the machine; 0: as the site says.

    Raises:
        TraceError: it has no jobs.
    """
    jobs = by_submission(site.jobs)
    if not jobs:
        raise TraceError(site.name, None, "has no jobs")
    origin_s = jobs[0].submit_s
    number = {job.id: position for position, job in enumerate(jobs, 1)}
    queues = [",".join(job.partitions) for job in jobs]
    columns = np.full((len(jobs), len(Field)), -1.0)
    for row, job in zip(columns, jobs, strict=True):
        _fill(row, job, origin_s, number)
    for at, texts in (
        (Field.USER, [job.user for job in jobs]),
        (Field.GROUP, [job.account or job.group for job in jobs]),
        (Field.EXECUTABLE, [job.name for job in jobs]),
        (Field.QUEUE, queues),
    ):
        columns[:, at] = codes(texts)
    size = processors or site.processors
    names = dict.fromkeys(queue for queue in queues if queue)
    header = (
        f"Computer: {site.name}",
        *(f"Note: {key}: {text}" for key, text in site.about.items()),
        f"UnixStartTime: {origin_s}",
        *((f"MaxProcs: {size}",) if size else ()),
        f"MaxJobs: {len(jobs)}",
        *(f"Queue: {at} {name}" for at, name in enumerate(names, 1)),
    )
    return Trace(site.name, header, columns)


def _fill(row: NDArray[np.float64], job: JobRecord, origin_s: int, number: dict[str, int]) -> None:
    cpus = job.cpus or job.requested_cpus
    row[Field.JOB] = number[job.id]
    row[Field.SUBMIT_S] = job.submit_s - origin_s
    if job.start_s:
        row[Field.WAIT_S] = max(job.start_s - job.submit_s, 0)
        row[Field.RUNTIME_S] = job.runtime_s
        row[Field.ALLOCATED_PROCESSORS] = job.cpus
    row[Field.REQUESTED_PROCESSORS] = cpus
    if job.time_limit_s:
        row[Field.REQUESTED_TIME_S] = job.time_limit_s
    if job.memory_mib and cpus:
        kib = job.memory_mib * _KIB
        per_cpu = kib if job.memory_per == "cpu" else -(-kib * max(job.nodes, 1) // cpus)
        row[Field.REQUESTED_MEMORY_KIB] = min(per_cpu, LARGEST)
    row[Field.STATUS] = _STATUS.get(job.state, _FAILED)
    before = [number[other] for _, other in job.after if other in number]
    if before:
        row[Field.PRECEDING_JOB] = before[-1]
