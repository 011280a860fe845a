# SPDX-License-Identifier: Apache-2.0
"""Whichever nodes a controller chooses for a planned start, every rule of the site still holds."""

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.check.site_rules import broken_rules
from bridge.model.plan import Plan
from bridge.model.rules.limits import ConsumerKind, FreePool, Items, Limit, Rules
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import Site
from bridge.planning.eligibility.controller_choice import Chooser, ControllerChoice
from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.builders import a_job, a_node, a_running_job, a_snapshot

NODES = 5
TRIES = 8
"""Choices of a controller for each start."""

items = st.builds(Items, st.integers(4, 28))
limits = st.builds(
    Limit, st.just(ConsumerKind.USER), st.sampled_from(["*", "user"]), st.just("cpus"), items
)
pools = st.one_of(
    st.builds(FreePool, st.just("items"), resource=st.just("cpus"), keep=items),
    st.builds(
        FreePool,
        st.just("nodes"),
        nodes=st.sampled_from([NodeSet(names=("n1", "n3")), NodeSet(features="fast")]),
    ),
)
rules = st.builds(
    Rules,
    limits=st.lists(limits, max_size=1).map(tuple),
    free_pools=st.lists(pools, max_size=2).map(tuple),
)
nodes = st.builds(a_node, cpus=st.sampled_from([4, 8]), features=st.sampled_from([(), ("fast",)]))
jobs = st.builds(
    lambda width, cpus, **more: a_job(
        nodes=width, max_nodes=width, cpus=cpus, controller_chooses=True, **more
    ),
    width=st.integers(1, 2),
    cpus=st.integers(1, 4),
    shared=st.booleans(),
    limit_s=st.sampled_from([10, 60]),
)
running = st.lists(
    st.builds(a_running_job, st.integers(0, NODES - 1).map(lambda node: (node,)), st.just(30)),
    max_size=1,
)


def moved(plan: Plan, row: int, choice: ControllerChoice, dice: random.Random) -> Plan:
    """The plan with one row on as many nodes of a choice."""
    where, partition = plan.nodes.copy(), plan.partition.copy()
    chosen = sorted(dice.sample(choice.nodes.tolist(), len(plan.nodes_of(row))))
    where[plan.indptr[row] : plan.indptr[row + 1]] = chosen
    partition[row] = choice.partition
    return replace(plan, nodes=where, partition=partition)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(nodes, min_size=NODES, max_size=NODES),
    st.lists(jobs, min_size=1, max_size=2),
    running,
    rules,
    st.sampled_from(["slurm-like", "openccs"]),
)
def test_no_choice_of_the_controller_breaks_a_rule(there, waiting, held, given_rules, preset):
    snapshot = a_snapshot(nodes=there, jobs=waiting, running=held)()
    site, dice = Site(given_rules), random.Random(1)
    plan = Decider(build(PRESETS[preset]), site=site).decide(snapshot)
    assert broken_rules(snapshot, site, plan) == []
    chooser = Chooser(snapshot, site, plan)
    for row in plan.starts_now.tolist():
        choice = chooser.start(row)
        if choice is None:
            continue
        for _ in range(TRIES):
            assert broken_rules(snapshot, site, moved(plan, row, choice, dice)) == []
