# SPDX-License-Identifier: Apache-2.0
"""Reads the accounting logs of OpenPBS: `server_priv/accounting/YYYYMMDD`, one after the other.

Rules
    1. A line is `time;type;job;key=value ...`. Q (queued), S (started) and E (ended) describe a
       job; D (deleted by a user), A (aborted) and R (rerun) change what becomes of it. B and Y are
       reservations. Other types are skipped, and so are keys that are not known.
    2. The last E of a job counts. A job that only started is running, one that was only queued is
       pending, or cancelled if it was deleted.
    3. `ncpus`, `mem` and `ngpus` are sums over the job; memory is divided by the number of hosts.
       The select statement is kept as `shape`.
    4. A line that cannot be read is counted and named.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from datetime import datetime

from bridge.errors import BadRequest
from bridge.files import held_bytes
from bridge.lab.accounting.found import AccountingRecords
from bridge.lab.accounting.sacct_json import checked
from bridge.lab.accounting.slurm_words import bounded, dependencies
from bridge.lab.sim.workloads.records.job_record import (
    JobEnding,
    JobRecord,
    ReservationRecord,
)
from bridge.pbs.objects.values import duration_s, size_kib

NAME = "PBS accounting log"
_LINE = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d);([A-Za-z]);([^;]*);(.*)", re.DOTALL)
_ID = re.compile(r"([0-9]+)(?:\[([0-9]*)\])?")
_KILLED_BY_LIMIT = -29
_JOB = frozenset("QSEDAR")
_RESERVATION = frozenset("BY")


def is_pbs_log(text: bytes) -> bool:
    """Whether the first line that is not blank is of an accounting log."""
    first = text.lstrip().split(b"\n", 1)[0][:200].decode("utf-8", "replace")
    return _LINE.match(first) is not None


def read_pbs_log(lines: Iterable[bytes], where: str) -> AccountingRecords:
    """Reads the jobs and reservations.

    Args:
        lines: lines of a log, or several one after the other.
        where: its origin, for messages.

    Raises:
        OSError: what they say would need too much memory.
    """
    found = AccountingRecords(NAME)
    known: dict[str, dict[str, str]] = {}
    for number, raw in enumerate(lines, 1):
        line = raw.decode("utf-8", "replace")
        if not line.strip():
            continue
        parts = _LINE.fullmatch(line.rstrip("\r"))
        if parts is None:
            found.fault(f"{where}:{number}", "is not a line of an accounting log")
            continue
        at, kind, name, message = parts.groups()
        try:
            if kind in _RESERVATION:
                found.add_reservation(_reservation(name, _keys(message)))
            elif kind in _JOB:
                keys = _keys(message)
                found.budget.take(held_bytes(name) + held_bytes(keys))
                _note(known.setdefault(name, {}), kind, _instant_s(at), keys)
        except (ValueError, BadRequest) as error:
            found.fault(f"{where}:{number}", error)
    for name, keys in known.items():
        try:
            if not name.partition(".")[0].endswith("[]"):  # the array itself; its tasks are there
                found.add(_job(name, keys))
        except (ValueError, BadRequest, OverflowError) as error:
            found.fault(f"{where}: job {name[:40]}", error)
    return found


def _note(keys: dict[str, str], kind: str, at_s: int, message: Mapping[str, str]) -> None:
    """Adds what a line says to what is known of its job."""
    if kind in "SE":
        keys.update(message)
    else:
        for key, value in message.items():
            keys.setdefault(key, value)
    if kind == "Q":
        keys.setdefault("(queued)", str(at_s))
    elif kind == "R":
        keys["(restarts)"] = str(int(keys.get("(restarts)", "0")) + 1)
        keys.pop("(E)", None)
    keys[f"({kind})"] = str(at_s)


def _job(name: str, keys: Mapping[str, str]) -> JobRecord:
    identity = _ID.match(name)
    if identity is None:
        raise ValueError("its id is not a number")
    number, task = identity.groups()
    submit_s = _number(keys.get("qtime") or keys.get("ctime") or keys.get("(queued)"))
    if not submit_s:
        raise ValueError("its time of submission is unknown")
    listed = {
        key.removeprefix("Resource_List."): value
        for key, value in keys.items()
        if key.startswith("Resource_List.")
    }
    hosts = _hosts(keys.get("exec_host", ""))
    started = "(S)" in keys or "(E)" in keys
    nodes = len(hosts) or _number(listed.get("nodect"))
    memory_kib = size_kib(listed["mem"]) if "mem" in listed else 0
    gpus = _number(listed.get("ngpus"))
    start_s = _number(keys.get("start")) if started else 0
    end_s = _number(keys.get("end")) if "(E)" in keys else 0
    used = keys.get("resources_used.walltime")
    runtime_s = duration_s(used) if used else max(end_s - start_s, 0)
    place = listed.get("place", "")
    return checked(
        {
            "id": number + (f"_{task}" if task else ""),
            "submit_s": submit_s,
            "eligible_s": _number(keys.get("etime")),
            "start_s": start_s,
            "end_s": end_s,
            "runtime_s": runtime_s if end_s else 0,
            "time_limit_s": duration_s(listed["walltime"]) if "walltime" in listed else 0,
            "state": _state(keys),
            "user": keys.get("user", ""),
            "account": keys.get("account") or keys.get("project", ""),
            "group": keys.get("group", ""),
            "name": keys.get("jobname", ""),
            "partitions": (keys["queue"],) if keys.get("queue") else (),
            "reservation": keys.get("resvname", ""),
            "nodes": nodes,
            "node_list": ",".join(hosts),
            "cpus": _number(listed.get("ncpus")),
            "requested_cpus": _number(listed.get("ncpus")),
            "memory_mib": -(-memory_kib // 1024 // max(nodes, 1)),
            "memory_per": "node" if memory_kib else "",
            "gres": {"gpu": gpus} if gpus else {},
            "exclusive": "excl" in place,
            "array": number if task else "",
            "after": dependencies(keys.get("depend", "").replace("@", ":")),
            "restarts": _number(keys.get("(restarts)")),
            "shape": listed.get("select", "")[:4096],
        }
    )


def _state(keys: Mapping[str, str]) -> JobEnding:
    if "(E)" in keys:
        status = int(keys.get("Exit_status", "0"))
        if status == _KILLED_BY_LIMIT:
            return JobEnding.TIMEOUT
        if "(D)" in keys:
            return JobEnding.CANCELLED
        return JobEnding.COMPLETED if status == 0 else JobEnding.FAILED
    if "(D)" in keys or "(A)" in keys:
        return JobEnding.CANCELLED
    return JobEnding.RUNNING if "(S)" in keys and "(R)" not in keys else JobEnding.PENDING


def _reservation(name: str, keys: Mapping[str, str]) -> ReservationRecord:
    hosts = dict.fromkeys(
        part.strip("()").split(":")[0] for part in keys.get("nodes", "").split("+")
    )
    values = {
        "name": keys.get("name") or name,
        "start_s": _number(keys.get("start")),
        "end_s": _number(keys.get("end")),
        "nodes": ",".join(filter(None, hosts)),
    }
    return ReservationRecord.of(values)


def _keys(message: str) -> dict[str, str]:
    try:
        words = shlex.split(message)
    except ValueError:
        words = message.split()
    pairs = (word.partition("=") for word in words)
    return {key: value for key, equals, value in pairs if equals}


def _hosts(text: str) -> list[str]:
    """Hosts of `n1/0*2+n2/1`, each once."""
    return list(dict.fromkeys(part.split("/")[0].split(".")[0] for part in text.split("+") if part))


def _number(text: str | None) -> int:
    if text is None or not text.isascii() or not text.isdigit():
        return 0
    return bounded(int(text[:20]))


def _instant_s(text: str) -> int:
    try:
        return int(datetime.strptime(text, "%m/%d/%Y %H:%M:%S").timestamp())
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"'{text}' is not a time") from None
