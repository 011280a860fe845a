# SPDX-License-Identifier: Apache-2.0
"""Drawn jobs as records, with memory and GPUs; traces as records; scaled load.

Rules
    1. Memory: log-uniform between two amounts, MiB for each CPU.
    2. GPUs: a share of the jobs asks for them, on each of its nodes a power of two up to the most,
       each as likely. Such jobs run on nodes of so many CPUs, as few as hold them.
    3. Load is what arrives, processor-seconds over the machine's processors times the time from
       the first to the last submission. It is scaled by stretching the times between arrivals.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bridge.errors import ConfigError
from bridge.lab.sim.workloads.generation.lublin import Drawn
from bridge.lab.sim.workloads.records.job_record import JobEnding, JobRecord
from bridge.lab.sim.workloads.swf import Field, Trace

ORIGIN_S = 1_767_571_200
"""Midnight of a Monday (UTC), when generated jobs begin."""
_STATES = {1: JobEnding.COMPLETED, 0: JobEnding.FAILED, 5: JobEnding.CANCELLED}
_KIB = 1024


def records_of(drawn: Drawn) -> list[JobRecord]:
    """Drawn jobs as records, as if each had started when it was submitted."""
    columns = (drawn.submit_s, drawn.processors, drawn.runtime_s, drawn.time_limit_s)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [
        JobRecord(
            str(number), ORIGIN_S + submit_s, start_s=ORIGIN_S + submit_s,
            end_s=ORIGIN_S + submit_s + runtime_s, runtime_s=runtime_s, time_limit_s=limit_s,
            state=JobEnding.COMPLETED, cpus=cpus, requested_cpus=cpus,
        )
        for number, (submit_s, cpus, runtime_s, limit_s) in enumerate(rows, 1)
    ]  # fmt: skip


def records_of_trace(trace: Trace) -> list[JobRecord]:
    """The jobs of a trace as records; queues become partitions `q1`, users `user1`."""
    origin_s = max(trace.whole_number("UnixStartTime") or 0, 1)
    found = []
    for number, row in enumerate(np.maximum(trace.columns, -1).tolist(), 1):
        cpus = int(row[Field.REQUESTED_PROCESSORS])
        cpus = cpus if cpus > 0 else max(int(row[Field.ALLOCATED_PROCESSORS]), 0)
        submit_s = origin_s + int(row[Field.SUBMIT_S])
        runtime_s = max(int(np.ceil(row[Field.RUNTIME_S])), 0)
        start_s = submit_s + max(int(row[Field.WAIT_S]), 0) if runtime_s else 0
        memory = row[Field.REQUESTED_MEMORY_KIB]
        found.append(
            JobRecord(
                str(number), submit_s, start_s=start_s,
                end_s=start_s + runtime_s if start_s else 0, runtime_s=runtime_s,
                time_limit_s=max(int(np.ceil(row[Field.REQUESTED_TIME_S])), 0),
                state=_STATES.get(int(row[Field.STATUS]), JobEnding.UNKNOWN),
                user=_numbered("user", row[Field.USER]), account=_numbered("g", row[Field.GROUP]),
                name=_numbered("app", row[Field.EXECUTABLE]),
                partitions=tuple(filter(None, (_numbered("q", row[Field.QUEUE]),))),
                cpus=cpus, requested_cpus=cpus,
                memory_mib=int(np.ceil(memory / _KIB)) if memory > 0 else 0,
                memory_per="cpu" if memory > 0 else "",
            )
        )  # fmt: skip
    return found


def with_memory(
    jobs: Sequence[JobRecord], low: int, high: int, dice: np.random.Generator
) -> list[JobRecord]:
    """The jobs with memory per CPU, MiB (rule 1)."""
    mib = np.exp(dice.uniform(np.log(low), np.log(high), len(jobs))).astype(np.int64).tolist()
    return [
        replace(job, memory_mib=each, memory_per="cpu") for job, each in zip(jobs, mib, strict=True)
    ]


def with_gpus(
    jobs: Sequence[JobRecord], share: float, maximum: int, node_cpus: int, dice: np.random.Generator
) -> list[JobRecord]:
    """The jobs, a share of them with GPUs (rule 2)."""
    asks = dice.random(len(jobs)) < share
    steps = dice.integers(0, maximum.bit_length(), len(jobs))
    found = []
    for job, gets, step in zip(jobs, asks.tolist(), steps.tolist(), strict=True):
        nodes = max(-(-job.cpus // node_cpus), 1)
        gres = {"gpu": (1 << step) * nodes} if gets else {}
        found.append(replace(job, gres=gres, nodes=nodes if gets else job.nodes))
    return found


def load_of(jobs: Sequence[JobRecord], processors: int) -> float:
    """What arrives, as a share of the machine (rule 3); 0 if all are submitted at once."""
    times = [job.submit_s for job in jobs]
    span_s = max(times) - min(times)
    work = sum(job.cpus * job.runtime_s for job in jobs)
    return work / (processors * span_s) if span_s else 0.0


def with_load(jobs: Sequence[JobRecord], processors: int, load: float) -> list[JobRecord]:
    """The jobs, stretched in time to a load (rule 3).

    Raises:
        ConfigError: they have no load to scale.
    """
    found = load_of(jobs, processors)
    if not found:
        raise ConfigError("load", "there are too few jobs to scale their load")
    first = min(job.submit_s for job in jobs)
    moved = []
    for job in jobs:
        by = round((job.submit_s - first) * (found / load - 1))
        shift = {
            key: value + by
            for key in ("submit_s", "eligible_s", "start_s", "end_s")
            if (value := getattr(job, key))
        }
        moved.append(replace(job, **shift))
    return moved


def _numbered(prefix: str, number: float) -> str:
    return f"{prefix}{int(number)}" if number >= 0 else ""
