# SPDX-License-Identifier: Apache-2.0
"""Nothing is done, decided or counted twice (a rule of `checker.py`)."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tests.simulation.whole.truth import Job, Rule, Seen, Truth, head_of

OPEN_S = 10
"""A start of unknown result is not decided again for the same version for this long (0001-wire).

It counts as closed by anything that may close it: a report that was sent, though it may not have
arrived, or a clock of the controller that was set by this much in either direction.
"""


class Twice(Rule):
    name = "twice"

    def __init__(self) -> None:
        self.given: set[tuple[int, int]] = set()
        self.applied: set[tuple[int, int]] = set()
        self.outcome: dict[tuple[int, int], str] = {}
        self.counted: dict[int, set[int]] = {}
        self.reports: dict[int, dict[str, Any]] = {}
        self.startable: dict[int, dict[str, int]] = {}
        self.epoch: dict[int, int] = {}
        self.open: dict[tuple[str, int], tuple[int, int]] = {}  # number and second, by job, version

    def before(self, index: int, event: Seen, truth: Truth) -> Iterable[str]:
        what = event.what
        match event.kind:
            case "service_up":
                self.epoch[what["life"]] = what["epoch"]
                self.reports.clear()  # outcomes of another life name other decisions
                self.open.clear()
            case "greeted":
                self.open.clear()
            case "report":
                self.reports[what["call"]] = what
                self._close(what)
                self.startable[what["call"]] = {
                    job.id: self._tasks(job, truth)
                    for job in truth.jobs.values()
                    if job.state == "pending"
                }
            case "reply":
                yield from self._reply(what, truth)
            case "start":
                job = truth.jobs.get(what["job"])
                if job is not None and job.state != "pending":
                    yield f"job {job.id} starts while it is {job.state}"
            case "outcome":
                key = (what["epoch"], what["decision"])
                if what["outcome"] == "applied":
                    if key in self.applied:
                        yield f"decision {what['decision']} is applied twice"
                    self.applied.add(key)
                self.outcome[key] = what["outcome"]
            case "counted":
                yield from self._count(what)

    def _tasks(self, job: Job, truth: Truth) -> int:
        if not job.array_tasks:
            return 1
        if not job.array_most:
            return job.array_tasks
        run = sum(head_of(other.id) == job.id for other in truth.running())
        return max(min(job.array_tasks, job.array_most - run), 0)

    def _close(self, report: dict[str, Any]) -> None:
        """A fate that is told closes its start, and time; a full report closes all."""
        if report["full"] or report["untrue"]:
            self.open.clear()
        told = set(report["outcomes"])
        self.open = {
            key: (number, since_s)
            for key, (number, since_s) in self.open.items()
            if number not in told and abs(report["now_s"] - since_s) < OPEN_S
        }

    def _reply(self, what: dict[str, Any], truth: Truth) -> Iterable[str]:
        for number in what["ids"]:
            if (what["epoch"], number) in self.given:
                yield f"decision {number} is given twice"
            self.given.add((what["epoch"], number))
        report = self.reports.get(what["call"])
        if report is None or report["untrue"]:
            return
        yield from self._again(what["starts"], report, truth)
        for job_id, count in Counter(start[1] for start in what["starts"]).items():
            may = self.startable[what["call"]].get(job_id, 0)
            if count > may and may:
                yield f"{count} starts of job {job_id} in one reply, {may} may start"

    def _again(
        self, starts: list[list[Any]], report: dict[str, Any], truth: Truth
    ) -> Iterable[str]:
        self._close(report)  # it may have been late
        for number, job_id, version, *_ in starts:
            job = truth.jobs.get(job_id)
            if job is None or job.array_tasks:  # its tasks start one by one
                continue
            before, _ = self.open.get((job_id, version), (0, 0))
            if before:
                yield (
                    f"the start of job {job_id} is decided again ({number}) though nobody said "
                    f"what became of decision {before}"
                )
            self.open[job_id, version] = number, report["now_s"]

    def _count(self, what: dict[str, Any]) -> Iterable[str]:
        report = self.reports.get(what["call"])
        if report is None:
            return
        before = self.counted.setdefault(what["life"], set())
        new = [number for number in report["outcomes"] if number not in before]
        before.update(new)
        epoch = self.epoch[what["life"]]
        wanted = Counter(self.outcome.get((epoch, number), "unknown") for number in new)
        counted: Counter[str] = Counter()
        for key, times in what["counted"].items():
            counted[key.split()[0]] += times
        if counted - wanted:
            yield (
                f"call {what['call']}: outcomes {dict(counted)} are counted, new are "
                f"{dict(wanted)} of {len(report['outcomes'])}"
            )
