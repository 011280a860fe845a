# SPDX-License-Identifier: Apache-2.0
"""`schedbridge lab import`: a site's own accounting as a workload that `simulate` reads."""

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bridge import files
from bridge.cli.options import takes
from bridge.cli.simulation.import_options import ImportOptions
from bridge.errors import ConfigError, TraceError
from bridge.lab.accounting.anonymous import pseudonymous, read_or_make_secret
from bridge.lab.accounting.found import AccountingRecords
from bridge.lab.accounting.reading import read_accounting
from bridge.lab.accounting.site_commands import ask_slurm
from bridge.lab.accounting.slurm_events import read_events, read_reservations
from bridge.lab.accounting.slurm_system import system_yaml
from bridge.lab.accounting.slurm_words import instant_s
from bridge.lab.sim.workloads.records.as_swf import as_swf
from bridge.lab.sim.workloads.records.job_record import SiteWorkload
from bridge.lab.sim.workloads.records.lowering import simulation_of
from bridge.lab.sim.workloads.records.record_file import write_site_workload
from bridge.lab.sim.workloads.swf import Trace, write_swf
from bridge.lab.sim.workloads.system import System, read_system
from bridge.measures import steps
from bridge.units import format_instant

_AGO = re.compile(r"([0-9]{1,5})([hdw])")
_UNIT_S = {"h": 3600, "d": 86_400, "w": 604_800}
_MAX = 256 * files.MIB


@takes(ImportOptions)
def import_(given: ImportOptions) -> None:
    """Read a site's accounting, replace names by pseudonyms, and write a workload for simulate."""
    given.check()
    period = _Period.of(given.since, given.until, requested=not given.accounting)
    key = None if given.keep_names else read_or_make_secret(given.secret)
    name = given.name
    if not name and key is not None and given.accounting:
        name = "site"  # the name of a file may be that of a person
    source = _read(given, name, period) if given.accounting else _ask(name, period, given.reader)
    found = source.found
    if not found.jobs:
        messages = found.messages
        first = f"; the first entry that cannot be read: {messages[0]}" if messages else ""
        raise TraceError(source.name, None, f"no jobs were found{first}")
    facts = _written(given, source, found if key is None else pseudonymous(found, key), key)
    if given.json_output:
        print(json.dumps(facts.plain()))
    else:
        facts.show()


@dataclass(frozen=True)
class _Source:
    """What was read, before names are removed."""

    name: str
    found: AccountingRecords
    system: str | None
    about: Mapping[str, str]
    notes: Sequence[str] = ()


def _read(given: ImportOptions, name: str, period: "_Period") -> _Source:
    """Reads the files that the user names."""
    accounting = given.accounting or []
    found = read_accounting(accounting)
    for path, read in ((given.events, read_events), (given.reservations, read_reservations)):
        if path is not None:
            read(_text(path).decode("utf-8", "replace"), str(path), found)
    text = None
    if given.nodes is not None and given.partitions is not None:
        text = _described(given.nodes, given.partitions, name or "site", found)
    site = name or accounting[0].name.split(".")[0] or "site"
    return _Source(site, period.within(found), text, {})


def _ask(name: str, period: "_Period", reader: str) -> _Source:
    """Asks the Slurm of this machine."""
    requested = ask_slurm(period.since_s, period.until_s, reader)
    about = {"Slurm": requested.version}
    return _Source(
        name or requested.cluster, requested.found, requested.system, about, requested.notes
    )


def _written(
    given: ImportOptions, source: _Source, found: AccountingRecords, key: bytes | None
) -> "_Facts":
    """Writes the files; `found`: without the names, unless `key` is None."""
    system = None
    if source.system is not None:
        _write(given.system_out, source.system.encode())
        system = read_system(given.system_out)
    site = SiteWorkload(
        source.name,
        list(found.jobs.values()),
        found.outages,
        found.reservations,
        system.processors if system is not None else _peak(found),
        {**source.about, "reader": found.reader, "names": _names(key, given.secret)},
    )
    _write(given.out, site)
    if given.swf is not None:
        _write(given.swf, as_swf(site))
    return _Facts(site, found, system, source.notes, [str(path) for path in given.written])


@dataclass(frozen=True)
class _Period:
    """A period in Unix seconds."""

    since_s: int
    until_s: int

    @classmethod
    def of(cls, since: str, until: str, *, requested: bool) -> "_Period":
        now_s = int(time.time())
        until_s = _time(until, "until", now_s) if until else now_s + 1
        since_s = (
            _time(since, "since", now_s) if since else until_s - 30 * 86_400 if requested else 0
        )
        if since_s >= until_s:
            raise ConfigError("since", "is not before --until")
        return cls(since_s, until_s)

    def within(self, found: AccountingRecords) -> AccountingRecords:
        jobs = {k: j for k, j in found.jobs.items() if self.since_s <= j.submit_s < self.until_s}
        return replace(found, jobs=jobs)


def _time(text: str, option: str, now_s: int) -> int:
    if ago := _AGO.fullmatch(text):
        return now_s - int(ago.group(1)) * _UNIT_S[ago.group(2)]
    try:
        at_s = instant_s(text)
    except ValueError:
        at_s = 0
    if not at_s:
        raise ConfigError(option, f"'{text[:40]}' is not a time such as 2026-11-26T10:00 or 30d")
    return at_s


def _text(path: Path) -> bytes:
    try:
        return files.read_bytes(path, _MAX)
    except OSError as error:
        raise TraceError(str(path), None, f"cannot be read: {error.strerror}") from None


def _described(nodes: Path, partitions: Path, name: str, found: AccountingRecords) -> str:
    try:
        return system_yaml(_text(nodes), _text(partitions), name, found)
    except ValueError as error:
        raise TraceError(f"{nodes}, {partitions}", None, str(error)) from None


def _names(key: bytes | None, secret: Path | None) -> str:
    if key is None:
        return "as in accounting"
    kept = "was forgotten" if secret is None else "is kept by the site"
    return f"users, groups, accounts, jobs and reservations are pseudonyms; the secret {kept}"


def _peak(found: AccountingRecords) -> int:
    """The most CPUs in use at a time."""
    ran = [job for job in found.jobs.values() if job.start_s and job.end_s > job.start_s]
    if not ran:
        return 0
    up, down, cpus = (
        np.array([getattr(job, key) for job in ran], dtype=np.int64)
        for key in ("start_s", "end_s", "cpus")
    )
    return min(int(steps(up, down, cpus)[1].max()), (1 << 31) - 1)


def _write(path: Path, what: bytes | SiteWorkload | Trace) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(what, bytes):
            path.write_bytes(what)
        elif isinstance(what, SiteWorkload):
            write_site_workload(path, what)
        else:
            write_swf(path, what.header, what.columns)
    except OSError as error:
        raise ConfigError("out", f"cannot write: {error.strerror}", file=str(path)) from None


@dataclass(frozen=True)
class _Facts:
    """What was imported, and what a simulation makes of it."""

    site: SiteWorkload
    found: AccountingRecords
    system: System | None
    notes: Sequence[str]
    written: Sequence[str]

    def _simulated(self) -> tuple[int, dict[str, int], tuple[str, ...]]:
        try:
            size = self.site.processors or max(job.cpus for job in self.site.jobs)
            made = simulation_of(self.site, self.system, max(size, 1))
        except TraceError as error:
            return 0, {}, (str(error),)
        return len(made.workload), dict(made.workload.left_out), made.ignored

    def plain(self) -> dict[str, object]:
        """The values for JSON."""
        jobs, left_out, ignored = self._simulated()
        return {
            "written": list(self.written),
            "about": dict(self.site.about),
            "processors": self.site.processors,
            "jobs": len(self.site.jobs),
            "outages": len(self.site.outages),
            "reservations": len(self.site.reservations),
            "repeated_records": self.found.repeated,
            "unreadable_entries": self.found.faults,
            "first_unreadable": list(self.found.messages),
            "notes": list(self.notes),
            "simulated_jobs": jobs,
            "left_out": left_out,
            "not_honoured": list(ignored),
        }

    def show(self) -> None:
        """Prints what was read."""
        site, found = self.site, self.found
        times = [job.submit_s for job in site.jobs]
        print(f"read by {found.reader}" + "".join(f"\n  ({note})" for note in self.notes))
        print(
            f"{len(site.jobs):,} jobs submitted from {format_instant(min(times))} to"
            f" {format_instant(max(times))}; {len(site.outages):,} outages,"
            f" {len(site.reservations):,} reservations"
        )
        print(site.about["names"])
        if self.system is None:
            size = f"{site.processors:,}, the most in use at a time"
            print(f"processors: {size if site.processors else 'unknown'}")
        if found.repeated:
            print(f"{found.repeated:,} records of jobs that occur again: the last one counts")
        if found.faults:
            print(f"{found.faults:,} entries cannot be read and are left out; the first:")
            for message in found.messages[:5]:
                print(f"  {message}")
        jobs, left_out, ignored = self._simulated()
        print(f"simulate takes {jobs:,} of the jobs")
        for why, count in left_out.items():
            print(f"  left out: {count:,} {why}")
        for what in ignored:
            print(f"  not honoured: {what}")
        print("written: " + ", ".join(self.written))
