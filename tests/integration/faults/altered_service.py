# SPDX-License-Identifier: Apache-2.0
"""The real service with altered replies: delayed, or with impossible decisions among its own.

Usage: altered_service.py slow SECONDS | invalid RESULTS_FILE | flood RESULTS_FILE | amnesia FIELD
               -- ARGUMENTS of schedbridge

    slow     delays every reply
    invalid  mixes impossible decisions into every reply
    flood    the same, ten megabytes of them
    amnesia  FIELD need_full: always asks for a full report; service_epoch: always names another
             one; generation: always names another one

Rules
    1. All decisions of the real service are still sent, so that a controller which refuses the
       impossible ones goes on as usual. Decisions are renumbered, as numbers have to grow from
       reply to reply; the real service gets results under its own numbers.
    2. The result of each impossible decision is one JSON line in RESULTS_FILE: kind, batch, job,
       outcome, code, text. Kinds that begin with "may-" can happen to be legal; others never are.
    3. At most two batches of impossible decisions a second. A controller that answers each result
       with a call would otherwise be busy with these only.
"""

import itertools
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bridge.cli.main import main
from bridge.model.hostlist import expand
from bridge.rpc.controller.cycles import Cycles
from bridge.rpc.pb import scheduler_pb2 as pb

FIRST_ID = 1 << 62
EVERY_S = 0.5
FLOOD_BYTES = 10 << 20
YEAR_13429_S = 361_600_000_000
OWN_START = "may-be the real start"
OUTCOMES = {value.number: value.name for value in pb.Outcome.DESCRIPTOR.values}

Unaltered = Callable[..., pb.CycleReply]
Invalid = tuple[str, pb.Decision]


class ReportedState:
    """What the controller has reported, as far as plausible decisions need it."""

    def __init__(self) -> None:
        self.pending: dict[str, pb.Job] = {}
        self.running: dict[str, pb.Job] = {}
        self.nodes: dict[str, pb.Node] = {}
        self.partition = ""

    def take(self, request: pb.CycleRequest) -> None:
        if request.base_generation == 0:
            self.__init__()  # type: ignore[misc]
        for gone in request.removed_jobs:
            self.pending.pop(gone, None)
            self.running.pop(gone, None)
        for job in request.jobs:
            self.pending.pop(job.id, None)
            self.running.pop(job.id, None)
            held = self.pending if job.state == pb.JOB_STATE_PENDING else self.running
            held[job.id] = job
        for name in request.removed_nodes:
            self.nodes.pop(name, None)
        for node in request.nodes:
            self.nodes[node.name] = node
        for partition in request.partitions.items[:1]:
            self.partition = partition.name

    def ready(self) -> list[pb.Job]:
        return [job for job in self.pending.values() if job.hold == pb.HOLD_NONE]

    def held(self) -> list[pb.Job]:
        """Jobs that nothing but their users will release."""
        return [
            job for job in self.pending.values()
            if job.hold in (pb.HOLD_HELD, pb.HOLD_BEGIN_TIME)
        ]  # fmt: skip

    def waiting(self) -> list[pb.Job]:
        """Jobs that limits or other jobs hold back at this moment."""
        return [
            job for job in self.pending.values()
            if job.hold not in (pb.HOLD_NONE, pb.HOLD_HELD, pb.HOLD_BEGIN_TIME)
        ]  # fmt: skip

    def idle(self) -> list[str]:
        """Nodes on which nothing runs."""
        taken: set[str] = set()
        for job in self.running.values():
            for use in job.allocation.uses:
                taken.update(expand(use.nodes))
        return [node.name for node in self.nodes.values() if node.usable and node.name not in taken]


def start(job: pb.Job, nodes: str, partition: str = "", version: int | None = None) -> pb.Decision:
    names = job.request.partitions
    return pb.Decision(
        job_id=job.id,
        job_version=job.version if version is None else version,
        start=pb.Start(nodes=nodes, partition=partition or (names[0] if names else "")),
    )


def announce(job: pb.Job, start_s: int, nodes: str = "") -> pb.Decision:
    return pb.Decision(
        job_id=job.id,
        job_version=job.version,
        planned_start=pb.PlannedStart(
            start_s=start_s, nodes=nodes, partition=job.request.partitions[0]
        ),
    )


def invalid_starts(state: ReportedState, rng: random.Random) -> Iterator[Invalid]:
    """Starts that must not happen."""
    everyone, idle = sorted(state.nodes), state.idle()
    free = rng.choice(idle or everyone)
    unknown = pb.Job(id="999999999", version=1)
    yield "unknown job", start(unknown, free, state.partition)
    yield "job id is not a number", start(pb.Job(id="../../etc", version=1), free, state.partition)
    if running := list(state.running.values()):
        job = rng.choice(running)
        yield "job already running", start(job, free, job.allocation.partition)
    for job in rng.sample(state.held(), min(2, len(state.held()))):
        yield "job held back", start(job, free)
    if waiting := state.waiting():
        yield "may-be held by others", start(rng.choice(waiting), free)
    ready = state.ready()
    if not ready:
        return
    job = rng.choice(ready)
    yield "unknown node", start(job, "nowhere[1-2]")
    yield "no nodes", start(job, "")
    yield "broken hostlist", start(job, f"{free},[1-")
    yield "endless hostlist", start(job, "n[1-4000000000]")
    yield "unknown partition", start(job, free, "nowhere")
    yield "wrong version", start(job, free, version=job.version ^ 1)
    yield "no action", pb.Decision(job_id=job.id, job_version=job.version)
    for job in ready:
        if job.request.min_nodes > 1:
            yield "too few nodes", start(job, free)
            break
    for job in ready:
        if job.request.max_nodes == 1 and len(idle) > 1:
            yield "too many nodes", start(job, ",".join(idle[:2]))
            break
    exclusive = [job for job in ready if job.request.exclusive and job.request.min_nodes <= 1]
    taken = [
        use.nodes
        for job in state.running.values()
        if job.state == pb.JOB_STATE_RUNNING and job.allocation.exclusive
        for use in job.allocation.uses
    ]
    if exclusive and taken:
        # It may have become free by now; whether it was is for Slurm's records to say.
        yield "may-be-busy node", start(rng.choice(exclusive), rng.choice(taken))
    if len(exclusive) > 1 and idle:
        yield "may-be first of two on one node", start(exclusive[0], idle[0])
        yield "may-be second of two on one node", start(exclusive[1], idle[0])


def invalid_announcements(
    state: ReportedState, now_s: int, rng: random.Random
) -> Iterator[Invalid]:
    """Announcements and changes that must not show."""
    ready = state.ready()
    if ready:
        job = rng.choice(ready)
        yield "start in the past", announce(job, 1)
        yield "start in the past", announce(job, now_s - 86_400)
        yield "start before time", announce(job, -1)
        yield "start in the year 13429", announce(job, YEAR_13429_S)
        yield "planned on unknown nodes", announce(job, now_s + 600, "nowhere[1-4]")
        text = "\x1b[31mred\n\t\x00\x7f" + "x" * 100_000
        yield (
            "may-be a reason of control characters",
            pb.Decision(
                job_id=job.id, job_version=job.version,
                pending=pb.Pending(code=pb.REASON_OTHER, text=text),
            ),
        )  # fmt: skip
    if running := list(state.running.values()):
        job = rng.choice(running)
        yield (
            "resize that was not agreed on",
            pb.Decision(
                job_id=job.id, job_version=job.version, resize=pb.Resize(nodes=min(state.nodes))
            ),
        )
        yield (
            "quota that was not agreed on",
            pb.Decision(
                job_id=job.id, job_version=job.version, quota=pb.Quota(milli_cpus_per_node=1)
            ),
        )
        yield (
            "planned start of a running job",
            pb.Decision(
                job_id=job.id, job_version=job.version,
                planned_start=pb.PlannedStart(start_s=now_s + 600),
            ),
        )  # fmt: skip


def invalid_reservations(state: ReportedState, now_s: int, rng: random.Random) -> Iterator[Invalid]:
    """Reservations that must not be made, nor removed."""
    node = rng.choice(sorted(state.nodes))

    def reserve(**wrong: object) -> pb.Decision:
        sound = {
            "name": "invalid", "start_s": now_s + 3600, "end_s": now_s + 7200, "nodes": node,
            "users": "root",
        }  # fmt: skip
        return pb.Decision(reserve=pb.Reserve(**(sound | wrong)))

    yield "reservation without a name", reserve(name="")
    yield "reservation of an odd name", reserve(name="a b\n\x1b[31m")
    yield "reservation of an endless name", reserve(name="x" * 100_000)
    yield "reservation of unknown nodes", reserve(nodes="nowhere[1-4]")
    yield "reservation of no nodes", reserve(nodes="")
    yield "reservation for nobody", reserve(users="")
    yield "reservation for odd users", reserve(users="root;id")
    yield "reservation for a stranger", reserve(users="nobody-knows-me")
    yield "reservation in an unknown partition", reserve(partition="nowhere")
    yield "reservation that ends before it begins", reserve(end_s=now_s)
    yield "reservation in the past", reserve(start_s=1, end_s=2)
    yield "reservation before time", reserve(start_s=-5)
    yield "unknown reservation removed", pb.Decision(unreserve=pb.Unreserve(name="none"))
    yield "nameless reservation removed", pb.Decision(unreserve=pb.Unreserve())


def flood_of_announcements(partition: str) -> Iterator[Invalid]:
    """Ten megabytes of announcements for jobs that are not there."""
    nodes = ",".join(f"nowhere{n}" for n in range(100))
    for number in itertools.count(900_000_000):
        job = pb.Job(id=str(number), version=1, request=pb.Request(partitions=[partition]))
        decision = announce(job, 2_000_000_000, nodes)
        yield "one of a flood", decision
        if (number - 900_000_000) * decision.ByteSize() > FLOOD_BYTES:
            return


class InvalidDecisions:
    """Mixes impossible decisions into the replies of the real service."""

    def __init__(self, results: Path, *, flood: bool) -> None:
        self._results = results
        self._flood = flood
        self._state = ReportedState()
        self._told: dict[int, tuple[str, int, str]] = {}
        self._own_id: dict[int, int] = {}
        self._ids = itertools.count(FIRST_ID)
        self._batch = 0
        self._next = 0.0
        self._rng = random.Random(1)

    def run(self, unaltered: Unaltered, request: pb.CycleRequest) -> pb.CycleReply:
        self._note(request)
        self._state.take(request)
        reply = unaltered()
        for decision in reply.decisions:
            number = next(self._ids)
            self._own_id[number] = decision.id
            decision.id = number
        if reply.need_full or time.monotonic() < self._next or not self._state.nodes:
            return reply
        self._next = time.monotonic() + EVERY_S * (4 if self._flood else 1)
        self._batch += 1
        own = list(reply.decisions)
        invalid: list[Invalid] = []
        if self._flood:
            invalid += flood_of_announcements(self._state.partition)
        else:
            invalid += invalid_starts(self._state, self._rng)
            invalid += invalid_announcements(self._state, request.now_s, self._rng)
            invalid += invalid_reservations(self._state, request.now_s, self._rng)
        del reply.decisions[:]
        before = [(kind, decision) for kind, decision in invalid if self._rng.random() < 0.5]
        after = (
            [decision for decision in invalid if decision not in before] if not self._flood else []
        )
        self._tell(reply, before if not self._flood else invalid)
        reply.decisions.extend(own)
        self._tell(reply, after)
        # Of an array several tasks may start, so only other jobs cannot start again.
        single = [
            decision for decision in own
            if decision.HasField("start") and not self._is_array(decision.job_id)
        ]  # fmt: skip
        for decision in single:
            self._told[decision.id] = (OWN_START, self._batch, decision.job_id)
        self._tell(reply, [("may-be started again", decision) for decision in single])
        return reply

    def _is_array(self, job_id: str) -> bool:
        job = self._state.pending.get(job_id)
        return job is None or job.array_tasks > 0

    def _tell(self, reply: pb.CycleReply, invalid: list[Invalid]) -> None:
        for kind, decision in invalid:
            number = next(self._ids)
            self._told[number] = (kind, self._batch, decision.job_id)
            reply.decisions.add().CopyFrom(decision)
            reply.decisions[-1].id = number

    def _note(self, request: pb.CycleRequest) -> None:
        with self._results.open("a", encoding="utf-8") as file:
            for result in request.fates:
                told = self._told.pop(result.decision_id, None)
                result.decision_id = self._own_id.pop(result.decision_id, result.decision_id)
                if told is None:
                    continue
                kind, batch, job = told
                entry = {
                    "kind": kind, "batch": batch, "job": job, "code": result.code,
                    "outcome": OUTCOMES[result.outcome], "text": result.text,
                }  # fmt: skip
                file.write(json.dumps(entry) + "\n")


def alter(what: str, parameter: str) -> None:
    """Puts something between the cycles and the wire."""
    unaltered = Cycles.run
    if what == "slow":
        delay_s = float(parameter)

        def slow(self: Cycles, *arguments: object) -> pb.CycleReply:
            reply = unaltered(self, *arguments)  # type: ignore[arg-type]
            time.sleep(delay_s)
            return reply

        Cycles.run = slow  # type: ignore[method-assign,assignment]
        return
    if what == "amnesia":

        def forgetful(self: Cycles, *arguments: object) -> pb.CycleReply:
            reply = unaltered(self, *arguments)  # type: ignore[arg-type]
            setattr(reply, parameter, True if parameter == "need_full" else 7)
            return reply

        Cycles.run = forgetful  # type: ignore[method-assign,assignment]
        return
    mixer = InvalidDecisions(Path(parameter), flood=what == "flood")

    def altered(self: Cycles, request: pb.CycleRequest, *rest: object) -> pb.CycleReply:
        return mixer.run(lambda: unaltered(self, request, *rest), request)  # type: ignore[arg-type]

    Cycles.run = altered  # type: ignore[method-assign,assignment]


if __name__ == "__main__":
    mode, value, dashes, *words = sys.argv[1:]
    assert mode in ("slow", "invalid", "flood", "amnesia")
    assert dashes == "--"
    alter(mode, value)
    main(words)
