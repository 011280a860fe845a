# SPDX-License-Identifier: Apache-2.0
"""Hundreds of changes sent as deltas leave the session where a full report would."""

import os
import random

import numpy as np
import pytest

from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.session import Session

GIVEN = os.environ.get("SCHEDBRIDGE_SEED")
NOW = 1_790_000_000
STEPS, COMPARE_EVERY = 240, 8


class Tables:
    """A controller's tables, changed at random."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.nodes = {f"n{at}": self.node(f"n{at}") for at in range(6)}
        self.jobs = {}
        self.up, self.elsewhere = True, 0
        self.made = 0

    def node(self, name):
        dice = self.dice
        return pb.Node(
            name=name, cpus=dice.choice((2, 4, 8)), threads_per_core=1, memory_mib=4000,
            features=sorted(dice.sample("abc", dice.randint(0, 3))), usable=dice.random() < 0.7,
            state="IDLE", weight=dice.randint(1, 3),
        )  # fmt: skip

    def waiting(self, job_id):
        dice = self.dice
        tasks = dice.choice((0, 0, 5))
        job = pb.Job(
            id=job_id, version=dice.randint(1, 2**62), state=pb.JOB_STATE_PENDING, name="job",
            user=dice.choice("uvw"), account="a", priority=dice.randint(0, 9), submit_s=NOW,
            begin_s=dice.choice((0, NOW + dice.randint(1, 999))), time_limit_s=dice.randint(1, 999),
            hold=dice.choice((pb.HOLD_NONE, pb.HOLD_HELD, pb.HOLD_BEGIN_TIME)), array_tasks=tasks,
            array_startable=dice.randint(0, tasks),
        )  # fmt: skip
        job.request.CopyFrom(
            pb.Request(partitions=["p"], min_nodes=dice.randint(1, 3), max_nodes=3,
                       exclusive=dice.random() < 0.5, features=dice.choice(("", "a", "b|c")))
        )  # fmt: skip
        return job

    def running(self, job_id, node):
        dice = self.dice
        held = pb.Allocation(
            start_s=NOW - 10, end_s=NOW + dice.randint(1, 999), partition="p",
            uses=[pb.NodeUse(nodes=node, cpus=1, memory_mib=1)],
            licences=[pb.LicenceUse(name="lic", count=1)] if dice.random() < 0.5 else [],
        )  # fmt: skip
        state = dice.choice((pb.JOB_STATE_RUNNING, pb.JOB_STATE_COMPLETING))
        return pb.Job(id=job_id, version=1, state=state, user="u", account="a", allocation=held)

    def change(self):
        """Changes something; what a delta says of it."""
        dice, request = self.dice, pb.CycleRequest()
        kind = dice.choice(("node", "node", "job", "job", "start", "gone", "tables", "nothing"))
        if kind == "node":
            name = dice.choice(list(self.nodes))
            self.nodes[name] = self.node(name)
            request.nodes.append(self.nodes[name])
        elif kind == "job" and len(self.jobs) < 12:
            self.made += 1
            self._put(self.waiting(str(self.made)), request)
        elif kind == "job":
            self._put(self.waiting(dice.choice(list(self.jobs))), request)
        elif kind == "start" and self.jobs:
            job = self.running(dice.choice(list(self.jobs)), dice.choice(list(self.nodes)))
            self._put(job, request)
        elif kind == "gone" and self.jobs:
            job_id = dice.choice(list(self.jobs))
            del self.jobs[job_id]
            request.removed_jobs.append(job_id)
        elif kind == "tables":
            self.up, self.elsewhere = dice.random() < 0.5, dice.randint(0, 4)
            self._tables(request)
        return request

    def _put(self, job, request):
        self.jobs[job.id] = job
        request.jobs.append(job)

    def _tables(self, request):
        request.partitions.items.add(name="p", nodes=",".join(self.nodes), up=self.up)
        request.licences.items.add(name="lic", total=9, used_elsewhere=self.elsewhere)

    def everything(self):
        request = pb.CycleRequest(nodes=self.nodes.values(), jobs=self.jobs.values())
        self._tables(request)
        return request


def a_session():
    session = Session(clock=lambda: 0.0)
    session.greet(pb.HelloRequest(wire_version=1, epoch=1, memory_optional=True))
    return session


@pytest.mark.parametrize("seed", range(3))
def test_a_delta_on_a_generation_that_only_looks_alike_changes_nothing(seed):
    """It differs in one bit, or is the same number as a double."""
    tables = Tables(seed)
    session, generation = a_session(), 2**53 + tables.dice.randrange(1, 2**40)
    assert send(session, tables.everything(), generation, 0)
    before = known(session)
    for base in [generation ^ 1 << bit for bit in range(64)]:
        change = tables.change()
        assert not send(session, change, 2**64 - 1, base)
    assert known(session) == before
    assert session.generation == generation
    assert send(session, pb.CycleRequest(), generation + 1, generation)


def send(session, request, generation, base):
    request.epoch, request.now_s = 1, NOW
    request.generation, request.base_generation = generation, base
    return session.apply(request)


def known(session):
    """What a session knows, by name; whatever order it came in."""
    snapshot, _ = session.snapshot()
    nodes, jobs, running = snapshot.nodes, snapshot.jobs, snapshot.running
    columns = [name for name in jobs.__dataclass_fields__ if name != "chunks"]
    waiting = {
        jobs.id[row]: [str(getattr(jobs, name)[row]) for name in columns]
        for row in range(len(jobs))
    }
    held = {
        running.id[row]: (
            int(running.start_s[row]), int(running.end_s[row]), running.licences[row].tolist(),
            running.nodes[running.indptr[row] : running.indptr[row + 1]].tolist(),
        )
        for row in range(len(running))
    }  # fmt: skip
    table = {
        name: (
            nodes.capacity[row].tolist(), bool(nodes.usable[row]), int(nodes.weight[row]),
            sorted(nodes.features[row]),
        )
        for row, name in enumerate(nodes.names)
    }  # fmt: skip
    rooms = [(part.name, part.up, part.nodes.tolist()) for part in snapshot.partitions]
    return table, waiting, held, rooms, np.asarray(snapshot.licence_total).tolist()


def as_told(session, tables):
    """Whether what is known is what the tables say, where that is easy to say."""
    snapshot, _ = session.snapshot()
    nodes, jobs = snapshot.nodes, snapshot.jobs
    for row, name in enumerate(nodes.names):
        node = tables.nodes[name]
        assert (nodes.usable[row], nodes.capacity[row, 0]) == (node.usable, node.cpus)
    waiting = {job.id: job for job in tables.jobs.values() if job.state == pb.JOB_STATE_PENDING}
    assert set(jobs.id.tolist()) == set(waiting)
    for row, job_id in enumerate(jobs.id.tolist()):
        job = waiting[job_id]
        assert (jobs.begin_s[row], jobs.hold[row], jobs.priority[row]) == (
            job.begin_s, job.hold, job.priority
        )  # fmt: skip
        assert jobs.array_startable[row] == min(job.array_startable, job.array_tasks)
        assert bool(jobs.exclusive[row]) == job.request.exclusive
    assert snapshot.partitions[0].up == tables.up
    assert snapshot.licence_total.tolist() == [9 - tables.elsewhere]
    return True


@pytest.mark.parametrize("number", range(1 if GIVEN else 4))
def test_deltas_come_to_what_a_full_report_says(number):
    seed = int(GIVEN) if GIVEN else random.SystemRandom().randrange(10**9)
    tables, session = Tables(seed), a_session()
    again = f"SCHEDBRIDGE_SEED={seed} pytest {__file__}"
    assert send(session, tables.everything(), 1, 0), again
    generation = 1
    for step in range(STEPS):
        taken = send(session, tables.change(), generation + 1, generation)
        generation += 1
        if not taken:  # it may ask for everything where what is said is odd
            generation += 1
            assert send(session, tables.everything(), generation, 0), again
        if step % COMPARE_EVERY == 0:
            fresh = a_session()
            assert send(fresh, tables.everything(), 1, 0), again
            assert as_told(session, tables), again
            for mine, whole in zip(known(session), known(fresh), strict=True):
                assert mine == whole, f"after {step} changes; {again}"


@pytest.mark.parametrize("base", [1, 2, 4, 9])
def test_a_delta_on_another_base_is_not_taken(base):
    tables, session = Tables(1), a_session()
    for generation in (1, 2, 3):
        assert send(session, tables.everything(), generation, 0)
    before = known(session)
    assert not send(session, tables.change(), 10, base)
    assert known(session) == before
