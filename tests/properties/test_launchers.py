# SPDX-License-Identifier: Apache-2.0
"""Launchers and reports of jobs whose ids, users, nodes and connections look alike, by seed.

What counts is held against a list of attachments and the nodes that each job holds. Jobs shrink and
move; what they give back are rows of their own, behind those of all jobs, as in a snapshot.
"""

import json
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from bridge.rpc.agents.hub import Hub
from bridge.rpc.agents.job_placement import JobPlacement
from bridge.rpc.agents.placed_reports import ELSEWHERE
from bridge.rpc.pb import agent_pb2 as pb
from schedbridge_contracts.builders import a_running_job, a_snapshot

NAMES = tuple(f"n{number}" for number in range(1, 13))
NODES = ("n1", "n2", "n11", "n12")
CONNECTIONS = (1, 2)
"""Each agent numbers its own."""


@dataclass(frozen=True)
class Job:
    """By the controller's id and by its number on its nodes."""

    id: str
    number: str
    user: str


JOBS = (
    Job("7", "7", "ann"),
    Job("70", "70", "an"),
    Job("40_1", "41", "anna"),
    Job("40_10", "410", "ann"),
    Job("40_2", "4", "an"),
)


@dataclass(frozen=True)
class Attachment:
    """What a naive reader would keep."""

    node: str
    connection: int
    job: Job


def placement(held, released):
    """The controller's report: by id, the nodes that jobs hold, and those that they give back."""
    rows = [(job, held[job.id], False) for job in JOBS]
    rows += [(job, released[job.id], True) for job in JOBS if released[job.id]]
    running = [
        a_running_job(
            tuple(sorted(map(NAMES.index, nodes))), id=job.id, user=job.user, shared=True, cpus=1
        )
        for job, nodes, _ in rows
    ]
    snapshot = a_snapshot(nodes=12, running=running)()
    number = np.array([int(job.number) if "_" in job.id else 0 for job, _, _ in rows])
    releasing = np.array([given_back for _, _, given_back in rows])
    table = replace(snapshot.running, number=number.astype(np.int64), releasing=releasing)
    return JobPlacement(table, snapshot.nodes.names)


class World:
    """A hub with an agent on each node, and what it should have kept."""

    def __init__(self, seed):
        self.dice = np.random.default_rng(seed)
        self.hub = Hub(lambda: 100.0)
        self.agents = {
            node: self.hub.arrived([node], self.sent.append)
            for node, self.sent in ((node, []) for node in NODES)
        }
        self.held, self.attached = {}, []
        self.done, self.refused = set(), Counter()
        self.place()

    def one(self, things):
        return things[self.dice.integers(len(things))]

    def place(self):
        """Jobs hold other nodes, and give others back."""
        released = {}
        for job in JOBS:
            at = self.dice.permutation(len(NODES))
            some = self.dice.integers(1, len(NODES))
            self.held[job.id] = {NODES[i] for i in at[:some]}
            released[job.id] = {NODES[i] for i in at[some : some + self.dice.integers(0, 3)]}
        self.hub.placed(placement(self.held, released))

    def newest(self, job):
        """Of those on the nodes that a job holds."""
        there = [one for one in self.attached if one.job == job and one.node in self.held[job.id]]
        return there[-1] if there else None

    def report(self, node, job, report):
        """An agent says something of a job; whether that counts."""
        self.hub.report(self.agents[node], report)
        counts = node in self.held[job.id]
        self.refused[node] += not counts
        return counts

    def says(self, node, connection, user, own, line):
        message = pb.FromLauncher(connection=connection, user=user, job=own.number)
        message.line = json.dumps(line)
        return self.report(node, own, pb.AgentReport(launcher=message))

    def attach(self):
        """A process of one job attaches for its own or another one, by the user of either."""
        own, node, connection = self.one(JOBS), self.one(NODES), self.one(CONNECTIONS)
        job = own if self.dice.random() < 0.5 else self.one(JOBS)
        user = self.one((own.user, job.user, self.one(JOBS).user))
        line = {"op": "attach", "version": 1, "job": job.id, "nodes": [node], "engine": "join"}
        counts = self.says(node, connection, user, own, line)
        if counts and own == job and user == job.user:
            self.end(node, connection)
            self.attached.append(Attachment(node, connection, job))

    def end(self, node, connection):
        self.attached = [
            one for one in self.attached if (one.node, one.connection) != (node, connection)
        ]

    def leave(self):
        node, connection = self.one(NODES), self.one(CONNECTIONS)
        gone = pb.AgentReport(gone=pb.LauncherGone(connection=connection))
        self.hub.report(self.agents[node], gone)
        self.end(node, connection)

    def answer(self, number):
        """A launcher, or none, reports a result: it counts of the one that speaks for its job."""
        node, connection, own = self.one(NODES), self.one(CONNECTIONS), self.one(JOBS)
        line = {"op": "result", "id": str(number), "outcome": "done", "reason": "", "nodes": [node]}
        if not self.says(node, connection, own.user, own, line):
            return
        here = [one for one in self.attached if (one.node, one.connection) == (node, connection)]
        if here and self.newest(here[0].job) == here[0]:
            self.done.add((here[0].job.id, here[0].job.user, str(number)))

    def measure(self):
        node, job = self.one(NODES), self.one(JOBS)
        spent = pb.MpiTime(job=job.number, node=node, mpi_s=1, wall_s=20)
        self.report(node, job, pb.AgentReport(mpi=spent))

    def judge(self, number):
        for job in JOBS:
            newest = self.newest(job)
            for user in {each.user for each in JOBS}:
                found = self.hub.attached(job.id, user)
                assert (found is not None) == (newest is not None and user == job.user), job
            if newest is not None:
                assert self.hub.attached(job.id, job.user).nodes == (newest.node,)
        results = {(one.job_id, one.user, one.id) for one in self.hub.results()}
        assert results == {one for one in self.done if one[2] == str(number)}
        found = self.hub.reports.refused
        assert {node: found[node, ELSEWHERE] for node in NODES} == {
            node: self.refused[node] for node in NODES
        }


def test_a_job_is_spoken_for_from_within_itself_and_from_its_nodes_only():
    attached = done = refused = 0
    for seed in range(30):
        world = World(seed)
        for number in range(60):
            if world.dice.random() < 0.1:
                world.place()
            world.attach()
            world.one((world.attach, world.leave, world.measure))()
            world.answer(number)
            world.judge(number)
        attached += len(world.attached)
        done += len(world.done)
        refused += world.refused.total()
    assert attached > 60
    assert done > 60
    assert refused > 300
