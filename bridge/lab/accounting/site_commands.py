# SPDX-License-Identifier: Apache-2.0
"""Asks a site's Slurm for its jobs (pyslurm or sacct), outages and reservations, and nodes.

Rules
    1. pyslurm is used if it fits the site's version; else `sacct --json` from Slurm 23.11 on; else
       `sacct --parsable2`. Why one was not used is told.
    2. Jobs are asked for in stretches of `_STRETCH_S`, so that no output is too large; those that
       are in several count once.
    3. A command that fails is an error with its own words, except sacctmgr: then there are no
       outages or reservations, and that is told.
"""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field

from bridge.errors import ConfigError
from bridge.lab.accounting import pyslurm_jobs, sacct_json, sacct_table
from bridge.lab.accounting.found import AccountingRecords
from bridge.lab.accounting.slurm_events import read_events, read_reservations
from bridge.lab.accounting.slurm_system import system_yaml
from bridge.units import format_instant

READERS = ("pyslurm", "json", "table")
_STRETCH_S = 7 * 86_400
_TIMEOUT_S = 3600.0
_JSON_FROM = (23, 11)


@dataclass
class SiteRecords:
    """What a site's commands say.

    Attributes:
        found: jobs, outages and reservations.
        notes: what was not used or not to be had, and why.
    """

    found: AccountingRecords
    version: str
    cluster: str
    system: str
    notes: list[str] = field(default_factory=list)


def ask_slurm(since_s: int, until_s: int, reader: str = "") -> SiteRecords:
    """Asks for everything.

    Args:
        since_s: Unix seconds; jobs that were there after it,
        reader: one of `READERS`; empty: the best one.

    Raises:
        ConfigError: a command is missing or fails, or the reader cannot be used.
    """
    version = _run("sacct", "--version").decode("utf-8", "replace").split()[-1]
    notes: list[str] = []
    chosen = reader or _choose(version, notes)
    if chosen == "pyslurm" and (why := pyslurm_jobs.unfit(version)) is not None:
        raise ConfigError("reader", f"{why}; use --reader json or table")
    found: AccountingRecords | None = None
    for begin_s in range(since_s, max(until_s, since_s + 1), _STRETCH_S):
        one = _READ[chosen](begin_s, min(begin_s + _STRETCH_S, until_s))
        if found is None:
            found = one
        else:
            one.repeated = 0
            before = found.repeated
            found.join(one)
            found.repeated = before
    assert found is not None  # the range has at least one stretch
    _more("event", ("Cluster,NodeName,Start,End,State,Reason", since_s), found, read_events, notes)
    _more(
        "reservation",
        ("Cluster,Name,Start,End,Flags,NodeNames", since_s),
        found,
        read_reservations,
        notes,
    )
    cluster = _cluster()
    try:
        system = system_yaml(
            _run("scontrol", "show", "nodes", "--oneliner"),
            _run("scontrol", "show", "partitions", "--oneliner"),
            cluster,
            found,
        )
    except ValueError as error:
        raise ConfigError("scontrol", f"what it prints is not understood: {error}") from None
    return SiteRecords(found, version, cluster, system, notes)


def _choose(version: str, notes: list[str]) -> str:
    why = pyslurm_jobs.unfit(version)
    if why is None:
        return "pyslurm"
    notes.append(why)
    numbers = [int(part) for part in version.split(".")[:2] if part.isdigit()]
    if tuple(numbers) >= _JSON_FROM:
        return "json"
    notes.append(f"Slurm {version} is older than 23.11, whose JSON lacks fields")
    return "table"


def _by_json(since_s: int, until_s: int) -> AccountingRecords:
    text = _run("sacct", "--json", *_period(since_s, until_s))
    try:
        return sacct_json.read_sacct_json([text], "sacct")
    except ValueError as error:
        raise ConfigError("sacct", f"what it prints {error}; try --reader table") from None


def _by_table(since_s: int, until_s: int) -> AccountingRecords:
    known = _run("sacct", "--helpformat").decode("utf-8", "replace").split()
    columns = f"--format={sacct_table.header_of(known)}"
    text = _run("sacct", "--parsable2", "--allocations", columns, *_period(since_s, until_s))
    try:
        return sacct_table.read_sacct_table(text.split(b"\n"), "sacct")
    except ValueError as error:
        raise ConfigError("sacct", str(error)) from None


def _by_pyslurm(since_s: int, until_s: int) -> AccountingRecords:
    try:
        return pyslurm_jobs.read_by_pyslurm(since_s, until_s)
    except ValueError as error:
        raise ConfigError("pyslurm", f"{error}; use --reader json or table") from None


_READ: dict[str, Callable[[int, int], AccountingRecords]] = {
    "pyslurm": _by_pyslurm,
    "json": _by_json,
    "table": _by_table,
}


def _period(since_s: int, until_s: int) -> tuple[str, ...]:
    return (
        "--allusers",
        f"--starttime={format_instant(since_s)}",
        f"--endtime={format_instant(until_s)}",
    )


def _more(
    what: str,
    requested: tuple[str, int],
    found: AccountingRecords,
    read: Callable[[str, str, AccountingRecords], None],
    notes: list[str],
) -> None:
    columns, since_s = requested
    try:
        text = _run(
            "sacctmgr", "show", what, "--parsable2", f"start={format_instant(since_s)}",
            f"format={columns}",
        )  # fmt: skip
    except ConfigError as error:
        notes.append(f"no {what}s: {error}")
        return
    read(text.decode("utf-8", "replace"), f"sacctmgr show {what}", found)


def _cluster() -> str:
    for line in _run("scontrol", "show", "config").decode("utf-8", "replace").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "ClusterName":
            return value.strip()
    return "cluster"


def _run(*command: str) -> bytes:
    """What a command prints.

    Raises:
        ConfigError: it is missing, fails, or takes too long.
    """
    if shutil.which(command[0]) is None:
        raise ConfigError(
            command[0], "is not there: import on a machine with Slurm's commands, or give files"
        )
    try:
        done = subprocess.run(
            command, capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(command[0], f"has not answered within {_TIMEOUT_S:.0f} s") from None
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
        raise ConfigError(" ".join(command[:3]), f"failed: {words[-1][:200]}")
    return done.stdout
