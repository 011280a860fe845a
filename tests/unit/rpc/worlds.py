# SPDX-License-Identifier: Apache-2.0
"""A little cluster in wire messages, and snapshots made comparable."""

import dataclasses

import numpy as np

from bridge.model.job import RUNNING_COLUMNS, Hold
from bridge.model.rules.site import NO_RULES
from bridge.model.snapshot import Snapshot
from bridge.rpc.controller.announcements import Announcements
from bridge.rpc.controller.cycles import Cycles
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.session import Session

NOW_S = 1_000_000


def a_hello(epoch=1, **settings):
    settings = {"memory_consumable": True, "memory_optional": True, "wire_version": 1} | settings
    return pb.HelloRequest(controller="test", cluster="c", epoch=epoch, **settings)


def some_cycles(decide, policy, *, session=None, site=NO_RULES, hello=None, **settings):
    """Cycles of a controller that has said hello."""
    cycles = Cycles(
        decide,
        session=Session() if session is None else session,
        announcements=Announcements(),
        service="test 1",
        policy=lambda: policy,
        site=lambda: site,
        **settings,
    )
    cycles.greet(a_hello() if hello is None else hello)
    return cycles


def a_node(name, cpus=4, threads_per_core=1, memory_mib=1000, usable=True, **settings):
    return pb.Node(
        name=name, cpus=cpus, threads_per_core=threads_per_core, memory_mib=memory_mib,
        usable=usable, **settings,
    )  # fmt: skip


def some_nodes(count=4, **settings):
    return [a_node(f"n{index}", **settings) for index in range(count)]


def a_request(**settings):
    return pb.Request(**({"partitions": ["batch"], "min_nodes": 1} | settings))


def a_job(job_id="1", version=1, request=None, **settings):
    settings = {"submit_s": 100, "time_limit_s": 600, "priority": 5, "user": "ann"} | settings
    return pb.Job(
        id=job_id, version=version, state=pb.JOB_STATE_PENDING,
        request=request if request is not None else a_request(min_nodes=1, max_nodes=1),
        **settings,
    )  # fmt: skip


def a_running_job(job_id, nodes, cpus=4, memory_mib=0, end_s=NOW_S + 100, **settings):
    state = settings.pop("state", pb.JOB_STATE_RUNNING)
    settings = {"start_s": NOW_S - 100, "partition": "batch"} | settings
    return pb.Job(
        id=job_id, version=1, state=state, user="bob",
        allocation=pb.Allocation(
            end_s=end_s,
            uses=[pb.NodeUse(nodes=nodes, cpus=cpus, memory_mib=memory_mib)] if nodes else [],
            **settings,
        ),
    )  # fmt: skip


def partitions(nodes="n[0-3]", **settings):
    return pb.Partitions(items=[pb.Partition(name="batch", nodes=nodes, up=True, **settings)])


def a_full(jobs=(), nodes=None, epoch=1, generation=1, now_s=NOW_S, **settings):
    nodes = some_nodes() if nodes is None else nodes
    if "partitions" not in settings:
        names = ",".join(node.name for node in nodes)
        settings["partitions"] = partitions(names)
    return pb.CycleRequest(
        epoch=epoch, generation=generation, now_s=now_s, jobs=jobs, nodes=nodes, **settings
    )


def a_delta(base, generation=None, epoch=1, now_s=NOW_S, **settings):
    return pb.CycleRequest(
        epoch=epoch,
        base_generation=base,
        generation=generation or base + 1,
        now_s=now_s,
        **settings,
    )


def a_session(*requests, **hello):
    session = Session()
    session.greet(a_hello(**hello))
    for request in requests:
        assert session.apply(request)
    return session


def canonical(snapshot: Snapshot) -> dict:
    """Everything a snapshot says, independent of the order of its rows."""
    jobs, running = snapshot.jobs, snapshot.running
    columns = [field.name for field in dataclasses.fields(jobs)]
    pending = {
        job_id: {name: _plain(getattr(jobs, name)[row]) for name in columns}
        for row, job_id in enumerate(jobs.id)
    }
    scalars = [each.name for each in RUNNING_COLUMNS if each.name != "id"]
    holding = {}
    for row, job_id in enumerate(running.id):
        held = slice(running.indptr[row], running.indptr[row + 1])
        holding[job_id] = {name: _plain(getattr(running, name)[row]) for name in scalars} | {
            "nodes": running.nodes[held].tolist(),
            "use": running.use[held].tolist(),
        }
    nodes = snapshot.nodes
    return {
        "now_s": snapshot.now_s,
        "resources": snapshot.resources,
        "nodes": {
            name: (
                nodes.capacity[row].tolist(), bool(nodes.usable[row]), int(nodes.weight[row]),
                nodes.features[row], nodes.state[row],
            )
            for row, name in enumerate(nodes.names)
        },
        "node_order": nodes.names,
        "jobs": pending,
        "running": holding,
        "partitions": [_plain_object(partition) for partition in snapshot.partitions],
        "reservations": [_plain_object(item) for item in snapshot.reservations],
        "licences": dict(zip(snapshot.licences, snapshot.licence_total.tolist(), strict=True)),
    }  # fmt: skip


def jobs_of(session):
    """The waiting jobs of a session, by id."""
    return canonical(session.snapshot()[0])["jobs"]


def running_of(session):
    """Its jobs that hold nodes, by id."""
    return canonical(session.snapshot()[0])["running"]


def hold_of(session, job_id="1"):
    """Why a waiting job is held, and the words of it."""
    job = jobs_of(session)[job_id]
    return Hold(job["hold"]), job["hold_text"]


def _plain(value):
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _plain_object(thing):
    return {field.name: _plain(getattr(thing, field.name)) for field in dataclasses.fields(thing)}
