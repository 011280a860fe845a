# SPDX-License-Identifier: Apache-2.0
"""Reads what `sacct --parsable2` prints: a line of names, and one line per job, separated by `|`.

Rules
    1. Columns are found by name, in any order; unknown ones are ignored. JobID and Submit must be
       there. `FIELDS` are those that are asked for, as far as the site's sacct knows them.
    2. Lines of steps (`12.batch`) are skipped. A line with another number of fields is counted and
       named; SubmitLine, the last column that is asked for, may contain `|`.
    3. Amounts of memory may carry Slurm's old suffixes: `4Gn` is per node, `1000Mc` per CPU.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from bridge.lab.accounting.found import AccountingRecords
from bridge.lab.accounting.sacct_json import checked
from bridge.lab.accounting.slurm_words import (
    bounded,
    duration_s,
    instant_s,
    is_unknown,
    memory_mib,
    state_of,
    submission_of,
    tres_of,
)
from bridge.lab.sim.workloads.records.job_record import JobRecord

NAME = "sacct --parsable2"
FIELDS = (
    "JobID", "JobIDRaw", "JobName", "User", "Account", "Group", "Partition", "QOS", "State",
    "Submit", "Eligible", "Start", "End", "ElapsedRaw", "Elapsed", "Suspended", "Timelimit",
    "NNodes", "NodeList", "AllocCPUS", "ReqCPUS", "ReqMem", "AllocTRES", "ReqTRES", "Constraints",
    "Reservation", "Licenses", "Priority", "Restarts", "SubmitLine",
)  # fmt: skip
_ID = re.compile(r"([0-9]+)(?:_([0-9]+|\[[^\]]*\])|\+([0-9]+))?")
_STEP = re.compile(r"[0-9]+(?:[_+][^.]*)?\..*")
_OLD_MEMORY = re.compile(r"(.*[0-9KMGTP])([nc])")
_LAST = "SubmitLine"


def read_sacct_table(lines: Iterable[bytes], where: str) -> AccountingRecords:
    """Reads the jobs.

    Args:
        where: its origin, for messages.

    Raises:
        ValueError: the first line does not name JobID and Submit.
        OSError: the jobs would need too much memory.
    """
    texts = (line.decode("utf-8", "replace") for line in lines)
    first = next((line for line in texts if line.strip()), "")
    names = first.strip("\r").rstrip("|").split("|")
    if "JobID" not in names or "Submit" not in names:
        raise ValueError("the first line does not name JobID and Submit: it is not of sacct")
    found = AccountingRecords(NAME)
    for number, line in enumerate(texts, 2):
        words = line.rstrip("\r").split("|")
        if len(words) > len(names):
            rest = words[len(names) - 1 :]
            if names[-1] == _LAST or not any(rest[1:]):
                words = [*words[: len(names) - 1], "|".join(rest).rstrip("|")]
        if not line.strip() or _STEP.fullmatch(words[names.index("JobID")] if words else ""):
            continue
        found.take(f"{where}:{number}", found.add, _line, names, words)
    return found


def _line(names: Sequence[str], words: Sequence[str]) -> JobRecord:
    if len(words) != len(names):
        raise ValueError(f"{len(words)} fields instead of {len(names)}")
    return _job(dict(zip(names, words, strict=True)))


def header_of(known: Sequence[str]) -> str:
    """The value of `--format` for a sacct that knows these fields."""
    names = {name.lower() for name in known}
    return ",".join(name for name in FIELDS if name.lower() in names)


def _job(row: Mapping[str, str]) -> JobRecord:
    def text(name: str) -> str:
        value = row.get(name, "").strip()
        return "" if value in ("Unknown", "None assigned", "None", "(null)") else value

    identity = _ID.fullmatch(text("JobID"))
    if identity is None:
        raise ValueError(f"JobID is '{row['JobID'][:40]}'")
    number, task, offset = identity.groups()
    submit_s = instant_s(row["Submit"])
    if not submit_s:
        raise ValueError("Submit is unknown")
    allocated, requested = tres_of(text("AllocTRES")), tres_of(text("ReqTRES"))
    line = submission_of(text("SubmitLine"))
    cpus = allocated.cpus or _count(text("AllocCPUS"))
    req_cpus = requested.cpus or _count(text("ReqCPUS"))
    nodes = allocated.nodes or _count(text("NNodes")) or requested.nodes
    start_s, end_s = instant_s(text("Start")), instant_s(text("End"))
    elapsed = text("ElapsedRaw")
    runtime_s = bounded(int(elapsed[:20])) if elapsed.isdigit() else duration_s(text("Elapsed"))
    per_cpu = "--mem-per-cpu" in row.get(_LAST, "")
    memory, per = _memory(text("ReqMem"), max(nodes, 1), per_cpu, req_cpus)
    gres = allocated.gres or requested.gres
    if not gres:
        each = {name: amount * max(nodes, 1) for name, amount in line.gres_per_node.items()}
        gres = {**each, **line.gres_in_all}
    return checked(
        {
            "id": number + (f"_{task}" if task else f"+{offset}" if offset else ""),
            "submit_s": submit_s,
            "eligible_s": instant_s(text("Eligible")),
            "start_s": start_s,
            "end_s": end_s,
            "runtime_s": runtime_s if start_s else 0,
            "time_limit_s": duration_s(text("Timelimit")),
            "state": state_of(row.get("State", "")),
            "user": text("User"),
            "account": text("Account"),
            "group": text("Group"),
            "name": text("JobName"),
            "partitions": tuple(filter(None, text("Partition").split(","))),
            "qos": text("QOS"),
            "reservation": text("Reservation"),
            "nodes": nodes,
            "least_nodes": requested.nodes,
            "node_list": text("NodeList"),
            "cpus": cpus or req_cpus,
            "requested_cpus": req_cpus,
            "memory_mib": memory,
            "memory_per": per if memory else "",
            "gres": gres,
            "features": text("Constraints"),
            "exclusive": line.exclusive,
            "licences": text("Licenses"),
            "array": number if task else "",
            "array_limit": line.array_limit,
            "component": number if offset else "",
            "after": line.after,
            "restarts": _count(text("Restarts")),
            "priority": _count(text("Priority")),
        }
    )


def _memory(text: str, nodes: int, per_cpu: bool, cpus: int) -> tuple[int, str]:
    """Memory and what it is for. New sacct prints the sum over all nodes or CPUs."""
    if is_unknown(text) or text == "0":
        return 0, ""
    old = _OLD_MEMORY.fullmatch(text)
    if old is not None:
        return memory_mib(old.group(1)), "node" if old.group(2) == "n" else "cpu"
    total = memory_mib(text)
    return (-(-total // max(cpus, 1)), "cpu") if per_cpu else (-(-total // nodes), "node")


def _count(text: str) -> int:
    return bounded(int(text)) if text.isascii() and text.isdigit() and len(text) <= 20 else 0
