# SPDX-License-Identifier: Apache-2.0
"""Compares the two outcomes of a case.

Compared are whether the submission is accepted and what it prints, whether and when each job
starts, its number of nodes and CPUs, its memory and devices, its nodes where only one choice is
right, its pending reason and its exit state. Running and pending tasks of an array are
interchangeable. Times are compared coarsely, and a case that differs is run again, so that a slow
machine is not reported as a defect.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

LATE_S = 3.0
"""How much later than in stock Slurm a job may start."""


class Kind(StrEnum):
    """What differs."""

    PREPARATION = "preparation"
    SUBMISSION = "submission"
    JOBS = "jobs"
    WAITS = "waits"
    STARTS = "starts"
    LATE = "late"
    STATE = "state"
    NODES = "nodes"
    CPUS = "cpus"
    TRES = "tres"
    PLACEMENT = "placement"
    REASON = "reason"


# For these reasons of Slurm the bridge names the resource, node or job.
_FREE = {"None", "Resources", "Priority"}
# Slurm's longer reasons list the nodes that are down; the bridge says how many are up. Cases that
# name nodes give the text to expect in `says`.
_WORD = re.compile(r"[A-Za-z]+|ReqNodeNotAvail, Reserved for maintenance")
_WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD"}
_STARTED = {"RUNNING", "COMPLETED", "COMPLETING"}
# Progress messages of srun and salloc, which depend on timing.
_PASSING = re.compile(
    r"queued and waiting|has been allocated|Pending job allocation|Granted job|Relinquishing"
    r"|has been revoked"
    r"|are ready for job|Nodes? \S+ (is|are) ready|Force Terminated|Job step aborted|Waiting up to"
)


@dataclass(frozen=True)
class Job:
    """The outcome of one job, in Slurm's terms."""

    state: str
    reason: str = "None"
    nodes: int = 0
    cpus: int = 0
    placement: str = ""
    tres: str = ""
    exit_code: str = ""
    started_s: float | None = None
    array: int | None = None
    """Tasks of one array have the same number."""

    @property
    def kind(self) -> str:
        """Its state, or `started` or `waiting`."""
        if self.state in _WAITING:
            return "waiting"
        return "started" if self.state in _STARTED else self.state

    def __str__(self) -> str:
        if self.kind == "waiting":
            return f"waits: {self.reason}"
        size = f"{self.nodes} x node, {self.cpus} CPU" if self.nodes else ""
        where = f" on {self.placement}" if self.placement else ""
        code = f" {self.exit_code}" if self.exit_code not in ("", "0:0") else ""
        return f"{self.state.lower()}{code}{', ' if size else ''}{size}{where}"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case on one cluster."""

    said: tuple[tuple[int | None, str], ...] = ()
    jobs: tuple[Job, ...] = ()
    failed: str = ""
    extra: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.failed:
            return f"preparation failed: {self.failed}"
        words = [f"refused ({words})" for code, words in self.said if code]
        shown: list[str] = []
        for text in map(str, self.jobs):
            if shown and shown[-1].split("x ", 1)[-1] == text and shown[-1][:1].isdigit():
                count = int(shown[-1].split(" ", 1)[0]) + 1
                shown[-1] = f"{count} x {text}"
            elif shown and shown[-1] == text:
                shown[-1] = f"2 x {text}"
            else:
                shown.append(text)
        return "; ".join(words + shown) or "nothing"


@dataclass(frozen=True)
class Finding:
    """One difference."""

    kind: Kind
    stock: str
    bridge: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.stock} -> {self.bridge}"


def words_of(said: str) -> str:
    """Returns the output of a submission without job ids, times and progress messages."""
    lines = [line.strip() for line in said.splitlines() if not _PASSING.search(line)]
    lines = ["N" if line.isdigit() else line for line in lines]  # a job id alone: --parsable
    text = " / ".join(sorted(filter(None, lines)))  # tasks print in any order
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "TIME", text)
    return re.sub(r"(?i)\b(job|JobId=|StepId=|allocation|job_id)(\s?)\d+(\.\d+)?", r"\1\2N", text)


def must_say(reason: str) -> bool:
    """Tells whether this is a specific reason, which the bridge must give as well."""
    return reason not in _FREE and _WORD.fullmatch(reason) is not None


def compare(
    stock: Outcome,
    bridge: Outcome,
    *,
    placement: bool = False,
    contiguous: bool = False,
    says: str = "",
    ignore: tuple[str, ...] = (),
) -> list[Finding]:
    """Returns all differences. The preparation of the stock cluster must have succeeded."""
    found = [
        finding
        for finding in _findings(stock, bridge, placement=placement)
        if finding.kind not in ignore
    ]
    if contiguous:
        found += [
            Finding(Kind.PLACEMENT, "contiguous nodes", job.placement)
            for job in bridge.jobs
            if "," in job.placement
        ]
    reasons = [job.reason for job in bridge.jobs if job.kind == "waiting"]
    found += [
        Finding(Kind.REASON, f"must contain '{says}'", reason)
        for reason in reasons
        if not re.search(says, reason)
    ]
    return found


def _findings(stock: Outcome, bridge: Outcome, *, placement: bool) -> Iterator[Finding]:
    if bridge.failed:
        yield Finding(Kind.PREPARATION, "done", bridge.failed)
        return
    for ours, theirs in zip(bridge.said, stock.said, strict=True):
        if ours != theirs:
            yield Finding(Kind.SUBMISSION, _told(theirs), _told(ours))
    if len(stock.jobs) != len(bridge.jobs):
        yield Finding(Kind.JOBS, str(len(stock.jobs)), str(len(bridge.jobs)))
        return
    for theirs_job, ours_job in _pairs(stock.jobs, bridge.jobs):
        yield from _of_job(theirs_job, ours_job, placement=placement)


def _pairs(stock: tuple[Job, ...], bridge: tuple[Job, ...]) -> list[tuple[Job, Job]]:
    """Pairs jobs by order of submission, and tasks of an array by outcome where possible."""
    pairs = list(zip(stock, bridge, strict=True))
    for array in {job.array for job in stock} - {None}:
        at = [row for row, (theirs, _) in enumerate(pairs) if theirs.array == array]
        theirs = sorted((pairs[row][0] for row in at), key=_outcome_key)
        ours = sorted((pairs[row][1] for row in at), key=_outcome_key)
        alike = [_outcome_key(job)[:4] for job in theirs] == [_outcome_key(job)[:4] for job in ours]
        if alike and all(job.state == "RUNNING" or job.kind == "waiting" for job in theirs + ours):
            for row, pair in zip(at, zip(theirs, ours, strict=True), strict=True):
                pairs[row] = pair
    return pairs


def _outcome_key(job: Job) -> tuple[str, int, int, str, str, float]:
    return job.kind, job.nodes, job.cpus, job.tres, job.placement, job.started_s or 0.0


def _of_job(stock: Job, bridge: Job, *, placement: bool) -> Iterator[Finding]:
    if stock.kind != bridge.kind:
        kind = (
            Kind.WAITS if bridge.kind == "waiting"
            else Kind.STARTS if stock.kind == "waiting" and bridge.kind == "started"
            else Kind.STATE
        )  # fmt: skip
        yield Finding(kind, str(stock), str(bridge))
        return
    if stock.kind == "waiting":
        if must_say(stock.reason) and bridge.reason != stock.reason:
            yield Finding(Kind.REASON, stock.reason, bridge.reason)
        return
    if (stock.state, stock.exit_code) != (bridge.state, bridge.exit_code) and (
        stock.kind != "started" or "RUNNING" not in (stock.state, bridge.state)
    ):
        yield Finding(Kind.STATE, f"{stock.state} {stock.exit_code}",
                      f"{bridge.state} {bridge.exit_code}")  # fmt: skip
    if stock.nodes != bridge.nodes:
        yield Finding(Kind.NODES, str(stock), str(bridge))
    elif stock.cpus != bridge.cpus:
        yield Finding(Kind.CPUS, str(stock), str(bridge))
    elif stock.tres != bridge.tres:
        yield Finding(Kind.TRES, stock.tres, bridge.tres)
    if placement and stock.placement != bridge.placement:
        yield Finding(Kind.PLACEMENT, stock.placement, bridge.placement)
    if (
        stock.started_s is not None and bridge.started_s is not None
        and bridge.started_s - stock.started_s > LATE_S
    ):  # fmt: skip
        yield Finding(
            Kind.LATE, f"after {stock.started_s:.1f} s", f"after {bridge.started_s:.1f} s"
        )


def _told(said: tuple[int | None, str]) -> str:
    code, words = said
    return f"{'runs on' if code is None else f'exit code {code}'}: {words}"


def verdict(
    findings: list[Finding], *, by_design: str = "", unsupported: str = "", broken: str = ""
) -> str:
    """Returns the verdict on a case: same, by design, unsupported, worse or broken."""
    if broken:
        return "broken"
    if not findings:
        return "same"
    if unsupported:
        return "unsupported"
    return "by design" if by_design else "worse"
