# SPDX-License-Identifier: Apache-2.0
"""The file of a site workload, `*.workload.jsonl[.gz]`: one JSON object per line.

Rules
    1. The first line is the header: `format` "schedbridge-workload", `version` 1, `name`,
       `processors`, and `about`, texts about its origin.
    2. Every other line is a record; its `kind` is job, outage or reservation. Fields that are empty
       are left out. `bridge.lab.sim.workloads.records.job_record` has them all.
    3. A line that is no record, and a job whose id was there before, is refused with its number;
       `lenient` drops and counts it.
    4. A file of a later version is refused. Within a version fields are only added.
    5. Lines are read one by one, and the memory of what is kept is counted (`history_budget`).
"""

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from bridge import json_text
from bridge.errors import TraceError
from bridge.files import MIB, held_bytes, history_budget, history_bytes
from bridge.lab.sim.workloads.packed_text import PackedText, foreign
from bridge.lab.sim.workloads.records.job_record import (
    JobRecord,
    Outage,
    ReservationRecord,
    SiteWorkload,
)

FORMAT: Final = "schedbridge-workload"
VERSION: Final = 1
LONGEST_LINE: Final = 4 * MIB
_KINDS: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    "job": JobRecord.of,
    "outage": Outage.of,
    "reservation": ReservationRecord.of,
}


def is_site_workload(path: str | Path) -> bool:
    """Whether a file's name says that it is a site workload."""
    return ".workload.jsonl" in Path(path).name


def write_site_workload(path: Path, site: SiteWorkload) -> None:
    """Writes a file that `read_site_workload` reads back; gzip if its name ends in `.gz`.

    Raises:
        OSError: it cannot be written.
    """
    header = {
        "format": FORMAT,
        "version": VERSION,
        "name": site.name,
        "processors": site.processors,
        "about": dict(site.about),
    }
    lines = [_line(header)]
    for kind, records in (
        ("job", site.jobs),
        ("outage", site.outages),
        ("reservation", site.reservations),
    ):
        lines += [_line({"kind": kind, **record.plain()}) for record in records]
    raw = ("\n".join(lines) + "\n").encode("utf-8", "replace")
    # mtime 0: the same workload gives the same bytes.
    path.write_bytes(gzip.compress(raw, mtime=0) if path.suffix == ".gz" else raw)


def read_site_workload(path: str | Path, *, lenient: bool = False) -> SiteWorkload:
    """Reads a site workload.

    Args:
        path: the path of the file, plain or packed.
        lenient: drop lines that break the rules instead of refusing the file.

    Raises:
        TraceError: the file cannot be read, is of another format or version, has no jobs, or
            (strict) breaks a rule.
    """
    shown = str(path)
    try:
        with PackedText(path, history_bytes()) as packed:
            if (what := foreign(packed.head)) is not None:
                raise TraceError(shown, None, what)
            return _read(shown, packed, lenient)
    except OSError as error:
        raise TraceError(shown, None, f"cannot be read: {error.strerror}") from None


def _read(shown: str, packed: PackedText, lenient: bool) -> SiteWorkload:
    lines = packed.lines(LONGEST_LINE)
    budget = history_budget()
    dropped: list[str] = []
    name, processors, about = _header(shown, next(lines, b""))
    found: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
    known: set[str] = set()
    number = 1
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        try:
            kind, record = _record(line)
            if kind == "job":
                if record.id in known:
                    raise ValueError(f"job {record.id[:40]} was there before")
                known.add(record.id)
        except ValueError as error:
            if not lenient:
                hint = "fix or remove the line, or use --lenient to drop it"
                raise TraceError(shown, number, f"{error}; {hint}") from None
            dropped.append(f"{shown}:{number}: {error}")
            budget.take(held_bytes(dropped[-1]))
            continue
        budget.take(held_bytes(list(vars(record).values())))
        found[kind].append(record)
    if packed.fault is not None:
        what = f"{packed.fault}: {packed.remedy}, or read it up to there with --lenient"
        if not lenient:
            raise TraceError(shown, number + 1, what)
        dropped.append(f"{shown}:{number + 1}: {packed.fault}")
    if not found["job"]:
        raise TraceError(shown, None, "has no jobs")
    jobs, outages, reservations = (found[kind] for kind in _KINDS)
    return SiteWorkload(name, jobs, outages, reservations, processors, about, tuple(dropped))


def _header(shown: str, line: bytes) -> tuple[str, int, dict[str, str]]:
    try:
        header = json_text.load(line)
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise TraceError(shown, 1, "is not the header of a site workload; see docs/IMPORT.md")
    version = header.get("version")
    if version != VERSION:
        raise TraceError(
            shown, 1, f"version {str(version)[:20]} is not known: this program reads {VERSION}"
        )
    name, processors, about = (header.get(key) for key in ("name", "processors", "about"))
    if (
        not isinstance(name, str)
        or not isinstance(processors, int)
        or not 0 <= processors < 1 << 31
        or not isinstance(about, dict)
        or not all(isinstance(text, str) for text in about.values())
    ):
        raise TraceError(shown, 1, "the header lacks name, processors or about, or has others")
    return name, processors, about


def _record(line: bytes) -> tuple[str, Any]:
    try:
        values = json_text.load(line)
    except ValueError:
        raise ValueError("is not JSON: the line may be cut off") from None
    if not isinstance(values, dict):
        raise ValueError("is no JSON object")
    kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError("its kind is not job, outage or reservation")
    return kind, _KINDS[kind](values)


def _line(values: Mapping[str, Any]) -> str:
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False)
