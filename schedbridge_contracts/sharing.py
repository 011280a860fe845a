# SPDX-License-Identifier: Apache-2.0
"""Worlds in which jobs may share nodes, and the rules of sharing once more, written naively."""

from dataclasses import replace

import numpy as np

from bridge.extensions.sharing.part import shared_of
from bridge.extensions.sharing.rules import (
    Coschedule,
    CoschedulingRules,
    Scope,
    sharing_rules,
    with_sharing,
)
from bridge.model.rules.site import Site
from schedbridge_contracts.builders import a_job, a_partition, a_running_job, a_snapshot

SHARING = with_sharing(Site(), CoschedulingRules("*", consent=Coschedule.BOTH))
NOW_S = 1000


def a_host(nodes=(0,), **settings):
    """A running job that holds all CPUs of its nodes and is measured."""
    given = {
        "shared": True, "cpus": 4, "mem_mib": 1000, "id": f"h{nodes[0]}", "start_s": NOW_S - 100,
        "end_s": NOW_S + 1000, "name": "host", "cpu_s": 100.0, "busy_cpus": 1.0, "peak_mib": 500,
        "measured_s": NOW_S, "extendable": True,
    } | settings  # fmt: skip
    return a_running_job(nodes, **given)


def a_guest(nodes=(0,), **settings):
    """A running guest of `a_host` on the same nodes."""
    return a_host(
        nodes,
        **({"id": f"g{nodes[0]}", "host_id": f"h{nodes[0]}", "name": "guest", "requeue": True,
            "cpus": 2, "start_s": NOW_S - 50} | settings),
    )  # fmt: skip


def a_waiting_job(nodes=1, **settings):
    """A job that may be a guest."""
    given = {"shared": True, "cpus": 2, "mem_mib": 500, "limit_s": 300, "requeue": True}
    return a_job(nodes, **(given | settings))


def a_world(running, jobs=(), nodes=2, now_s=NOW_S):
    """Nodes of 4 CPUs and 4096 MiB in one partition that can be shared."""
    return a_snapshot(
        nodes=nodes, now_s=now_s, running=running, jobs=jobs,
        partitions=[a_partition(nodes=range(nodes), shared=True)],
    )()  # fmt: skip


def earlier(world, by_s):
    """The same running jobs some time ago, at the rates they have now; nobody waits."""
    running = world.running
    used = running.cpu_s >= 0
    running = replace(
        running,
        cpu_s=np.where(used, running.cpu_s - by_s * np.maximum(running.busy_cpus, 0), -1.0),
        measured_s=np.where(running.measured_s > 0, running.measured_s - by_s, 0),
    )
    jobs = world.jobs.rows(np.arange(0))
    return replace(world, now_s=world.now_s - by_s, running=running, jobs=jobs)


def random_sharing_world(seed):
    """Hosts, guests, neighbours, and waiting jobs of all kinds; and the site's rules.

    In every other world few things keep jobs from sharing: in most of the rest something does.
    """
    rng = np.random.default_rng(seed)
    odd = 0.08 if seed % 2 else 0.4

    def pick(usual, *others):
        return others[rng.integers(len(others))] if rng.random() < odd else usual

    users, accounts = ["ann", "ann", "bob"], ["x", "x", "x", "y", ""]
    nodes = int(rng.integers(2, 7))
    running, at = [], 0
    while at < nodes:
        held = tuple(range(at, min(at + int(rng.integers(1, 4)), nodes)))
        at += len(held)
        if rng.random() < 0.1:
            continue
        host = a_host(
            held, user=rng.choice(users), account=rng.choice(accounts), cpus=pick(4, 2),
            mem_mib=pick(500, 0, 2000, 3900), coschedule=pick(0, 1, 2, 3, 4),
            shared=pick(True, False), busy_cpus=pick(0.5, -1.0, 0.2, 3.5),
            end_s=NOW_S + int(rng.integers(1, 400)), peak_mib=pick(0, 800),
            memory_stall=pick(0.0, -1.0, 0.5), name=f"app{rng.integers(3)}",
        )  # fmt: skip
        running.append(host)
        if host.shared and host.cpus == 4 and rng.random() < 0.3:
            for part in [held] if rng.random() < 0.5 else [(node,) for node in held]:
                if len(part) < len(held) and rng.random() < 0.4:
                    continue
                running.append(
                    a_guest(part, end_s=NOW_S + int(rng.integers(1, 400)), user=host.user,
                            account=host.account, requeue=pick(True, False), host_id=host.id)
                )  # fmt: skip
    jobs = [
        a_waiting_job(
            pick(1, 2, 3), user=rng.choice(users), account=rng.choice(accounts),
            mem_mib=pick(100, 0, 1500), coschedule=pick(0, 1, 2, 3, 4),
            limit_s=int(rng.integers(1, 500)), requeue=pick(True, False),
            shared=pick(True, False), cpus=int(rng.integers(1, 5)),
            gpus=0, tasks=0, array_tasks=pick(0, 3), array_startable=1,
        )
        for _ in range(int(rng.integers(0, 9)))
    ]  # fmt: skip
    rules = CoschedulingRules(
        pick("*", "batch"),
        scope=Scope(str(rng.choice(list(Scope)))),
        consent=pick(Coschedule.BOTH, Coschedule.NEVER),
        memory_margin=pick(0.05, 0.0, 0.3),
    )
    return a_world(running, jobs, nodes), with_sharing(Site(), rules)


def naive_sharing_problem(world, site, plan):
    """The first rule of sharing that a plan breaks, in plain loops; None: it breaks none."""
    rules, running, jobs = sharing_rules(site)[0], world.running, world.jobs
    means = {Coschedule.SITE: rules.consent}
    row_of = {job_id: row for row, job_id in enumerate(running.id.tolist())}
    taken = []
    for row, host in enumerate(running.host_id.tolist()):
        if host:
            taken += running.nodes[running.indptr[row] : running.indptr[row + 1]].tolist()
    for row in range(len(plan)):
        host_id = shared_of(plan).host_of(row)
        if not host_id:
            continue
        host, job = row_of[host_id], plan.job[row]
        shared = plan.nodes_of(row).tolist()
        taken += shared
        nodes = running.nodes[running.indptr[host] : running.indptr[host + 1]].tolist()
        if not shared or not set(shared) <= set(nodes) or plan.start_s[row] != world.now_s:
            return "not on nodes of its host, now"
        if not jobs.min_nodes[job] <= len(shared) <= jobs.max_nodes[job]:
            return "another width"
        if running.host_id[host] or running.exclusive[host] or jobs.exclusive[job]:
            return "not to be shared"
        says = means.get(int(running.coschedule[host]), int(running.coschedule[host]))
        if says not in (Coschedule.HOST, Coschedule.BOTH):
            return "the host has not consented"
        says = means.get(int(jobs.coschedule[job]), int(jobs.coschedule[job]))
        if says not in (Coschedule.GUEST, Coschedule.BOTH) or not jobs.requeue[job]:
            return "the guest has not consented, or cannot be requeued"
        if rules.scope is Scope.USER and running.user[host] != jobs.user[job]:
            return "of two users"
        account = running.account[host]
        if rules.scope is Scope.ACCOUNT and not (account and account == jobs.account[job]):
            return "not of one account"
        for entry, node in zip(
            range(running.indptr[host], running.indptr[host + 1]), nodes, strict=True
        ):
            cpus, memory = world.nodes.capacity[node, :2].tolist()
            held = max(int(running.use[entry, 1]), int(running.peak_mib[host]))
            want = int(jobs.per_node[job, 1])
            beside = [
                int(running.use[other, 0])
                for guest in range(len(running))
                if running.host_id[guest] == host_id
                for other in range(running.indptr[guest], running.indptr[guest + 1])
                if running.nodes[other] == node
            ]  # what the guest on it keeps after its host is counted there
            if running.use[entry, 0] + sum(beside) < cpus:
                return "not the whole node"
            if node not in shared:
                continue
            if not held or not want:
                return "memory unknown"
            if held + want + rules.memory_margin * memory > memory:
                return "too little memory"
    if len(taken) != len(set(taken)):
        return "two guests on one node"
    guests = {job_id for job_id, host in zip(running.id, running.host_id, strict=True) if host}
    starting = {jobs.id[plan.job[row]] for row in range(len(plan)) if shared_of(plan).host_of(row)}
    if not set(shared_of(plan).quotas.id.tolist()) <= guests | starting:
        return "a quota of a job that is no guest"
    may = {job_id for job_id in guests if running.requeue[row_of[job_id]]}
    if not set(shared_of(plan).requeues.id.tolist()) <= may:
        return "requeued, and must not be"
    return None
