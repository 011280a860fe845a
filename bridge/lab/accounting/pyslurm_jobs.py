# SPDX-License-Identifier: Apache-2.0
"""Reads jobs from slurmdbd by pyslurm, where it is installed and fits the site's Slurm.

Rules
    1. pyslurm is optional. Its versions X.Y.Z are for Slurm X.Y only; one that does not fit is not
       used, because it would misread Slurm's structures.
    2. It shows neither allocated generic resources nor what was requested of nodes: GPUs are those
       of the line of submission.
"""

import importlib
from collections.abc import Mapping
from typing import Any

from bridge.lab.accounting.found import AccountingRecords
from bridge.lab.accounting.sacct_json import checked
from bridge.lab.accounting.slurm_words import bounded, state_of, submission_of
from bridge.lab.sim.workloads.records.job_record import JobRecord

NAME = "slurmdbd by pyslurm"


def unfit(slurm_version: str) -> str | None:
    """Why pyslurm cannot be used with this version of Slurm (`24.11.5`); None: it can."""
    try:
        module = importlib.import_module("pyslurm")
    except ImportError as error:
        return f"pyslurm cannot be imported ({error})"
    except Exception as error:  # it connects to Slurm when it is imported
        return f"pyslurm fails when it is imported ({error})"
    version = str(getattr(module, "__version__", ""))
    if version.split(".")[:2] != slurm_version.split(".")[:2]:
        return f"pyslurm {version or '(no version)'} is not for Slurm {slurm_version}"
    return None


def read_by_pyslurm(since_s: int, until_s: int) -> AccountingRecords:
    """Reads the jobs of a period.

    Args:
        since_s: Unix seconds.
        until_s: Unix seconds.

    Raises:
        ValueError: slurmdbd does not answer, or refuses.
    """
    module = importlib.import_module("pyslurm")
    found = AccountingRecords(f"{NAME} {module.__version__}")
    try:
        filtered = module.db.JobFilter(start_time=since_s, end_time=until_s)
        jobs = list(module.db.Jobs.load(filtered).values())
    except Exception as error:
        raise ValueError(f"slurmdbd does not answer pyslurm: {error}") from None
    for job in jobs:
        found.take(f"job {getattr(job, 'id', '?')}", found.add, _job, job)
    return found


def _job(job: Any) -> JobRecord:
    line = submission_of(str(job.submit_command or ""))
    array, task = job.array_id, job.array_task_id
    het, offset = job.heterogeneous_id, job.heterogeneous_offset
    identity = str(int(job.id))
    if array and task is not None:
        identity = f"{int(array)}_{int(task)}"
    elif het:
        identity = f"{int(het)}+{_count(offset)}"
    nodes, cpus = _count(job.num_nodes), _count(job.cpus)
    per_cpu = "--mem-per-cpu" in str(job.submit_command or "")
    memory = _count(job.memory)
    each = {name: amount * max(nodes, 1) for name, amount in line.gres_per_node.items()}
    constraints = job.constraints or []
    start_s, elapsed = _count(job.start_time), _count(job.elapsed_time)
    limit = job.time_limit
    submit_s = _count(job.submit_time)
    if not submit_s:
        raise ValueError("has no time of submission")
    values: Mapping[str, Any] = {
        "id": identity,
        "submit_s": submit_s,
        "eligible_s": _count(job.eligible_time),
        "start_s": start_s,
        "end_s": _count(job.end_time),
        "runtime_s": max(elapsed, 0) if start_s else 0,
        "time_limit_s": limit * 60 if isinstance(limit, int) and 0 < limit < 1 << 31 else 0,
        "state": state_of(str(job.state or "")),
        "user": str(job.user_name or ""),
        "account": str(job.account or ""),
        "name": str(job.name or ""),
        "partitions": tuple(filter(None, str(job.partition or "").split(","))),
        "qos": str(job.qos or ""),
        "reservation": str(job.reservation or ""),
        "nodes": nodes,
        "node_list": "" if str(job.nodelist or "").startswith("None") else str(job.nodelist or ""),
        "cpus": cpus,
        "memory_mib": -(-memory // max(cpus if per_cpu else nodes, 1)),
        "memory_per": ("cpu" if per_cpu else "node") if memory else "",
        "gres": {**each, **line.gres_in_all},
        "features": "&".join(map(str, constraints)) if isinstance(constraints, list) else "",
        "exclusive": line.exclusive,
        "array": str(int(array)) if array and task is not None else "",
        "array_limit": _count(job.array_tasks_parallel) or line.array_limit,
        "component": str(int(het)) if het else "",
        "after": line.after,
        "restarts": _count(job.requeue_count) if hasattr(job, "requeue_count") else 0,
        "priority": _count(job.priority),
    }
    return checked(values)


def _count(value: Any) -> int:
    """A number; 0 for None and texts such as `UNLIMITED`."""
    return bounded(int(value)) if isinstance(value, int) and not isinstance(value, bool) else 0
