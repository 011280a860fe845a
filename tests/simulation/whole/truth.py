# SPDX-License-Identifier: Apache-2.0
"""What was true at each event of a history, as the checker follows it.

Imports nothing of `bridge`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol


class Seen(Protocol):
    """An event of a history."""

    at_ms: int
    kind: str
    what: dict[str, Any]


@dataclass(frozen=True)
class Broken:
    """A rule that does not hold."""

    rule: str
    at_ms: int
    text: str

    def __str__(self) -> str:
        return f"{self.at_ms / 1000:.3f} s: {self.rule}: {self.text}"


@dataclass
class Job:
    id: str
    user: str
    account: str
    ask: dict[str, Any]
    version: int
    begin_s: int
    held: bool
    array_tasks: int
    array_most: int
    state: str = "pending"
    nodes: dict[str, list[int]] = field(default_factory=dict)
    partition: str = ""
    start_s: int = 0
    limit_s: int = 0
    told: bool = False
    touched: int = 0
    by: str = ""

    @property
    def cpus(self) -> int:
        return sum(cpus for cpus, _ in self.nodes.values())


class Truth:
    """What was so at an event: a fold of the history."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self.partitions: dict[str, dict[str, Any]] = {}
        self.licences: dict[str, int] = {}
        self.reservations: dict[str, dict[str, Any]] = {}
        self.jobs: dict[str, Job] = {}
        self.rules: dict[str, Any] = {}
        self.policy: Any = ""
        self.memory_counts = True
        self.now_s = 0

    def see(self, index: int, event: Seen) -> None:
        what = event.what
        self.now_s = what.get("now_s", self.now_s)
        handler = getattr(self, f"_{event.kind}", None)
        if handler is not None:
            handler(index, what)

    def _begin(self, _: int, what: dict[str, Any]) -> None:
        self.rules, self.policy = what["rules"], what["policy"]
        self.memory_counts = what["memory_counts"]

    def _rules(self, _: int, what: dict[str, Any]) -> None:
        self.rules = what["rules"]

    def _policy(self, _: int, what: dict[str, Any]) -> None:
        self.policy = what["name"]

    def _node(self, _: int, what: dict[str, Any]) -> None:
        self.nodes[what["name"]] = what

    def _partition(self, _: int, what: dict[str, Any]) -> None:
        self.partitions[what["name"]] = what

    def _licences(self, _: int, what: dict[str, Any]) -> None:
        self.licences = what["total"]

    def _reserve(self, _: int, what: dict[str, Any]) -> None:
        self.reservations[what["name"]] = what

    def _unreserve(self, _: int, what: dict[str, Any]) -> None:
        self.reservations.pop(what["name"], None)

    def _submit(self, index: int, what: dict[str, Any]) -> None:
        self.jobs[what["job"]] = Job(
            what["job"], what["user"], what["account"], what["ask"], what["version"],
            what["begin_s"], what["held"], what["array_tasks"], what["array_most"], touched=index,
        )  # fmt: skip

    def _alter(self, index: int, what: dict[str, Any]) -> None:
        job = self.jobs[what["job"]]
        job.ask, job.version, job.touched = what["ask"], what["version"], index
        job.begin_s, job.held = what["begin_s"], what["held"]

    def _left(self, _: int, what: dict[str, Any]) -> None:
        self.jobs.pop(what["job"], None)

    def _start(self, index: int, what: dict[str, Any]) -> None:
        job = self.jobs.get(what["job"])
        if job is None:
            head = self.jobs[head_of(what["job"])]
            job = Job(what["job"], head.user, head.account, head.ask, head.version, head.begin_s,
                      False, 0, 0)  # fmt: skip
            self.jobs[job.id] = job
            head.array_tasks -= 1
            head.touched = index
            if head.array_tasks <= 0:
                del self.jobs[head.id]
        job.state, job.nodes, job.partition = "running", what["nodes"], what["partition"]
        job.start_s, job.limit_s, job.touched = what["now_s"], what["limit_s"], index
        job.by = what["by"]

    def _end(self, _: int, what: dict[str, Any]) -> None:
        self.jobs[what["job"]].state = "completing"

    def _clean(self, _: int, what: dict[str, Any]) -> None:
        self.jobs.pop(what["job"], None)

    def _requeue(self, index: int, what: dict[str, Any]) -> None:
        job = self.jobs[what["job"]]
        job.state, job.nodes, job.touched, job.told = "pending", {}, index, False

    def _told(self, _: int, what: dict[str, Any]) -> None:
        if what["job"] in self.jobs:
            self.jobs[what["job"]].told = True

    def whole(self, job: Job) -> bool:
        """Whether it holds whole nodes."""
        room = self.partitions.get(job.partition)
        return bool(job.ask["exclusive"] or (room is not None and room["exclusive"]))

    def running(self) -> Iterator[Job]:
        return (job for job in self.jobs.values() if job.state == "running")


class Rule:
    """One rule; sees each event before and after it counts."""

    name = ""

    def before(self, index: int, event: Seen, truth: Truth) -> Iterable[str]:
        return ()

    def after(self, index: int, event: Seen, truth: Truth) -> Iterable[str]:
        return ()


def head_of(job_id: str) -> str:
    return job_id.partition("_")[0]


def least_cpus(ask: dict[str, Any]) -> int:
    """CPUs that a job uses at least."""
    if ask["tasks"]:
        return int(ask["tasks"] * ask["cpus"])
    return int(ask["nodes"] * ask["cpus"])


def holds_chunks(ask: dict[str, Any], room_of: list[int]) -> bool:
    sizes: list[int] = []
    for part in ask["chunks"].split("+"):
        count, _, cpus = part.partition(":ncpus=")
        sizes += [int(cpus)] * int(count)
    sizes.sort(reverse=True)
    if ask["place"] == "pack":
        return any(cpus >= sum(sizes) for cpus in room_of)
    if ask["place"] == "scatter":
        return len(sizes) <= len(room_of) and all(
            cpus >= size for cpus, size in zip(room_of, sizes, strict=False)
        )
    left = list(room_of)
    for size in sizes:
        at = next((at for at, cpus in enumerate(left) if cpus >= size), None)
        if at is None:
            return False
        left[at] -= size
    return True
