# SPDX-License-Identifier: Apache-2.0
"""Whatever happens in whatever order: a session fed by deltas knows what a full report says."""

import contextlib
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.errors import BridgeError, SnapshotError
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.clock import STAYS_S
from bridge.rpc.reported.cluster import ReportedCluster
from bridge.rpc.reported.session import Session
from tests.unit.rpc.worlds import NOW_S, a_delta, a_full, a_hello, a_node, canonical


class World:
    """A cluster that changes at random, and tells what changed."""

    def __init__(self, rng):
        self.rng = rng
        self.names = [f"n{index}" for index in range(12)]
        self.nodes = {name: self.a_node(name) for name in self.names[:6]}
        self.jobs = {}
        self.parts = self.some_partitions()
        self.next_id = 1

    def a_node(self, name):
        rng = self.rng
        return a_node(
            name, cpus=rng.choice([4, 8]), threads_per_core=rng.choice([1, 2]),
            memory_mib=rng.choice([1000, 2000]), usable=rng.random() < 0.8,
            features=rng.sample(["a", "b", "c"], 2), weight=rng.randrange(3),
            gres=rng.choice([[], [pb.Gres(name="gpu:v", count=2)], [pb.Gres(name="gpu", count=1)]]),
            state=rng.choice(["IDLE", "MIXED"]),
        )  # fmt: skip

    def some_partitions(self):
        known = list(self.nodes)
        return pb.Partitions(
            items=[
                pb.Partition(
                    name=name, up=self.rng.random() < 0.9, priority_tier=self.rng.randrange(3),
                    nodes=",".join(self.rng.sample(known, self.rng.randint(1, len(known)))),
                    exclusive=self.rng.random() < 0.2, max_time_s=self.rng.choice([0, 3600]),
                )
                for name in self.rng.sample(["batch", "debug", "large"], self.rng.randint(1, 3))
            ]
        )  # fmt: skip

    def a_pending_job(self, job_id):
        rng = self.rng
        return pb.Job(
            id=job_id, version=rng.randrange(1, 1 << 64), state=pb.JOB_STATE_PENDING,
            name=rng.choice(["x", "y"]), user=rng.choice(["ann", "bob"]),
            priority=rng.randrange(1 << 32), submit_s=rng.randrange(NOW_S),
            time_limit_s=rng.choice([0, 60, 3600]), hold=rng.randrange(9),
            hold_text=rng.choice(["", "because"]),
            deadline_s=rng.choice([0, NOW_S + 900]), min_time_s=rng.choice([0, 60]),
            array_tasks=rng.choice([0, 0, 5]), array_startable=rng.choice([0, 2, 9]),
            request=pb.Request(
                partitions=rng.sample(["batch", "debug", "large", "gone"], 2),
                min_nodes=rng.randint(0, 4), max_nodes=rng.choice([0, 2, 4]),
                tasks=rng.choice([0, 1, 4, 7]), cpus_per_task=rng.choice([0, 1, 3]),
                tasks_per_node=rng.choice([0, 0, 2]),
                memory_per_node_mib=rng.choice([0, 100]), exclusive=rng.random() < 0.3,
                gres_per_node=rng.choice([[], [pb.Gres(name="gpu", count=1)]]),
                features=rng.choice(["", "a&b"]), fixed_start=rng.random() < 0.2,
                switches=rng.choice([0, 0, 1, 3]), switches_wait_s=rng.choice([0, 300]),
                required_nodes=rng.choice(["", "n1", "n[0-2]", "n["]),
                malleable=rng.choice([None, pb.Malleable(min_nodes=1, max_nodes=4)]),
            ),
        )  # fmt: skip

    def a_running_job(self, job_id):
        rng = self.rng
        held = rng.sample(list(self.nodes), rng.randint(1, min(3, len(self.nodes))))
        return pb.Job(
            id=job_id, version=1, user="bob",
            state=rng.choice([pb.JOB_STATE_RUNNING, pb.JOB_STATE_COMPLETING]),
            allocation=pb.Allocation(
                start_s=NOW_S - 50, end_s=NOW_S + rng.randrange(500), partition="batch",
                uses=[
                    pb.NodeUse(nodes=name, cpus=rng.randint(1, 4), memory_mib=50) for name in held
                ],
            ),
        )  # fmt: skip

    def step(self):
        """Changes something; returns the fields of a delta that says so."""
        rng, delta = self.rng, {}
        changed, removed = {}, set()
        for _ in range(rng.randint(0, 8)):
            kind = rng.random()
            if kind < 0.4 or not self.jobs:
                job_id, self.next_id = str(self.next_id), self.next_id + 1
                changed[job_id] = self.a_pending_job(job_id)
            elif kind < 0.75:
                job_id = rng.choice(list(self.jobs))
                make = rng.choice([self.a_pending_job, self.a_running_job])
                changed[job_id] = make(job_id)
            else:
                removed.add(rng.choice(list(self.jobs)))
        changed = {job_id: job for job_id, job in changed.items() if job_id not in removed}
        self.jobs |= changed
        for job_id in removed:
            del self.jobs[job_id]
        delta |= {"jobs": list(changed.values()), "removed_jobs": sorted(removed)}
        if rng.random() < 0.3:
            name = rng.choice(self.names)
            self.nodes[name] = self.a_node(name)
            delta["nodes"] = [self.nodes[name]]
        if rng.random() < 0.15:
            used = {use.nodes for job in self.jobs.values() for use in job.allocation.uses}
            free = [name for name in self.nodes if name not in used]
            if len(free) > 1 and len(self.nodes) > 2:
                gone = rng.choice(free)
                if not any(node.name == gone for node in delta.get("nodes", [])):
                    del self.nodes[gone]
                    delta["removed_nodes"] = [gone]
                    self.parts = self.some_partitions()
                    delta["partitions"] = self.parts
        if rng.random() < 0.2:
            self.parts = self.some_partitions()
            delta["partitions"] = self.parts
        return delta

    def full(self, **settings):
        return a_full(
            list(self.jobs.values()), list(self.nodes.values()), partitions=self.parts, **settings
        )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.booleans(), st.booleans())
def test_deltas_come_to_what_a_full_report_says(seed, whole_cores, memory):
    """Slow: each example is a session of many reports."""
    world = World(random.Random(seed))
    flags = {"whole_cores": whole_cores, "memory_consumable": memory}
    session = Session()
    session.greet(a_hello(**flags))
    assert session.apply(world.full())
    for generation in range(1, 12):
        now_s, step = NOW_S + generation, world.step()
        if not session.apply(a_delta(generation, now_s=now_s, **step)):  # it is odd
            assert session.apply(world.full(now_s=now_s, generation=generation + 1))
        fresh = Session()
        fresh.greet(a_hello(**flags))
        assert fresh.apply(world.full(now_s=NOW_S + generation))
        assert canonical(session.snapshot()[0]) == canonical(fresh.snapshot()[0])


def test_rows_stand_in_the_order_of_their_coming_even_after_many_left():
    session = Session()
    session.greet(a_hello())
    world = World(random.Random(1))
    assert session.apply(world.full())
    generation, alive = 1, []
    for start in range(0, 9000, 300):
        ids = [str(number) for number in range(start, start + 300)]
        gone, alive = alive[:280], alive[280:] + ids
        jobs = [world.a_pending_job(job_id) for job_id in ids]
        assert session.apply(a_delta(generation, jobs=jobs, removed_jobs=gone))
        generation += 1
        snapshot, serials = session.snapshot()
        assert snapshot.jobs.id.tolist() == alive
        assert (serials[1:] > serials[:-1]).all()


def _garbage(data, message, depth=0):
    """Fills a message with values of the right type and no sense."""
    for field in message.DESCRIPTOR.fields:
        if not data.draw(st.booleans()):
            continue
        repeated = field.is_repeated
        count = data.draw(st.integers(0, 3)) if repeated else 1
        for _ in range(count):
            target = getattr(message, field.name)
            if field.message_type is not None:
                if depth < 4:
                    _garbage(data, target.add() if repeated else target, depth + 1)
                continue
            value = data.draw(_values(field))
            if repeated:
                target.append(value)
            else:
                setattr(message, field.name, value)


WORDS = st.sampled_from(
    ["", "n0", "n1", "n[0-1]", "n[", "batch", "1", "2", "gpu", "gpu:x", "\x00é"]
)


def _values(field):
    bounds = {
        field.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
        field.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
        field.CPPTYPE_UINT32: (0, 2**32 - 1),
        field.CPPTYPE_UINT64: (0, 2**64 - 1),
        field.CPPTYPE_ENUM: (0, 12),
    }
    if field.cpp_type == field.CPPTYPE_STRING:
        return WORDS
    if field.cpp_type == field.CPPTYPE_BOOL:
        return st.booleans()
    if field.cpp_type == field.CPPTYPE_DOUBLE:
        return st.floats()
    low, high = bounds[field.cpp_type]
    return st.one_of(st.integers(0, 3), st.integers(low, high), st.sampled_from([low, high]))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_garbage_is_refused_or_taken_and_never_breaks_the_session(data):
    """Slow: each example is a session of many reports."""
    session = Session()
    session.greet(a_hello())
    for _ in range(4):
        request = pb.CycleRequest()
        _garbage(data, request)
        request.epoch = 1
        if data.draw(st.booleans()):
            request.base_generation = session.generation
            request.generation = min(session.generation + 1, 2**64 - 1)
        if data.draw(st.booleans()):
            request.now_s = NOW_S
        try:
            taken = session.apply(request)
        except SnapshotError:
            assert session.generation == 0
            continue
        if taken:
            canonical(session.snapshot()[0])
    # At once, but where the garbage bore a time a century away: then when this one has stayed.
    tries = [NOW_S, NOW_S, NOW_S + STAYS_S, NOW_S + STAYS_S]
    assert any(taken_at(session, now_s) for now_s in tries)


def taken_at(session, now_s):
    with contextlib.suppress(SnapshotError):
        return session.apply(a_full(generation=99, now_s=now_s))
    return False


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_never_break_the_session(raw):
    request = pb.CycleRequest()
    try:
        request.ParseFromString(raw)
    except Exception:  # protobuf's own; grpc answers it before the service sees anything
        return
    session = Session()
    session.greet(a_hello())
    request.epoch = 1
    with contextlib.suppress(BridgeError):
        session.apply(request)


def test_after_an_unforeseen_error_nothing_half_taken_is_kept(monkeypatch):
    session = Session()
    session.greet(a_hello())
    assert session.apply(a_full())

    def fail(*_):
        raise RuntimeError("bug")

    monkeypatch.setattr(ReportedCluster, "_take_running", fail)
    with pytest.raises(RuntimeError):
        session.apply(a_delta(1, jobs=[]))
    assert session.generation == 0
