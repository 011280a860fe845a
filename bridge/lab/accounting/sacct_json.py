# SPDX-License-Identifier: Apache-2.0
"""Reads what `sacct --json` prints.

Rules
    1. Fields are those of data_parser v0.0.39 to v0.0.42 (Slurm 23.02 to 25.05); numbers may be
       plain or `{set, infinite, number}`, a state a text or a list.
    2. An entry without number or time of submission, or with an impossible value, is counted and
       named by its position.
    3. An array's task has the id ARRAY_TASK, a component JOB+OFFSET. An array that has not started
       is one entry, with the tasks that wait; it is taken as one job.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from bridge import json_text
from bridge.lab.accounting.found import AccountingRecords
from bridge.lab.accounting.slurm_words import Tres, bounded, state_of, submission_of, whole
from bridge.lab.sim.workloads.records.job_record import JobRecord

NAME = "sacct --json"


def read_sacct_json(pieces: Iterable[bytes], where: str) -> AccountingRecords:
    """Reads the jobs.

    Args:
        where: its origin, for messages.

    Raises:
        ValueError: it is not JSON, or has no list of jobs.
        OSError: an entry, or all jobs together, would need too much memory.
    """
    found = AccountingRecords(NAME)
    try:
        for position, entry in enumerate(json_text.members(pieces, "jobs"), 1):
            found.take(f"{where}: job {position}", found.add, job_of, entry)
    except KeyError:
        raise ValueError("has no list 'jobs': it is not what sacct --json prints") from None
    except ValueError as error:
        raise ValueError(f"is not JSON, or cut off: {error}") from None
    return found


def job_of(entry: Any) -> JobRecord:
    """One job; raises anything if it lacks a field, or has an impossible one."""
    if isinstance(entry, json_text.Unreadable):
        raise ValueError(entry.reason)
    times, array, het = entry["time"], entry.get("array") or {}, entry.get("het") or {}
    allocated = _tres(entry, "allocated")
    requested = _tres(entry, "requested")
    required = entry.get("required") or {}
    line = submission_of(str(entry.get("submit_line") or ""))
    state = entry.get("state") or {}
    current = state.get("current", "") if isinstance(state, Mapping) else state
    nodes = str(entry.get("nodes") or "")
    node_list = "" if nodes.startswith("None") else nodes
    count = allocated.nodes or whole(entry.get("allocation_nodes")) or requested.nodes
    start_s = whole(times.get("start"))
    runtime_s = whole(times.get("elapsed"))
    per_cpu = _memory(required, "memory_per_cpu", "memory_per_cpu")
    per_node = _memory(required, "memory_per_node", "memory_per_node")
    reservation = entry.get("reservation") or {}
    values = {
        "id": _id(entry, array, het),
        "submit_s": _needed(whole(times.get("submission")), "time of submission"),
        "eligible_s": whole(times.get("eligible")),
        "start_s": start_s if runtime_s or allocated.cpus else 0,
        "end_s": whole(times.get("end")),
        "runtime_s": runtime_s,
        "time_limit_s": bounded(whole(times.get("limit")) * 60),
        "state": state_of(current[0] if isinstance(current, list) and current else str(current)),
        "user": str(entry.get("user") or (entry.get("association") or {}).get("user") or ""),
        "account": str(entry.get("account") or ""),
        "group": str(entry.get("group") or ""),
        "name": str(entry.get("name") or ""),
        "partitions": tuple(filter(None, str(entry.get("partition") or "").split(","))),
        "qos": str(entry.get("qos") or ""),
        "reservation": str(reservation.get("name") or ""),
        "nodes": count,
        "least_nodes": requested.nodes,
        "node_list": node_list,
        "cpus": allocated.cpus or requested.cpus or whole(required.get("CPUs")),
        "requested_cpus": requested.cpus or whole(required.get("CPUs")),
        "memory_mib": per_node or per_cpu,
        "memory_per": "node" if per_node else "cpu" if per_cpu else "",
        "gres": allocated.gres or requested.gres or _from_line(line, count),
        "features": str(entry.get("constraints") or ""),
        "exclusive": line.exclusive,
        "licences": str(entry.get("licenses") or ""),
        "array": _number(array.get("job_id")),
        "array_limit": whole(((array.get("limits") or {}).get("max") or {})
                             .get("running", {}).get("tasks", 0)) or line.array_limit,
        "component": _number(het.get("job_id")),
        "after": line.after,
        "restarts": whole(entry.get("restart_cnt")),
        "priority": whole(entry.get("priority")),
    }  # fmt: skip
    return checked(values)


def checked(values: Mapping[str, Any]) -> JobRecord:
    """The record, with the bounds of its fields checked as a file's are.

    Raises:
        ValueError: a value is not possible.
    """
    plain = {
        **values,
        "state": values["state"].value,
        "partitions": list(values["partitions"]),
        "after": [list(pair) for pair in values["after"]],
        "gres": dict(values["gres"]),
    }
    return JobRecord.of(plain)


def _id(entry: Mapping[str, Any], array: Mapping[str, Any], het: Mapping[str, Any]) -> str:
    number = _needed(whole(entry.get("job_id")), "job number")
    task = array.get("task_id")
    has_task = task.get("set") if isinstance(task, Mapping) else task is not None
    if whole(array.get("job_id")) and has_task:
        return f"{whole(array['job_id'])}_{whole(task)}"
    if whole(het.get("job_id")):
        return f"{whole(het['job_id'])}+{whole(het.get('job_offset'))}"
    return str(number)


def _needed(value: int, what: str) -> int:
    if not value:
        raise ValueError(f"has no {what}")
    return value


def _number(value: Any) -> str:
    number = whole(value)
    return str(number) if number else ""


def _tres(entry: Mapping[str, Any], kind: str) -> Tres:
    found = Tres()
    for each in (entry.get("tres") or {}).get(kind) or []:
        found.set(str(each.get("type")), str(each.get("name") or ""), whole(each.get("count")))
    return found


def _memory(required: Mapping[str, Any], new: str, old: str) -> int:
    value = whole(required.get(new, required.get(old)))
    return value & ~(1 << 63)


def _from_line(line: Any, nodes: int) -> dict[str, int]:
    each = {name: amount * max(nodes, 1) for name, amount in line.gres_per_node.items()}
    return {**each, **line.gres_in_all}
