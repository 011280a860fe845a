# SPDX-License-Identifier: Apache-2.0
"""Tasks get the fewest nodes that hold them, also where rules of the site bind other jobs."""

from bridge.model.rules.site import NO_RULES, Site
from bridge.registry import build, parse_policy
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.builders import a_job, a_node, a_snapshot
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import parse_rules

POOL = {"free_pools": [{"name": "spare", "nodes": {"names": "n6"}}]}
"""A pool of a node that these jobs do not need."""
LIMIT = {"limits": [{"user": "user", "resource": "cpus", "items": 100}]}
"""A limit that counts these jobs, but never binds them."""
SITES = {
    "no rules": NO_RULES,
    "a pool": Site(parse_rules(POOL)),
    "a limit": Site(parse_rules(LIMIT)),
}
PLACES = ("best-fit", "sequential")


def placed(nodes, jobs, place, site):
    """For each job the tasks on each of its nodes; all start now."""
    snapshot = a_snapshot(nodes=nodes, jobs=jobs)()
    policy = build(parse_policy({"preset": "slurm-like", "place": place}))
    plan = Decider(policy, site=SITES[site]).decide(snapshot)
    assert plan.starts_now.tolist() == list(range(len(jobs)))
    pairs = list(zip(plan.nodes.tolist(), plan.tasks.tolist(), strict=True))
    return [dict(pairs[a:b]) for a, b in zip(plan.indptr[:-1], plan.indptr[1:], strict=True)]


def tasks(count, cpus=1):
    return a_job(shared=True, tasks=count, cpus_per_task=cpus, max_nodes=count)


@each(place=PLACES, site=tuple(SITES))
def test_an_idle_node_is_taken_before_the_rest_of_one_in_use_and_of_another(place, site):
    found = placed([a_node(4)] * 6, [tasks(3)] * 3, place, site)
    assert found == [{0: 3}, {1: 3}, {2: 3}]


@each(place=PLACES, site=tuple(SITES))
def test_one_large_node_is_taken_before_two_small_ones_of_the_same_weight(place, site):
    nodes = [a_node(4), a_node(4), a_node(8), a_node(8), a_node(4), a_node(4)]
    assert placed(nodes, [tasks(4, cpus=2)] * 2, place, site) == [{2: 4}, {3: 4}]


@each(place=PLACES, site=tuple(SITES))
def test_two_idle_nodes_are_taken_before_the_rest_of_one_in_use_and_two_others(place, site):
    found = placed([a_node(4)] * 6, [tasks(2), tasks(8), tasks(8)], place, site)
    assert found == [{0: 2}, {1: 4, 2: 4}, {3: 4, 4: 4}]


@each(place=PLACES, site=tuple(SITES))
def test_a_large_node_of_higher_weight_is_not_taken_to_save_small_ones(place, site):
    nodes = [a_node(4, weight=weight) for weight in (1, 1, 2, 2, 3, 3)]
    found = placed([a_node(4, weight=5), *nodes[:2], a_node(8, weight=9), *nodes[4:]],
                   [tasks(6), tasks(3)], place, site)  # fmt: skip
    assert found == [{1: 4, 2: 2}, {2: 2, 4: 1}]


@each(place=PLACES, site=tuple(SITES))
def test_a_node_of_higher_weight_is_taken_only_if_the_others_do_not_suffice(place, site):
    nodes = [a_node(1), a_node(2), a_node(3), a_node(8, weight=2), a_node(1), a_node(8, weight=3)]
    assert placed(nodes, [tasks(5)] * 2, place, site) == [{1: 2, 2: 3}, {0: 1, 4: 1, 3: 3}]
