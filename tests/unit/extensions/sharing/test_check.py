# SPDX-License-Identifier: Apache-2.0
"""What the checker says of guests: where they start, beside whom, and what they leave to others."""

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

from bridge.check.legality import check
from bridge.extensions.sharing.longer_limits import Extensions
from bridge.extensions.sharing.part import having_shared, requeues
from bridge.extensions.sharing.quotas import Quotas
from bridge.extensions.sharing.rules import Coschedule, CoschedulingRules, Scope, with_sharing
from bridge.model.job import Hold
from bridge.model.job_columns import objects
from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.rules.site import Site
from bridge.units import UNPLANNED
from schedbridge_contracts.builders import a_job, a_node, a_partition, a_running_job, a_snapshot

RULES = CoschedulingRules("*", consent=Coschedule.BOTH)
GUEST = {"nodes": 2, "shared": True, "cpus": 2, "mem_mib": 1000, "limit_s": 50, "requeue": True}
HOST = {"nodes": (0, 1), "end_s": 100, "shared": True, "cpus": 4, "mem_mib": 2000, "id": "h"}
WAITS = Reason(ReasonCode.RESOURCES, "waits")


def a_world(guest=None, host=None, jobs=(), running=(), nodes=3, **partition):
    return a_snapshot(
        nodes=nodes,
        partitions=[a_partition(nodes=range(3), **({"shared": True} | partition))],
        running=[a_running_job(**(HOST | (host or {}))), *running],
        jobs=[a_job(**(GUEST | (guest or {}))), *jobs],
    )()


def a_plan(world, nodes=(0, 1), start_s=0, host_id="h", later=None, **changed):
    """The first job starts as a guest; the second is planned (start, nodes) or waits."""
    more = len(world.jobs) - 1
    end_s = start_s + int(world.jobs.time_limit_s[0])
    starts, ends, parts, members = [start_s], [end_s], [0], [list(nodes)]
    for job in range(1, len(world.jobs)):
        at_s, where = later or (UNPLANNED, ())
        planned = at_s != UNPLANNED
        starts.append(at_s)
        ends.append(at_s + int(world.jobs.time_limit_s[job]) if planned else 0)
        parts.append(0 if planned else -1)
        members.append(list(where))
    plan = Plan(
        now_s=0, policy="", job=np.arange(1 + more, dtype=np.int32),
        start_s=np.array(starts, np.int64), end_s=np.array(ends, np.int64),
        partition=np.array(parts, np.int32),
        indptr=np.cumsum([0, *map(len, members)]).astype(np.int64),
        nodes=np.array(list(chain(*members)), np.int32),
        tasks=np.zeros(sum(map(len, members)), np.int32),
        reasons=(None, *(None if at == 0 else WAITS for at in starts[1:])),
    )  # fmt: skip
    plan = having_shared(plan, host_id=objects([host_id] + [""] * more))
    part = {name: changed.pop(name) for name in ("quotas",) if name in changed}
    return having_shared(replace(plan, **changed), **part)


def texts(world, plan, rules=RULES):
    found = check(world, with_sharing(Site(), *() if rules is None else (rules,)), plan)
    return " / ".join(one.text for one in found)


def test_a_guest_on_its_hosts_nodes_is_legal():
    world = a_world()
    assert texts(world, a_plan(world)) == ""


def test_without_a_host_the_same_row_oversubscribes_the_nodes():
    world = a_world()
    assert "oversubscribes a node" in texts(world, a_plan(world, host_id=""))


@pytest.mark.parametrize(
    ("why", "guest", "host", "partition"),
    [
        ("may not be requeued", {"requeue": False}, {}, {}),
        ("has not consented", {"coschedule": Coschedule.HOST}, {}, {}),
        ("job that has not consented", {}, {"coschedule": Coschedule.GUEST}, {}),
        ("has not consented", {"coschedule": Coschedule.NEVER}, {}, {}),
        ("has not consented", {"coschedule": -1}, {}, {}),
        ("another user", {"user": "eve"}, {}, {}),
        ("requested whole", {"shared": False}, {}, {}),
        ("requested whole", {}, {"shared": False}, {}),
        ("generic resources", {"gpus": 1}, {}, {}),
        ("generic resources", {}, {"gpus": 1}, {}),
        ("its memory or its host's is not known", {"mem_mib": 0}, {}, {}),
        ("its memory or its host's is not known", {}, {"mem_mib": 0}, {}),
        ("lack the memory for both", {"mem_mib": 1900}, {}, {}),
        ("lack the memory for both", {}, {"peak_mib": 3000}, {}),
        ("all CPUs", {}, {"cpus": 3}, {}),
        ("a partition without sharing", {}, {}, {"shared": False}),
        ("being resized", {}, {"adapting": True}, {}),
    ],
)
def test_what_no_guest_may_do(why, guest, host, partition):
    world = a_world(guest, host, nodes=[a_node(gpus=2)] * 3, **partition)
    assert why in texts(world, a_plan(world))


def test_the_memory_of_a_host_is_known_by_its_peak():
    world = a_world(host={"mem_mib": 0, "peak_mib": 1500})
    assert texts(world, a_plan(world)) == ""


@pytest.mark.parametrize("nodes", [(0, 2), (2,), (0, 1, 2)])
def test_a_guest_has_nodes_of_its_host_only(nodes):
    world = a_world({"nodes": len(nodes)})
    assert "not now on nodes of its host" in texts(world, a_plan(world, nodes=nodes))


@pytest.mark.parametrize("nodes", [(0,), (1,)])
def test_a_guest_has_some_of_its_hosts_nodes(nodes):
    world = a_world({"nodes": 1})
    assert texts(world, a_plan(world, nodes=nodes)) == ""
    world = a_world({"nodes": 2})
    assert "the wrong number of nodes" in texts(world, a_plan(world, nodes=nodes))


def test_a_guest_whose_node_is_its_hosts_has_room_only_there():
    """The memory of the node counts on which it runs, and the CPUs that are its host's."""
    world = a_world({"nodes": 1}, nodes=[a_node(mem_mib=2500), a_node(), a_node()])
    assert "lack the memory for both" in texts(world, a_plan(world, nodes=(0,)))
    assert texts(world, a_plan(world, nodes=(1,))) == ""


@pytest.mark.parametrize("guest_end_s", [50, 300])
def test_a_host_has_several_guests_on_different_nodes(guest_end_s):
    beside = a_running_job((0,), guest_end_s, shared=True, cpus=1, mem_mib=100, id="g", host_id="h")
    world = a_world({"nodes": 1}, running=[beside])
    assert texts(world, a_plan(world, nodes=(1,))) == ""
    assert "a second guest of h on a node" in texts(world, a_plan(world, nodes=(0,)))


def test_two_jobs_start_beside_one_host_on_different_nodes():
    world = a_world({"nodes": 1}, jobs=[a_job(**(GUEST | {"nodes": 1}))])
    plan = having_shared(a_plan(world, nodes=(0,), later=(0, (1,))), host_id=objects(["h", "h"]))
    assert texts(world, plan) == ""


def test_idle_cpus_of_a_host_that_ended_early_are_not_given_twice():
    """Its guest outlives it on one node; the other is free then, and no CPU before."""
    later = a_job(1, 100, shared=True, cpus=4, mem_mib=100)
    world = a_world({"nodes": 1, "limit_s": 150}, jobs=[later])
    assert texts(world, a_plan(world, nodes=(0,), later=(100, (1,)))) == ""
    assert "oversubscribes a node" in texts(world, a_plan(world, nodes=(0,), later=(100, (0,))))
    assert "oversubscribes a node" in texts(world, a_plan(world, nodes=(0,), later=(99, (1,))))


def test_a_guest_starts_now_or_not_at_all():
    world = a_world()
    plan = a_plan(world, start_s=10, reasons=(WAITS,))
    assert "not now on nodes of its host" in texts(world, plan)


def test_the_site_lets_nobody_share_by_default():
    world = a_world()
    assert "a partition without sharing" in texts(world, a_plan(world), None)


def test_who_says_nothing_is_neither_by_default():
    world = a_world()
    assert "has not consented" in texts(world, a_plan(world), CoschedulingRules("batch"))
    world = a_world({"coschedule": Coschedule.GUEST}, {"coschedule": Coschedule.HOST})
    assert texts(world, a_plan(world), CoschedulingRules("batch")) == ""


def test_host_and_guest_are_in_one_partition():
    world = a_snapshot(
        nodes=3,
        partitions=[a_partition(nodes=range(3), shared=True),
                    a_partition("other", nodes=range(3), shared=True)],
        running=[a_running_job(**HOST)], jobs=[a_job(**(GUEST | {"partitions": (0, 1)}))],
    )()  # fmt: skip
    assert texts(world, a_plan(world)) == ""
    plan = a_plan(world, partition=np.ones(1, np.int32))
    assert "a job of another partition" in texts(world, plan)


def test_scopes():
    world = a_world({"user": "eve"}, {"user": "ann"})
    assert texts(world, a_plan(world), replace(RULES, scope=Scope.ACCOUNT)) == ""
    world = a_world({"user": "eve", "account": "x"}, {"user": "ann", "account": "y"})
    assert "another account" in texts(world, a_plan(world), replace(RULES, scope=Scope.ACCOUNT))
    assert texts(world, a_plan(world), replace(RULES, scope=Scope.ALL)) == ""


def test_a_node_has_one_guest():
    beside = a_running_job((0, 1), 50, shared=True, cpus=1, mem_mib=100, id="g", host_id="h")
    world = a_world(running=[beside])
    assert "a second guest of h" in texts(world, a_plan(world))
    assert "a second guest" in texts(world, a_plan(world, host_id="g"))


def test_two_jobs_do_not_start_on_one_node_beside_its_host():
    world = a_world(jobs=[a_job(**GUEST)])
    plan = a_plan(world, later=(0, (0, 1)), host_id="h")
    plan = having_shared(plan, host_id=objects(["h", "h"]))
    assert "a second guest of h" in texts(world, plan)


def test_a_host_that_does_not_run():
    world = a_world()
    assert "which does not run" in texts(world, a_plan(world, host_id="x"))


def test_the_cpus_that_a_guest_keeps_after_its_host_are_nobody_elses():
    """It outlives its host by 50 s, and a job is planned there when the host ends."""
    later = a_job(2, 100, shared=True, cpus=4, mem_mib=100)
    world = a_world({"limit_s": 150}, jobs=[later])
    assert "oversubscribes a node" in texts(world, a_plan(world, later=(100, (0, 1))))
    assert texts(world, a_plan(world, later=(150, (0, 1)))) == ""
    small = a_job(2, 100, shared=True, cpus=2, mem_mib=100)
    world = a_world({"limit_s": 150}, jobs=[small])
    assert texts(world, a_plan(world, later=(100, (0, 1)))) == ""


def test_other_rules_hold_for_guests_too():
    world = a_world({"hold": Hold.HELD})
    assert "is held, but planned" in texts(world, a_plan(world))
    world = a_world({"features": "fast"})
    assert "outside partition or constraint" in texts(world, a_plan(world))
    world = a_world({"array_tasks": 2, "array_startable": 0})
    assert "started 1 times, 0 allowed" in texts(world, a_plan(world))


def test_a_column_of_hosts_that_is_too_long():
    world = a_world()
    plan = having_shared(a_plan(world), host_id=objects(["h", "h"]))
    assert "hosts for more rows" in texts(world, plan)


def of_guest(world, quota=500, weight=1, ids=("g",)):
    many = len(ids)
    return Quotas(objects(ids), np.full(many, quota), np.full(many, weight))


@pytest.mark.parametrize(
    ("ids", "quota", "weight", "why"),
    [
        (["g"], 500, 1, ""),
        (["1"], 500, 1, ""),
        (["h"], 500, 1, "has a quota but is no guest"),
        (["x"], 500, 1, "has a quota but is no guest"),
        (["g", "g"], 500, 1, "has two quotas"),
        (["g"], -1, 1, "an impossible quota or weight"),
        (["g"], 500, 0, "an impossible quota or weight"),
    ],
)
def test_quotas_are_for_guests(ids, quota, weight, why):
    world = a_world(running=[a_running_job((2,), 60, shared=True, cpus=4, mem_mib=9, id="k"),
                             a_running_job((2,), 50, shared=True, cpus=1, mem_mib=9, id="g",
                                           host_id="k")])  # fmt: skip
    found = texts(world, a_plan(world, quotas=of_guest(world, quota, weight, ids)))
    assert (why in found) if why else not found


def test_columns_of_quotas_of_different_length():
    world = a_world()
    uneven = Quotas(objects(["1"]), np.array([500, 1]), np.array([100]))
    assert "columns of quotas" in texts(world, a_plan(world, quotas=uneven))


def test_requeues_are_for_guests_that_may_be():
    def with_guest(**settings):
        guest = a_running_job((0, 1), 50, shared=True, cpus=1, mem_mib=9, id="g", **settings)
        return a_snapshot(nodes=3, running=[a_running_job(**HOST), guest])()

    plan = Plan.without_rows(0)
    assert texts(with_guest(host_id="h", requeue=True),
                 having_shared(plan, requeues=requeues([("g", "why")]))) == ""  # fmt: skip
    for settings, rows in (
        ({"host_id": "h"}, [("g", "why")]),
        ({"requeue": True}, [("g", "why")]),
        ({"host_id": "h", "requeue": True}, [("g", "why"), ("g", "why")]),
        ({"host_id": "h", "requeue": True}, [("h", "why")]),
    ):
        found = texts(with_guest(**settings), having_shared(plan, requeues=requeues(rows)))
        assert "may not be requeued" in found


@pytest.mark.parametrize(
    ("host", "extensions", "wrong"),
    [
        ({"hosted_s": 30}, {"h": 30}, False),
        ({"hosted_s": 30, "start_s": -20}, {"h": 20}, False),
        ({"hosted_s": 30, "start_s": -20}, {"h": 21}, True),  # longer than it has run
        ({"hosted_s": 30}, {"h": 31}, True),
        ({"hosted_s": 30}, {"h": 0}, True),
        ({"hosted_s": 30}, {"x": 1}, True),
        ({"hosted_s": 0}, {"h": 1}, True),
        ({"hosted_s": 90}, {"h": 80}, True),
        ({"hosted_s": 30, "extendable": False}, {"h": 30}, True),
        ({"hosted_s": 30, "hosted_since_s": 10}, {"h": 30}, False),  # a clock was set back
        ({"hosted_s": 20, "hosted_since_s": -10}, {"h": 30}, False),
        ({"hosted_s": 20, "hosted_since_s": -10, "end_s": 0, "extended_s": 5}, {"h": 25}, False),
        ({"hosted_s": 20, "hosted_since_s": -10, "end_s": 0, "extended_s": 5}, {"h": 26}, True),
    ],
)
def test_limits_are_lengthened_by_the_time_with_guests_at_most(host, extensions, wrong):
    world = a_world(host={"extendable": True, "start_s": -50} | host)
    plan = having_shared(a_plan(world, host_id=""), extensions=Extensions.of(extensions))
    assert ("lengthened" in texts(world, plan)) == wrong


def test_a_limit_is_lengthened_once():
    world = a_world(host={"extendable": True, "start_s": -50, "hosted_s": 30})
    twice = Extensions(objects(["h", "h"]), np.array([10, 20]))
    assert "twice" in texts(world, having_shared(a_plan(world, host_id=""), extensions=twice))
    odd = Extensions(objects(["h"]), np.array([10, 20]))
    plan = having_shared(a_plan(world, host_id=""), extensions=odd)
    assert "different length" in texts(world, plan)
