# SPDX-License-Identifier: Apache-2.0
"""A cycle after others plans as if it were the first: what is kept between them changes nothing."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.cycle import run_cycle
from bridge.model.job import Hold, WidthRule
from bridge.model.plan import Plan
from bridge.model.rules.site import NO_RULES
from bridge.model.snapshot import Snapshot
from bridge.model.topology import Topology, regular
from bridge.planning.queue import kept_lowering
from bridge.ports import Policy, State
from bridge.registry import PRESETS, build
from schedbridge_contracts.builders import (
    a_job,
    a_node,
    a_partition,
    a_reservation,
    a_running_job,
    a_snapshot,
)

NODES = 5
NOW_S = 1000
TREES = (
    None,
    None,
    regular(NODES, 2),
    Topology(("s", "t"), np.full(2, -1, np.int32), np.array([0, 0, 1, 1, -1], np.int32)),
)
"""No switches, one fabric, and two fabrics beside a node on no switch."""


@st.composite
def jobs(draw: st.DrawFn) -> a_job:
    """One that waits; ids, versions and names say nothing of what it asks for."""
    nodes = draw(st.integers(1, 3))
    shared = draw(st.booleans())
    return a_job(
        nodes=nodes,
        max_nodes=nodes + draw(st.integers(0, 1)),
        limit_s=draw(st.sampled_from((0, 60, 100))),
        submit_s=draw(st.integers(0, 3)),
        priority=draw(st.integers(1, 3)),
        begin_s=draw(st.sampled_from((0, 1050))),
        hold=draw(st.sampled_from((Hold.NONE,) * 4 + (Hold.BEGIN_TIME, Hold.HELD))),
        partitions=draw(st.sampled_from(((0,), (1,), (0, 1), (1, 0)))),
        shared=shared,
        cpus=draw(st.integers(1, 4)) if shared else 0,
        tasks=draw(st.sampled_from((0, 0, 3))),
        features=draw(st.sampled_from(("", "", "a", "a|b"))),
        required=draw(st.sampled_from(((), (), (2,)))),
        excluded=draw(st.sampled_from(((), (), (0,)))),
        width_rule=draw(st.sampled_from((WidthRule.ANY, WidthRule.ANY, WidthRule.EVEN))),
        array_tasks=draw(st.sampled_from((0, 0, 3))),
        array_startable=2,
        deadline_s=draw(st.sampled_from((0, 0, 0, 1200))),
        min_s=draw(st.sampled_from((0, 0, 0, 0, 30))),
        no_place=draw(st.sampled_from((False, False, False, True))),
        reservation=draw(st.sampled_from((-1, -1, 0))),
        switches=draw(st.sampled_from((0, 0, 0, 1))),
        switches_wait_s=2,
    )


@st.composite
def histories(draw: st.DrawFn) -> list[Snapshot]:
    """Snapshots, each of which is the last one but for a few things."""
    waiting = draw(st.lists(jobs(), max_size=5))
    usable, slow, kept, own = [True] * NODES, 0, draw(st.booleans()), (1,)
    tree = draw(st.sampled_from(TREES))
    found = []
    for second in range(draw(st.integers(2, 5))):
        if waiting and draw(st.booleans()):
            waiting.pop(draw(st.integers(0, len(waiting) - 1)))
        waiting = [*waiting, *draw(st.lists(jobs(), max_size=2))]
        if draw(st.integers(0, 3)) == 0:
            node = draw(st.integers(0, NODES - 1))
            usable[node] = not usable[node]
        if draw(st.integers(0, 4)) == 0:
            slow = 80 - slow
        features = (("a",), ("a", "b"), ("b",), (), ("a",))
        if draw(st.integers(0, 3)) == 0:
            kept = not kept
        if draw(st.booleans()):
            own = draw(st.sampled_from(((1,), (0, 3))))
        if draw(st.integers(0, 5)) == 0:
            tree = draw(st.sampled_from(TREES))
        here = waiting if kept else [replace(job, reservation=-1) for job in waiting]
        holders = draw(st.lists(st.integers(0, NODES - 1), max_size=3, unique=True))
        found.append(
            replace(
                a_snapshot(
                    nodes=[a_node(features=features[at], usable=usable[at]) for at in range(NODES)],
                    jobs=here,
                    running=[
                        a_running_job(
                            nodes=(node,), end_s=NOW_S + 20 * (node + 1), shared=node % 2 == 0
                        )
                        for node in holders
                    ],
                    partitions=[
                        a_partition("p", range(NODES), max_time_s=slow),
                        a_partition("q", range(3), default_time_s=40),
                    ],
                    reservations=[a_reservation(nodes=own, start_s=1040, end_s=1090)]
                    if kept
                    else [],
                    now_s=NOW_S + second,
                    generation=second + 1,
                )(),
                topology=tree,
            )
        )
    return found


def planned(snapshot: Snapshot, state: State, policy: Policy) -> tuple[Plan, State]:
    result = run_cycle(snapshot, NO_RULES, state, policy, np.random.default_rng(0))
    return result.plan, result.state


def said(plan: Plan) -> list[object]:
    """All of a plan, to the bit."""
    columns = (plan.job, plan.start_s, plan.end_s, plan.partition, plan.indptr, plan.nodes)
    return [
        *((column.dtype, column.tolist()) for column in (*columns, plan.tasks)),
        plan.reasons,
        plan.notes,
    ]


@pytest.mark.parametrize("name", ["easy", "conservative", "slurm-like", "openccs", "search"])
@settings(max_examples=60, deadline=None)
@given(history=histories())
def test_a_cycle_after_others_plans_as_the_first_one_would(
    name: str, history: list[Snapshot]
) -> None:
    """Slow: each cycle of each history is planned twice."""
    policy, state = build(PRESETS[name]), State()
    for snapshot in history:
        warm, after = planned(snapshot, state, policy)
        kept, kept_lowering._kept[:] = list(kept_lowering._kept), []
        first, _ = planned(snapshot, state, policy)
        kept_lowering._kept[:] = kept
        assert said(warm) == said(first)
        state = after


@pytest.mark.parametrize("name", ["easy", "conservative", "slurm-like", "openccs"])
@settings(max_examples=60, deadline=None)
@given(history=histories())
def test_a_cycle_that_keeps_nothing_plans_the_same(name: str, history: list[Snapshot]) -> None:
    policy, state = build(PRESETS[name]), State()
    for snapshot in history:
        kept, after = planned(snapshot, state, policy)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("bridge.planning.queue.rows.kept_lowering", lambda _: None)
            nothing, _ = planned(snapshot, state, policy)
        assert said(kept) == said(nothing)
        state = after


def test_a_reservation_that_moves_to_other_nodes_takes_its_jobs_along() -> None:
    policy = build(PRESETS["conservative"])
    for nodes in ((1,), (0, 3), (1,)):
        snapshot = a_snapshot(
            nodes=NODES,
            jobs=[a_job(reservation=0)],
            reservations=[a_reservation(nodes=nodes, start_s=1040, end_s=1090)],
            now_s=NOW_S,
        )()
        plan, _ = planned(snapshot, State(), policy)
        assert plan.nodes.tolist() == [nodes[0]]
