# SPDX-License-Identifier: Apache-2.0
"""Resizes are carried out while a malleable job runs, and until the last one is forgotten."""

from bridge.extensions.elastic.resizing.runtime import Runtime
from bridge.policies.catalogue import DEFAULT
from bridge.registry import PRESETS, build
from bridge.rpc.controller.actions import decided
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.safe_cycle.decider import Decider
from tests.unit.rpc import worlds


def a_service():
    hello = worlds.a_hello(features=decided())
    return worlds.some_cycles(Decider(build(PRESETS[DEFAULT])).decide, DEFAULT, hello=hello)


def a_report(generation, *malleable, plain=("a",)):
    """Running jobs on nodes of their own, and a waiting one."""
    running = [worlds.a_running_job(job, f"n{at}") for at, job in enumerate((*plain, *malleable))]
    widths = pb.Malleable(min_nodes=1, max_nodes=3)
    for job in running[len(plain) :]:
        job.request.CopyFrom(pb.Request(partitions=["batch"], malleable=widths))
    return worlds.a_full([*running, worlds.a_job("9")], generation=generation)


def test_rigid_jobs_are_not_looked_at(monkeypatch):
    seen = []
    monkeypatch.setattr(Runtime, "see", lambda _, snapshot: seen.append(len(snapshot.running)))
    cycles = a_service()
    cycles.run(a_report(1))
    cycles.run(a_report(2, plain=("a", "b")))
    assert seen == []
    cycles.run(a_report(3, "m"))
    assert seen == [2]


def test_malleable_jobs_that_have_ended_are_forgotten():
    """The first of two while the other one runs, and the last one."""
    cycles = a_service()
    cycles.run(a_report(1, "m", "w"))
    assert not cycles.resizing.is_idle
    cycles.run(a_report(2, "w"))
    assert not cycles.resizing.is_idle
    cycles.run(a_report(3))
    assert cycles.resizing.is_idle
