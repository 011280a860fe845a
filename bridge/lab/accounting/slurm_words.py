# SPDX-License-Identifier: Apache-2.0
"""Words of Slurm's accounting: times, durations, amounts, states, and lines of submission.

Rules
    1. Unknown values (`Unknown`, `None`, `UNLIMITED`, `Partition_Limit`, 0xfffffffe, ...) are 0.
    2. Times are local, as Slurm's commands print them, or Unix seconds.
    3. Amounts have the suffixes K, M, G, T, P of 1024; memory without one is MiB.
    4. The line of submission gives what accounting has no field for: dependencies, exclusive nodes,
       generic resources where the site does not account for them, limits of arrays. Options in the
       script itself (#SBATCH) are not in it.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil, isfinite
from typing import Any, Final

from bridge.lab.sim.workloads.records.job_record import LARGEST, JobEnding

NO_VALUE: Final = 0xFFFFFFFE
_UNKNOWN: Final = frozenset(
    ("", "unknown", "none", "unlimited", "partition_limit", "invalid", "n/a", "(null)", "noval")
)
_POWERS: Final = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_AMOUNT: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)([KMGTP]?)i?B?([cn]?)", re.IGNORECASE)
_DURATION: Final = re.compile(r"(?:(\d{1,7})-)?(\d{1,9})(?::(\d{1,2}))?(?::(\d{1,2}))?(?:\.\d+)?")
_STATES: Final = {
    "COMPLETED": JobEnding.COMPLETED,
    "COMPLETING": JobEnding.COMPLETED,
    "FAILED": JobEnding.FAILED,
    "BOOT_FAIL": JobEnding.NODE_FAILED,
    "NODE_FAIL": JobEnding.NODE_FAILED,
    "CANCELLED": JobEnding.CANCELLED,
    "REVOKED": JobEnding.CANCELLED,
    "TIMEOUT": JobEnding.TIMEOUT,
    "DEADLINE": JobEnding.TIMEOUT,
    "OUT_OF_MEMORY": JobEnding.OUT_OF_MEMORY,
    "PREEMPTED": JobEnding.PREEMPTED,
    "RUNNING": JobEnding.RUNNING,
    "SUSPENDED": JobEnding.RUNNING,
    "RESIZING": JobEnding.RUNNING,
    "PENDING": JobEnding.PENDING,
    "REQUEUED": JobEnding.PENDING,
}
_LONGEST_LINE: Final = 1 << 16


def is_unknown(text: str) -> bool:
    """Whether a text stands for no value."""
    return text.strip().lower() in _UNKNOWN


def instant_s(text: str) -> int:
    """Unix seconds; 0: unknown.

    Raises:
        ValueError: it is no time.
    """
    text = text.strip()
    if is_unknown(text):
        return 0
    if text.isascii() and text.isdigit():
        return bounded(int(text[:20]))
    try:
        return bounded(int(datetime.fromisoformat(text).timestamp()))
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"'{text[:40]}' is not a time such as 2026-11-26T10:00:00") from None


def duration_s(text: str) -> int:
    """Seconds of `[days-]hours:minutes:seconds` or `minutes:seconds`; 0: unknown.

    Raises:
        ValueError: it is no duration.
    """
    if is_unknown(text):
        return 0
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"'{text[:40]}' is not a duration such as 1-02:03:04")
    days, *parts = found.groups()
    numbers = [int(part) for part in parts if part is not None]
    if days is not None:
        numbers = [*numbers, 0, 0][:3]
    total = 0
    for number in numbers if len(numbers) > 1 else [*numbers, 0]:
        total = total * 60 + number
    return bounded(int(days or 0) * 86_400 + total)


def amount(text: str) -> float:
    """A number with a suffix.

    Raises:
        ValueError: it is none.
    """
    found = _AMOUNT.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"'{text[:40]}' is not an amount such as 4G")
    value = float(found.group(1)) * 1024.0 ** _POWERS[found.group(2).upper()]
    if not isfinite(value) or value > LARGEST * 1024.0**2:
        raise ValueError(f"'{text[:40]}' is not a possible amount")
    return value


def memory_mib(text: str) -> int:
    """Memory in MiB, rounded up; a number without suffix is MiB.

    Raises:
        ValueError: it is none.
    """
    if is_unknown(text):
        return 0
    value = amount(text)
    has_suffix = re.search(r"[KMGTP]", text, re.IGNORECASE) is not None
    return bounded(ceil(value / 1024**2 if has_suffix else value))


@dataclass
class Tres:
    """Trackable resources of a job."""

    cpus: int = 0
    nodes: int = 0
    memory_mib: int = 0
    gres: dict[str, int] = field(default_factory=dict)

    def set(self, kind: str, name: str, value: int) -> None:
        """Sets one; a kind of GPU (`gpu:a100`) replaces the sum that is there beside it."""
        if kind == "cpu":
            self.cpus = value
        elif kind == "node":
            self.nodes = value
        elif kind == "mem":
            self.memory_mib = value
        elif kind == "gres" and name and value:
            base = name.partition(":")[0]
            if ":" in name:
                self.gres.pop(base, None)
                self.gres[name] = value
            elif not any(other.startswith(f"{base}:") for other in self.gres):
                self.gres[base] = value


def tres_of(text: str) -> Tres:
    """Reads `cpu=4,mem=8G,node=1,gres/gpu:a100=2`.

    Raises:
        ValueError: it is not of this form.
    """
    found = Tres()
    if is_unknown(text):
        return found
    for word in text.split(","):
        key, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"'{word[:40]}' is not RESOURCE=AMOUNT")
        kind, _, name = key.partition("/")
        number = memory_mib(value) if kind == "mem" else bounded(ceil(amount(value)))
        found.set(kind, name, number)
    return found


def state_of(text: str) -> JobEnding:
    """A state; `CANCELLED by 1000` is cancelled."""
    words = text.replace("+", " ").split()
    return _STATES.get(words[0].upper(), JobEnding.UNKNOWN) if words else JobEnding.UNKNOWN


def bounded(value: int) -> int:
    """A number that a record can hold; 0 for Slurm's words for no value.

    Raises:
        ValueError: it is negative or too large.
    """
    if value in (-1, -2, NO_VALUE, NO_VALUE + 1, (1 << 64) - 2, (1 << 64) - 1):
        return 0
    if not 0 <= value <= LARGEST:
        raise ValueError(f"{value} is not a possible number")
    return value


@dataclass(frozen=True)
class Submission:
    """What a line of submission adds; see rule 4."""

    after: tuple[tuple[str, str], ...] = ()
    exclusive: bool = False
    gres_per_node: Mapping[str, int] = field(default_factory=dict)
    gres_in_all: Mapping[str, int] = field(default_factory=dict)
    array_limit: int = 0


_SHORT: Final = {"d": "dependency", "a": "array", "G": "gpus"}
_READ: Final = frozenset(
    ("dependency", "array", "exclusive", "gres", "gpus", "gpus-per-node", "wrap", "export")
)


def submission_of(line: str) -> Submission:
    """Reads a line such as `sbatch -d afterok:4 --exclusive job.sh`; what is strange is skipped."""
    after: list[tuple[str, str]] = []
    per_node: dict[str, int] = {}
    in_all: dict[str, int] = {}
    exclusive, limit = False, 0
    for option, value in _options(line):
        if option == "dependency":
            after += dependencies(value)
        elif option == "exclusive":
            exclusive = value in ("", "exclusive")
        elif option == "array" and "%" in value:
            number = value.rpartition("%")[2]
            limit = int(number) if number.isdigit() and len(number) < 9 else 0
        elif option in ("gres", "gpus-per-node"):
            per_node |= _gres(value if option == "gres" else f"gpu:{value}")
        elif option == "gpus":
            in_all |= _gres(f"gpu:{value}")
    return Submission(tuple(after), exclusive, per_node, in_all, limit)


def dependencies(text: str) -> list[tuple[str, str]]:
    """Reads `afterok:4:5,singleton`; one of several alternatives (`?`) counts like all."""
    found: list[tuple[str, str]] = []
    for part in re.split(r"[,?]", text):
        kind, *jobs = part.split(":")
        if kind == "singleton":
            found.append((kind, ""))
        for job in jobs:
            number = re.match(r"[0-9]+(?:_[0-9]+)?", job)
            if kind.startswith("after") and number:
                found.append((kind, number.group()))
    return found


def _options(line: str) -> Iterator[tuple[str, str]]:
    """The options before the name of the script."""
    try:
        words = shlex.split(line[:_LONGEST_LINE])[1:]
    except ValueError:
        words = line[:_LONGEST_LINE].split()[1:]
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        following = words[position] if position < len(words) else ""
        if word.startswith("--"):
            option, equals, value = word[2:].partition("=")
            if not equals and option in _READ and option != "exclusive":
                value = following
                position += 1
            yield option, value
        elif word.startswith("-") and len(word) > 1:
            option = _SHORT.get(word[1], "")
            if option:
                yield option, word[2:] or following
                position += not word[2:]


def _gres(text: str) -> dict[str, int]:
    """Reads `gpu:a100:2,shard:4`; without an amount 1."""
    found: dict[str, int] = {}
    for part in text.split(","):
        names = part.removeprefix("gres/").replace("=", ":").split("(")[0].split(":")
        count = 1
        if len(names) > 1 and names[-1].isdigit() and len(names[-1]) < 9:
            count = int(names.pop())
        if names[0]:
            found[":".join(names)] = count
    return found


def whole(value: Any) -> int:
    """A number of Slurm's JSON, plain or as `{set, infinite, number}`; 0: not set or infinite.

    Raises:
        ValueError: it is something else.
    """
    if isinstance(value, dict):
        if value.get("infinite") or not value.get("set", True):
            return 0
        value = value.get("number", 0)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"{str(value)[:40]} is not a number")
    return bounded(int(value))
