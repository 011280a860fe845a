# SPDX-License-Identifier: Apache-2.0
"""Jobs that can run nowhere else than where the controller refused to start them."""

from bridge.model.reasons import Reason, ReasonCode
from bridge.model.rules.limits import Access, ConsumerKind, FreePool, Items, Limit, Rules
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import Site
from bridge.rpc.pb import scheduler_pb2 as pb
from tests.unit.rpc.test_offers import choosing_cycles, results, starts
from tests.unit.rpc.worlds import NOW_S, a_delta, a_full, a_job, a_node, a_request, some_nodes


def pool(user, *nodes):
    access = (Access(users=frozenset({user})),)
    return FreePool(f"{user}s", nodes=NodeSet(names=nodes), access=access)


def one(job_id, user, **settings):
    settings = {"min_nodes": 1, "max_nodes": 1} | settings
    return a_job(job_id, user=user, request=a_request(**settings))


def reasons(cycles):
    """Why jobs do not start in the last cycle."""
    snapshot, plan = cycles.published.snapshot, cycles.published.plan
    rows = zip(snapshot.jobs.id[plan.job], plan.reasons, strict=True)
    return {job_id: reason for job_id, reason in rows if reason is not None}


def retried(cycles, reply, number):
    """Refuses all starts; starts and reasons of the retry, and the reply a second later."""
    now_s, base = NOW_S + 40 * number, cycles.session.generation
    cycles.run(a_delta(base, fates=results(reply), now_s=now_s))
    later = cycles.run(a_delta(base + 1, now_s=now_s + 35))
    told = reasons(cycles)
    assert later.wake_after_s == 1 or not told
    return starts(later), told, cycles.run(a_delta(base + 2, now_s=now_s + 36))


def test_nodes_kept_for_others_are_no_substitute():
    """Each of two jobs may use the nodes of one of two pools, and no others."""
    site = Site(Rules(free_pools=(pool("ann", "n0"), pool("bob", "n1"))))
    cycles = choosing_cycles(site, features=("start",))
    reply = cycles.run(a_full([one("1", "ann"), one("2", "bob")], some_nodes(2)))
    for number in range(1, 4):
        assert starts(reply) == [("1", "n0", ""), ("2", "n1", "")], number
        found, told, reply = retried(cycles, reply, number)
        assert not found
        assert told == {
            job_id: Reason(
                ReasonCode.REFUSED,
                f"could not be started on {node} (no) and is tried there again; elsewhere: "
                f"has no access to nodes that it needs: FreePool {other}s keeps nodes for "
                f"user {other}",
            )
            for job_id, node, other in (("1", "n0", "bob"), ("2", "n1", "ann"))
        }


def test_another_node_of_its_pool_is_one():
    """The first job has a second node in its pool, and gets it; the other one has none."""
    site = Site(Rules(free_pools=(pool("ann", "n0", "n2"), pool("bob", "n1"))))
    cycles = choosing_cycles(site, features=("start",))
    reply = cycles.run(a_full([one("1", "ann"), one("2", "bob")], some_nodes(3)))
    assert starts(reply) == [("1", "n0", ""), ("2", "n1", "")]
    found, told, reply = retried(cycles, reply, 1)
    assert found == [("1", "n2", "")]
    assert list(told) == ["2"]
    assert ("2", "n1", "") in starts(reply)


def test_whole_nodes_beyond_a_limit_are_no_substitute():
    """Of two jobs of whole nodes one may not have a large one; the other one gets it."""
    site = Site(Rules(limits=(Limit(ConsumerKind.USER, "ann", "cpus", Items(4)),)))
    cycles = choosing_cycles(site, features=("start",))
    jobs = [one("1", "ann", exclusive=True), one("2", "bob", exclusive=True)]
    nodes = [a_node(f"n{at}", cpus=cpus) for at, cpus in enumerate((4, 8, 8))]
    reply = cycles.run(a_full(jobs, nodes))
    assert starts(reply) == [("1", "n0", ""), ("2", "n1", "")]
    found, told, reply = retried(cycles, reply, 1)
    assert found == [("2", "n0", "")]
    assert told["1"].text.startswith("could not be started on n0 (no) and is tried there again")


def test_partitions_whose_nodes_are_kept_for_others_are_no_substitute():
    """Two jobs name two partitions, of which each may use one: its own pool."""
    site = Site(Rules(free_pools=(pool("ann", "n0"), pool("bob", "n1"))))
    cycles = choosing_cycles(site, features=("start",))
    both = {"partitions": ["a", "b"]}
    reply = cycles.run(
        a_full(
            [one("1", "ann", **both), one("2", "bob", **both)], some_nodes(2),
            partitions=pb.Partitions(
                items=[pb.Partition(name=name, nodes=nodes, up=True)
                       for name, nodes in (("a", "n0"), ("b", "n1"))]
            ),
        )
    )  # fmt: skip
    for number in range(1, 3):
        assert starts(reply) == [("1", "n0", ""), ("2", "n1", "")], number
        found, told, reply = retried(cycles, reply, number)
        assert not found
        assert {reason.code for reason in told.values()} == {ReasonCode.REFUSED}
