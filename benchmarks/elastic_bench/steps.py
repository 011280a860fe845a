# SPDX-License-Identifier: Apache-2.0
"""The durations of the steps of changes of width, from the logs.

Sources
    service     a line for each state of a change (`bridge.extensions.elastic.resizing.changes`)
    slurmctld   a line for each resize, with the time for which it held Slurm's locks
    job         a line of `schedbridge run` at the end of each change, with its stages
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

_STATE = re.compile(
    r"^(?P<at>\S+ [\d:]+,\d+) \S+ bridge\.extensions\.elastic\.resizing\.changes: "
    r"job (?P<job>\S+), "
    r"(?P<before>\d+) to (?P<after>\d+) nodes: (?P<state>\w+)(?:: (?P<why>.*))?$"
)
_RESIZE = re.compile(
    r"^\[(?P<at>[^\]]+)\] bridge: resize JobId=(?P<job>\d+) to (?P<width>\d+) nodes "
    r"in (?P<ms>[\d.]+) ms: (?P<said>.*)$"
)
_DONE = re.compile(
    r"change (?P<serial>\d+): (?P<outcome>done|not done|failed)(?: \((?P<why>.*)\))?"
    r" in (?P<total>[\d.]+) s: (?P<each>.*)$"
)
ENDS = ("over", "failed")


@dataclass
class Change:
    """One change in the service's log; times are seconds since 1970.

    Attributes:
        entered_s: when each state was entered; its last key is one of `ENDS`.
        why: of one that failed.
    """

    job: str
    before: int
    after: int
    entered_s: dict[str, float] = field(default_factory=dict)
    why: str = ""

    @property
    def begin_s(self) -> float:
        """The first state."""
        return next(iter(self.entered_s.values()))

    @property
    def end_s(self) -> float:
        """The last state."""
        return list(self.entered_s.values())[-1]

    @property
    def done(self) -> bool:
        """It was carried out: it did not fail, and did not end early with its job."""
        last = "adding" if self.after > self.before else "releasing"
        return list(self.entered_s)[-2:] == [last, "over"]

    def lasted_s(self) -> dict[str, float]:
        """How long each state lasted."""
        names, times = list(self.entered_s), list(self.entered_s.values())
        return {
            name: round(end - begin, 3)
            for name, begin, end in zip(names, times, times[1:], strict=False)
        }


def changes(service_log: str) -> list[Change]:
    """Those that have ended, in the order of their ends."""
    under_way: dict[str, Change] = {}
    found = []
    for line in service_log.splitlines():
        match = _STATE.match(line)
        if match is None:
            continue
        state, job = match["state"], match["job"]
        if state not in ENDS and job not in under_way:
            under_way[job] = Change(job, int(match["before"]), int(match["after"]))
        change = under_way.get(job)
        if change is None:
            continue
        change.entered_s[state] = instant_s(match["at"].replace(",", "."))
        if state in ENDS:
            change.why = match["why"] or ""
            found.append(under_way.pop(job))
    return found


@dataclass(frozen=True)
class Resize:
    """One resize in slurmctld, and for how long it held Slurm's locks."""

    at_s: float
    job: str
    width: int
    lock_ms: float
    said: str


def resizes(controller_log: str) -> list[Resize]:
    """All resizes, including those that Slurm refused."""
    return [
        Resize(
            instant_s(match["at"]), match["job"], int(match["width"]), float(match["ms"]),
            match["said"],
        )
        for match in map(_RESIZE.match, controller_log.splitlines())
        if match
    ]  # fmt: skip


def stages(output: str) -> Iterator[tuple[int, str, dict[str, float]]]:
    """From a job's output: number of the change, outcome, seconds in each stage."""
    for line in output.splitlines():
        match = _DONE.search(line)
        if match:
            each = (part.rsplit(" ", 1) for part in match["each"].split(", ") if part)
            yield int(match["serial"]), match["outcome"], {name: float(s) for name, s in each}


def instant_s(text: str) -> float:
    """Seconds since 1970; the containers keep UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
