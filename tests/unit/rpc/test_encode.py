# SPDX-License-Identifier: Apache-2.0
"""A snapshot encoded by `bridge.rpc.encode` and read by a session is the same snapshot."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.errors import SnapshotError
from bridge.model.job import RUNNING_COLUMNS, Hold, WidthRule
from bridge.model.job_columns import Source
from bridge.model.snapshot import Snapshot
from bridge.rpc.encode import Messages
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.session import Session
from schedbridge_contracts.builders import (
    a_job,
    a_node,
    a_partition,
    a_reservation,
    a_running_job,
    a_snapshot,
)
from tests.unit.rpc import worlds
from tests.unit.rpc.worlds import a_hello, canonical


def through_the_wire(snapshot: Snapshot) -> Snapshot:
    messages = Messages(snapshot)
    request = pb.CycleRequest(
        epoch=1, generation=snapshot.generation, now_s=snapshot.now_s,
        nodes=[messages.node(snapshot.nodes, row) for row in range(len(snapshot.nodes))],
        jobs=[
            *(messages.pending(snapshot, row) for row in range(len(snapshot.jobs))),
            *(messages.running(snapshot, row) for row in range(len(snapshot.running))),
        ],
        partitions=messages.partitions(snapshot),
        reservations=messages.reservations(snapshot),
        licences=messages.licences(snapshot),
    )  # fmt: skip
    session = Session()
    session.greet(a_hello())
    assert session.apply(pb.CycleRequest.FromString(request.SerializeToString()))
    return session.snapshot()[0]


NODES = st.builds(
    a_node,
    cpus=st.integers(1, 64),
    mem_mib=st.integers(0, 10**6),
    gpus=st.integers(0, 8),
    features=st.sets(st.sampled_from("abc")).map(lambda found: tuple(sorted(found))),
    usable=st.booleans(),
    weight=st.integers(0, 100),
)


@st.composite
def jobs(draw, n_nodes):
    low = draw(st.integers(1, 6))
    high = draw(st.integers(low, 9))
    tasks = 0
    if draw(st.booleans()) and low * 2 <= 9:
        tasks = draw(st.integers(low + 1, 20))
        high = min(high, tasks)
        if high == low == 1:
            high = 2
    nodes = st.sets(st.integers(0, n_nodes - 1), max_size=2).map(lambda s: tuple(sorted(s)))
    required = draw(nodes)
    return a_job(
        nodes=max(low, len(required)),
        max_nodes=max(high, len(required)),
        limit_s=draw(st.integers(0, 10**6)),
        submit_s=draw(st.integers(0, 10**9)),
        priority=draw(st.integers(0, 2**60)),
        begin_s=draw(st.integers(0, 10**9)),
        hold=Hold(draw(st.integers(0, 8))),
        shared=draw(st.booleans()),
        cpus=0 if tasks else draw(st.integers(1, 9)),
        mem_mib=draw(st.integers(0, 9)),
        gpus=draw(st.integers(0, 4)),
        tasks=tasks if tasks > max(low, len(required)) else 0,
        cpus_per_task=draw(st.integers(1, 4)),
        features=draw(st.sampled_from(["", "a&b"])),
        required=required,
        excluded=draw(nodes),
        licences=draw(st.sampled_from([(1, 0), (0, 3)])),
        reservation=draw(st.integers(-1, 0)),
        array_tasks=draw(st.sampled_from([0, 5])),
        deadline_s=draw(st.sampled_from([0, 10**9])),
        min_s=draw(st.sampled_from([0, 60])),
        fixed=draw(st.booleans()),
        switches=draw(st.sampled_from((0, 1, 3))),
        switches_wait_s=draw(st.sampled_from((0, 300))),
        min_power_w=draw(st.sampled_from((0, 90))),
        max_power_w=draw(st.sampled_from((0, 90, 250))),
    )


@st.composite
def snapshots(draw):
    nodes = draw(st.lists(NODES, min_size=2, max_size=6))
    wanted = []
    for job in draw(st.lists(jobs(len(nodes)), max_size=6)):
        if not job.tasks and job.cpus == 0:
            job.cpus = 1
        if job.tasks:
            job.max_nodes = min(job.max_nodes, job.tasks)
        wanted.append(job)
    held = st.sets(st.integers(0, len(nodes) - 1), min_size=1).map(lambda s: tuple(sorted(s)))
    running = st.builds(
        a_running_job, nodes=held, end_s=st.integers(1, 3 * 10**8), shared=st.booleans(),
        cpus=st.integers(0, 9), mem_mib=st.integers(0, 9), gpus=st.integers(0, 3),
        licences=st.just((0, 1)), min_power_w=st.sampled_from((0, 90)),
        max_power_w=st.sampled_from((0, 250)),
    )  # fmt: skip
    return a_snapshot(
        nodes=nodes,
        jobs=wanted,
        running=draw(st.lists(running, max_size=5)),
        partitions=[
            a_partition(nodes=range(len(nodes))),
            a_partition("other", nodes=[0], up=False, max_nodes=3, priority_tier=9),
        ],
        reservations=[replace(a_reservation([1], 50, 90), licences=np.array([1, 0]))],
        licences=[("matlab", 4), ("ansys", 0)],
        now_s=draw(st.integers(0, 10**9)),
        generation=draw(st.integers(1, 10**6)),
    )()


@settings(max_examples=150, deadline=None)
@given(snapshots())
def test_a_snapshot_survives_the_wire(snapshot):
    assert canonical(through_the_wire(snapshot)) == canonical(snapshot)


def test_width_rules_and_types_survive():
    snapshot = a_snapshot(jobs=[a_job(nodes=2, max_nodes=8, width_rule=WidthRule.POF2, cpus=1)])()
    columns = {**vars(snapshot), "resources": ("cpus", "mem_mib", "gpu", "gpu:a100")}
    more = np.zeros((4, 1), dtype=np.int64)
    more[1] = 2
    nodes = snapshot.nodes
    capacity = np.concatenate((nodes.capacity, more), axis=1)
    capacity[1, 2] = 5
    columns["nodes"] = type(nodes)(**{**_fields(nodes), "capacity": capacity})
    zero = np.array([[1, 0, 3, 2]], dtype=np.int64)
    columns["jobs"] = type(snapshot.jobs)(
        **{**_fields(snapshot.jobs), "per_node": zero, "per_task": zero * 0}
    )
    running = snapshot.running
    columns["running"] = type(running)(
        **{**_fields(running), "use": np.zeros((0, 4), dtype=np.int64)}
    )
    typed = Snapshot(**columns)
    assert canonical(through_the_wire(typed)) == canonical(typed)


def _fields(table):
    return {name: getattr(table, name) for name in type(table).__dataclass_fields__}


def test_the_services_own_holds_become_words():
    snapshot = a_snapshot(jobs=[a_job(hold=Hold.REFUSED, cpus=1)])()
    snapshot.jobs.hold_text[0] = "no"
    found = through_the_wire(snapshot).jobs
    assert (found.hold[0], found.hold_text[0]) == (Hold.OTHER, "no")


@pytest.mark.parametrize(
    ("per_node", "per_task"),
    [
        ((1, 0, 0), (1, 0, 0)),
        ((0, 0, 0), (1, 0, 1)),
        ((0, 0, 0), (2, 3, 0)),
        ((0, 5, 0), (1, 3, 0)),
    ],
)
def test_what_no_option_says_is_refused(per_node, per_task):
    snapshot = a_snapshot(jobs=[a_job(nodes=1, max_nodes=3, tasks=3)])()
    snapshot.jobs.per_node[:] = per_node
    snapshot.jobs.per_task[:] = per_task
    with pytest.raises(SnapshotError, match="more than the wire can state"):
        through_the_wire(snapshot)


def stated_jobs():
    """Three jobs that together state all that a controller reports of a running job."""
    for number, uses in enumerate(([("n[0-1]", 2)], [("m[1-3]", 2), ("m4,n2", 3)], [("n[", 1)]), 8):
        job = worlds.a_running_job(f"{number}", "", start_s=100 + number, exclusive=True)
        job.name, job.account, job.version = f"name{number}", f"account{number}", 7 + number
        job.allocation.uses.extend(pb.NodeUse(nodes=nodes, cpus=cpus) for nodes, cpus in uses)
        job.allocation.licences.add(name="l", count=number)
        job.allocation.number = 100 + number
        job.allocation.min_power_w, job.allocation.max_power_w = 90 + number, 200 + number
        for each in RUNNING_COLUMNS:
            if each.source is Source.MESSAGE and each.is_number and each.name != "version":
                setattr(job, each.field, 1)
        yield job


def test_all_that_is_reported_of_running_jobs_survives():
    """A column that no job states is stated here, or named as one of malleable or hosted jobs."""
    session = worlds.a_session(
        worlds.a_full(
            list(stated_jobs()), licences=pb.Licences(items=[pb.Licence(name="l", total=40)])
        )
    )
    snapshot = session.snapshot()[0]
    running = snapshot.running
    others = {
        "min_nodes", "max_nodes", "width_rule", "features", "reservation", "head", "adapting",
        "keeps_nodes", "requested_nodes", "host_id",
        "extendable",
    }  # fmt: skip
    neutral = {
        each.name
        for each in RUNNING_COLUMNS
        if each.source is not Source.SERVICE
        and (getattr(running, each.name).T == each.left_out(3, 1).T).all()
    }  # fmt: skip
    assert neutral <= others
    assert canonical(through_the_wire(snapshot)) == canonical(snapshot)
