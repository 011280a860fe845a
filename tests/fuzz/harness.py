# SPDX-License-Identifier: Apache-2.0
"""A service without transport that is sent senseless messages; whoever says a seed repeats it.

Rules
    1. No message makes anything fail but with the errors that are documented.
    2. Every report that is taken gets a plan, and `bridge.check.legality` finds it legal.
    3. Whatever was said before, a controller that makes sense is answered right afterwards.
    4. What people may ask of the last cycle can be told.
"""

import contextlib
import dataclasses
import functools
import logging
import random
from collections import Counter
from collections.abc import Iterator

from google.protobuf.message import DecodeError

from bridge.check.legality import check
from bridge.cli.operators.asking import job_cells
from bridge.errors import SnapshotError, StaleSnapshot, UnsupportedVersion
from bridge.model.rules.site import NO_RULES
from bridge.planning.explain.what_if import what_if
from bridge.planning.site_rules.rules_text import parse_site
from bridge.ports import conditions_of
from bridge.registry import PRESETS, build
from bridge.rpc.controller.announcements import Announcements
from bridge.rpc.controller.cycles import Cycles
from bridge.rpc.encode import Messages
from bridge.rpc.operators.explain import explain, planned_jobs
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.fence import LONGEST_LEASE_S
from bridge.rpc.reported.session import Session
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.worlds import random_world
from tests.fuzz.mutation import mutated, mutated_bytes
from tests.unit.rpc.test_session_properties import World
from tests.unit.rpc.worlds import NOW_S, a_delta, a_full, a_hello, a_job, a_request

MESSAGES = 20
"""Messages of one episode."""

WORLDS = 500
"""Worlds that full reports are made of; mutations make them different."""

DOCUMENTED = (SnapshotError, StaleSnapshot, UnsupportedVersion)

SITES = [
    parse_site(text)
    for text in (
        None,
        None,
        {
            "limits": [
                {"user": "ann", "resource": "cpus", "items": 6},
                {"partition": "batch", "resource": "cpus", "duration": "1h"},
            ],
            "protect": {"gpu": {"cpus": 1}},
        },
        {
            "limits": [{"user": "*", "resource": "jobs", "items": 2}],
            "free_pools": [
                {
                    "name": "nights",
                    "resource": "cpus",
                    "keep": 4,
                    "access": [{"users": ["ann"]}],
                    "valid": {"cron": "0 20 * * *", "length": "10h"},
                }
            ],
        },
    )
]


class Broken(AssertionError):
    """A rule of this file is broken."""


def tiny(name: str):
    """A preset with next to no work to do in a cycle."""
    spec = PRESETS[name]
    little = {"budget_ms": 0, "effort": 0.01 if name in ("pcp19", "hcp19", "pcp20") else 20}
    stages = {}
    for stage in ("plan", "place"):
        chosen = getattr(spec, stage)
        fields = {f.name for f in dataclasses.fields(getattr(build(spec), stage))}
        given = {key: value for key, value in little.items() if key in fields}
        stages[stage] = dataclasses.replace(chosen, parameters={**chosen.parameters, **given})
    return build(dataclasses.replace(spec, **stages))


POLICIES = {name: tiny(name) for name in PRESETS}


class Episode:
    """Some messages to one service.

    Attributes:
        strict: of the class: a cycle in which something had to be set aside breaks a rule, too.
    """

    strict = False

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.seed = seed
        self.preset = rng.choice(list(PRESETS))
        self.site = rng.choice(SITES)
        self.decider = Decider(POLICIES[self.preset], site=self.site)
        self.now = 0.0
        self.planned = None
        self.counts: Counter[str] = Counter()
        self.cycles = Cycles(
            self._decide,
            session=Session(clock=lambda: self.now),
            announcements=Announcements(),
            service="test",
            policy=lambda: self.preset,
            site=lambda: self.site,
        )
        self.flags = {
            "whole_cores": rng.random() < 0.5,
            "memory_consumable": rng.random() < 0.7,
            "memory_optional": rng.random() < 0.7,
            "features": ["start", "choice"] if rng.random() < 0.7 else [],
        }
        self.epoch, self.clock_s = 1, NOW_S
        self.world = World(rng)

    def _decide(self, snapshot):
        self.planned = (snapshot, None)
        plan = self.decider.decide(snapshot)
        self.planned = (snapshot, plan)
        return plan

    def run(self) -> Counter[str]:
        """Sends all messages; what became of them.

        Raises:
            Broken: a rule is broken.
        """
        self._say(self.cycles.greet, a_hello(epoch=self.epoch, **self.flags))
        for _ in range(MESSAGES):
            self.counts["messages"] += 1
            self.now += self.rng.choice((0, 0.1, 5))
            if self.rng.random() < 0.04:
                self._senseless(a_hello(epoch=self.epoch, **self.flags), self.cycles.greet)
            else:
                self._senseless(self._report(), self._cycle)
        self._makes_sense()
        return self.counts

    def _report(self) -> pb.CycleRequest:
        """A good report on what the service holds."""
        rng, session = self.rng, self.cycles.session
        self.clock_s += rng.choice((0, 1, 60))
        if session.generation and session.epoch and rng.random() < 0.6:
            return a_delta(
                session.generation, min(session.generation + 1, 2**64 - 1), session.epoch,
                self.clock_s, **self.world.step(),
            )  # fmt: skip
        if rng.random() < 0.5:
            self.world = World(rng)
            return self.world.full(epoch=session.epoch or 1, now_s=self.clock_s)
        return self._raised()

    def _raised(self) -> pb.CycleRequest:
        """A full report of a world with jobs of all kinds, at the present time."""
        request = pb.CycleRequest()
        request.CopyFrom(_raised(self.rng.randrange(WORLDS)))
        request.epoch, request.now_s = self.cycles.session.epoch or 1, self.clock_s
        for job in request.jobs:
            for said, names in (
                (job, ("submit_s", "eligible_s", "begin_s", "deadline_s")),
                (job.allocation, ("start_s", "end_s")),
            ):
                for name in names:
                    if value := getattr(said, name):
                        setattr(said, name, value + self.clock_s)
        for item in request.reservations.items:
            item.start_s, item.end_s = item.start_s + self.clock_s, item.end_s + self.clock_s
        return request

    def _senseless(self, message, say) -> None:
        rng = self.rng
        kept = pb.CycleRequest()
        if isinstance(message, pb.CycleRequest):
            kept.CopyFrom(message)
        if rng.random() < 0.95:
            mutated(rng, message, rng.choice((1, 1, 2, 4, 12)))
        if isinstance(message, pb.CycleRequest):
            for name, chance in (("epoch", 0.95), ("base_generation", 0.95), ("generation", 0.95),
                                 ("now_s", 0.9)):  # fmt: skip
                if rng.random() < chance:
                    setattr(message, name, getattr(kept, name))
        raw = message.SerializeToString()
        if rng.random() < 0.1:
            raw = mutated_bytes(rng, raw)
        try:
            message = type(message).FromString(raw)
        except (DecodeError, UnicodeDecodeError, ValueError):
            self.counts["not decoded"] += 1
            return
        self._say(say, message)

    def _say(self, say, message):
        self.planned = None
        before = self.decider.failures
        try:
            reply = say(message)
        except DOCUMENTED as error:
            self.counts[type(error).__name__] += 1
            return None
        except Exception as error:
            raise self._broken(f"{type(error).__name__}: {error}", message) from error
        if self.planned is not None:
            self._judge(message, before)
        elif isinstance(reply, pb.CycleReply):
            self.counts["need_full"] += 1
        return reply

    def _cycle(self, message):
        reply = self.cycles.run(message)
        if reply.need_full:
            return reply
        self._ask(message)
        return reply

    def _judge(self, message, before) -> None:
        snapshot, plan = self.planned
        self.counts["planned"] += 1
        if found := check(snapshot, self.site, plan):
            raise self._broken(f"illegal plan: {found[0]}", message)
        aside = [note for note in plan.notes if "set aside" in note]
        if aside or self.decider.failures > before:
            self.counts["set aside"] += 1
            if self.strict:
                raise self._broken(f"set aside: {plan.notes}", message)

    def _ask(self, message) -> None:
        """What people may ask (rule 4)."""
        published = self.cycles.published
        if published is None or self.rng.random() > 0.2:
            return
        for job in planned_jobs(published, 5):
            job_cells(job, self.clock_s)
        ids = [*published.snapshot.jobs.id, *published.snapshot.running.id]
        if ids:
            requested = self._what_if if self.rng.random() < 0.25 else None
            explain(published, self.rng.choice(ids), requested)

    def _what_if(self, published, row):
        """As the service finds it, but for its net: what is wrong is a fault here."""
        stage = POLICIES[self.preset].plan
        return what_if(published.snapshot, published.plan, row, conditions_of(stage, self.site))

    def _makes_sense(self) -> None:
        """Rule 3."""
        self.now += LONGEST_LEASE_S
        self.epoch += 1
        with contextlib.suppress(StaleSnapshot):
            self.cycles.greet(a_hello(epoch=self.epoch))
        self.cycles.greet(a_hello(epoch=self.epoch))
        jobs = [a_job(str(at), user=f"u{at}", request=a_request(min_nodes=1, max_nodes=1))
                for at in range(2)]  # fmt: skip
        good = a_full(jobs, epoch=self.epoch, now_s=self.clock_s)
        self.site = self.decider.site = NO_RULES
        reply = self._say(self.cycles.run, good)
        if reply is None or reply.need_full:
            raise self._broken("a controller that makes sense is not answered", good)
        told = {decision.job_id for decision in reply.decisions}
        if told != {"0", "1"}:
            raise self._broken(f"only {told} of jobs 0 and 1 were told of", good)

    def _broken(self, what: str, message) -> Broken:
        return Broken(
            f"{what}\npreset {self.preset}; repeat: python -m tests.fuzz --seed {self.seed}\n"
            f"{str(message)[:2000]}"
        )


@functools.lru_cache(WORLDS)
def _raised(seed: int) -> pb.CycleRequest:
    """A full report of a world whose time begins at 0."""
    snapshot = random_world(seed, chunks=True)
    messages = Messages(snapshot)
    jobs = [messages.running(snapshot, row) for row in range(len(snapshot.running))]
    for row in range(len(snapshot.jobs)):
        with contextlib.suppress(SnapshotError):  # there are requests no option of Slurm makes
            jobs.append(messages.pending(snapshot, row))
    return a_full(
        jobs,
        [messages.node(snapshot.nodes, row) for row in range(len(snapshot.nodes))],
        partitions=messages.partitions(snapshot),
        reservations=messages.reservations(snapshot),
        licences=messages.licences(snapshot),
    )


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nobody reads the log of a million senseless messages."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
