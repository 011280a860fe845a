# SPDX-License-Identifier: Apache-2.0
"""The real service, except for what it says: too late, or with impossible decisions among its own.

Usage: bent.py slow SECONDS | lies FATES_FILE | flood FATES_FILE | amnesia FIELD
               -- ARGUMENTS of schedbridge

    slow     says everything, but too late
    lies     mixes impossible decisions into its own
    flood    the same by the ten megabytes
    amnesia  FIELD need_full: always asks for everything; service_epoch: is always another one;
             generation: always holds another one

Rules
    1. Everything the real service decides is still said, so that a controller which refuses the
       impossible goes on as if nothing were. Numbers of decisions are given anew, as they have to
       grow from reply to reply; the real service hears of fates by its own numbers.
    2. What became of each lie is one JSON line in FATES_FILE: kind, batch, job, outcome, code,
       text. Kinds that begin with "may-" can be legal by chance; all others never are.
    3. At most two batches of lies a second: a controller that answers each fate with a call would
       otherwise be kept busy by us, not by its users.
"""

import itertools
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ClusterShell.NodeSet import NodeSet

from bridge.cli.main import main
from bridge.rpc.controller.cycles import Cycles
from bridge.rpc.pb import scheduler_pb2 as pb

FIRST_ID = 1 << 62
EVERY_S = 0.5
FLOOD_BYTES = 10 << 20
YEAR_13429_S = 361_600_000_000
TRUE_START = "may-be the true start"
OUTCOMES = {value.number: value.name for value in pb.Outcome.DESCRIPTOR.values}

Honest = Callable[..., pb.CycleReply]
Lie = tuple[str, pb.Decision]


class World:
    """What the controller has reported, as far as a good lie needs it."""

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
        taken = NodeSet()
        for job in self.running.values():
            for use in job.allocation.uses:
                taken.update(use.nodes)
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


def lies_of_starts(world: World, rng: random.Random) -> Iterator[Lie]:
    """Starts that must not happen."""
    everyone, idle = sorted(world.nodes), world.idle()
    free = rng.choice(idle or everyone)
    unknown = pb.Job(id="999999999", version=1)
    yield "unknown job", start(unknown, free, world.partition)
    yield "job id is no number", start(pb.Job(id="../../etc", version=1), free, world.partition)
    if running := list(world.running.values()):
        job = rng.choice(running)
        yield "job already running", start(job, free, job.allocation.partition)
    for job in rng.sample(world.held(), min(2, len(world.held()))):
        yield "job held back", start(job, free)
    if waiting := world.waiting():
        yield "may-be held by others", start(rng.choice(waiting), free)
    ready = world.ready()
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
        for job in world.running.values()
        if job.state == pb.JOB_STATE_RUNNING and job.allocation.exclusive
        for use in job.allocation.uses
    ]
    if exclusive and taken:
        # It may have become free by now; whether it was is for Slurm's records to say.
        yield "may-be-busy node", start(rng.choice(exclusive), rng.choice(taken))
    if len(exclusive) > 1 and idle:
        yield "may-be first of two on one node", start(exclusive[0], idle[0])
        yield "may-be second of two on one node", start(exclusive[1], idle[0])


def lies_of_words(world: World, now_s: int, rng: random.Random) -> Iterator[Lie]:
    """Announcements and changes that must not show."""
    ready = world.ready()
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
    if running := list(world.running.values()):
        job = rng.choice(running)
        yield (
            "resize that was not agreed on",
            pb.Decision(
                job_id=job.id, job_version=job.version, resize=pb.Resize(nodes=min(world.nodes))
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


def lies_of_reservations(world: World, now_s: int, rng: random.Random) -> Iterator[Lie]:
    """Reservations that must not be made, nor removed."""
    node = rng.choice(sorted(world.nodes))

    def reserve(**wrong: object) -> pb.Decision:
        sound = {
            "name": "lie", "start_s": now_s + 3600, "end_s": now_s + 7200, "nodes": node,
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


def lies_of_size(partition: str) -> Iterator[Lie]:
    """Ten megabytes of announcements for jobs that are not there."""
    nodes = ",".join(f"nowhere{n}" for n in range(100))
    for number in itertools.count(900_000_000):
        job = pb.Job(id=str(number), version=1, request=pb.Request(partitions=[partition]))
        decision = announce(job, 2_000_000_000, nodes)
        yield "one of a flood", decision
        if (number - 900_000_000) * decision.ByteSize() > FLOOD_BYTES:
            return


class Liar:
    """Mixes lies into the replies of the real service."""

    def __init__(self, fates: Path, *, flood: bool) -> None:
        self._fates = fates
        self._flood = flood
        self._world = World()
        self._told: dict[int, tuple[str, int, str]] = {}
        self._true: dict[int, int] = {}
        self._ids = itertools.count(FIRST_ID)
        self._batch = 0
        self._next = 0.0
        self._rng = random.Random(1)

    def run(self, honest: Honest, request: pb.CycleRequest) -> pb.CycleReply:
        self._note(request)
        self._world.take(request)
        reply = honest()
        for truth in reply.decisions:
            number = next(self._ids)
            self._true[number] = truth.id
            truth.id = number
        if reply.need_full or time.monotonic() < self._next or not self._world.nodes:
            return reply
        self._next = time.monotonic() + EVERY_S * (4 if self._flood else 1)
        self._batch += 1
        truths = list(reply.decisions)
        lies: list[Lie] = []
        if self._flood:
            lies += lies_of_size(self._world.partition)
        else:
            lies += lies_of_starts(self._world, self._rng)
            lies += lies_of_words(self._world, request.now_s, self._rng)
            lies += lies_of_reservations(self._world, request.now_s, self._rng)
        del reply.decisions[:]
        before = [(kind, lie) for kind, lie in lies if self._rng.random() < 0.5]
        after = [lie for lie in lies if lie not in before] if not self._flood else []
        self._tell(reply, before if not self._flood else lies)
        reply.decisions.extend(truths)
        self._tell(reply, after)
        # Of an array several tasks may start, so only other jobs cannot start again.
        single = [
            truth for truth in truths
            if truth.HasField("start") and not self._is_array(truth.job_id)
        ]  # fmt: skip
        for truth in single:
            self._told[truth.id] = (TRUE_START, self._batch, truth.job_id)
        self._tell(reply, [("may-be started again", truth) for truth in single])
        return reply

    def _is_array(self, job_id: str) -> bool:
        job = self._world.pending.get(job_id)
        return job is None or job.array_tasks > 0

    def _tell(self, reply: pb.CycleReply, lies: list[Lie]) -> None:
        for kind, lie in lies:
            number = next(self._ids)
            self._told[number] = (kind, self._batch, lie.job_id)
            reply.decisions.add().CopyFrom(lie)
            reply.decisions[-1].id = number

    def _note(self, request: pb.CycleRequest) -> None:
        with self._fates.open("a", encoding="utf-8") as file:
            for fate in request.fates:
                told = self._told.pop(fate.decision_id, None)
                fate.decision_id = self._true.pop(fate.decision_id, fate.decision_id)
                if told is None:
                    continue
                kind, batch, job = told
                entry = {
                    "kind": kind, "batch": batch, "job": job, "code": fate.code,
                    "outcome": OUTCOMES[fate.outcome], "text": fate.text,
                }  # fmt: skip
                file.write(json.dumps(entry) + "\n")


def bend(what: str, parameter: str) -> None:
    """Puts something between the cycles and the wire."""
    honest = Cycles.run
    if what == "slow":
        delay_s = float(parameter)

        def slow(self: Cycles, *arguments: object) -> pb.CycleReply:
            reply = honest(self, *arguments)  # type: ignore[arg-type]
            time.sleep(delay_s)
            return reply

        Cycles.run = slow  # type: ignore[method-assign,assignment]
        return
    if what == "amnesia":

        def forgetful(self: Cycles, *arguments: object) -> pb.CycleReply:
            reply = honest(self, *arguments)  # type: ignore[arg-type]
            setattr(reply, parameter, True if parameter == "need_full" else 7)
            return reply

        Cycles.run = forgetful  # type: ignore[method-assign,assignment]
        return
    liar = Liar(Path(parameter), flood=what == "flood")

    def lying(self: Cycles, request: pb.CycleRequest, *rest: object) -> pb.CycleReply:
        return liar.run(lambda: honest(self, request, *rest), request)  # type: ignore[arg-type]

    Cycles.run = lying  # type: ignore[method-assign,assignment]


if __name__ == "__main__":
    mode, value, dashes, *words = sys.argv[1:]
    assert mode in ("slow", "lies", "flood", "amnesia")
    assert dashes == "--"
    bend(mode, value)
    main(words)
