# SPDX-License-Identifier: Apache-2.0
"""Limits and FreePools are exchanged between two cycles."""

import dataclasses

import numpy as np
import pytest

from bridge.errors import ConfigError
from bridge.model.node import CPUS
from bridge.planning.site_rules.rules_text import PlanningSection, parse_site
from bridge.ports import Preference, Selection
from bridge.registry import PRESETS, build
from bridge.rpc.controller.policy_switch import PolicySwitch
from bridge.safe_cycle.decider import Decider
from tests.unit.rpc.worlds import (
    NOW_S,
    a_delta,
    a_full,
    a_hello,
    a_job,
    a_node,
    a_request,
    a_running_job,
    some_cycles,
)

FOUR = {"limits": [{"user": "*", "resource": "cpus", "items": 8}]}
NONE = {"limits": [{"user": "*", "resource": "cpus", "items": 1}]}


def section(rules):
    return PlanningSection.model_validate(rules)


@pytest.fixture
def decider():
    return Decider(build(PRESETS["openccs"]))


@pytest.fixture
def cycles(decider):
    return some_cycles(decider.decide, "openccs")


def test_the_site_s_rules_stand_under_any_policy(decider, cycles):
    switch = PolicySwitch(PRESETS["openccs"], decider)
    switch.obey(section(FOUR), cycles)
    for policy in ("easy", "openccs"):
        switch.replace(policy, cycles)
        assert decider.site == parse_site(FOUR)
        assert switch.conditions().site == parse_site(FOUR)


@dataclasses.dataclass(frozen=True)
class SmallestFirst:
    """A place policy of a site; it states by which nodes it ranks."""

    ranks_by_size: bool

    def preference(self, snapshot):
        return Preference(Selection.SEQUENTIAL, snapshot.nodes.capacity[:, CPUS].astype(np.int32))


def test_where_a_policy_ranks_nodes_by_size_alone_the_controller_chooses():
    """Whatever it is called, from the cycle after it was put in force; two jobs of whole nodes."""
    nodes = [a_node(f"n{at}", cpus=cpus) for at, cpus in enumerate((8, 4, 4, 8))]
    request = a_request(min_nodes=1, max_nodes=1, exclusive=True)
    report = a_full([a_job("1", request=request), a_job("2", request=request)], nodes)
    for states_so, choices in ((True, ["n[0-1,3]", "n[0,2-3]"]), (False, ["", ""])):
        policy = dataclasses.replace(build(PRESETS["easy"]), place=SmallestFirst(states_so))
        switch = PolicySwitch(PRESETS["easy"], decider := Decider(policy))
        cycles = some_cycles(
            decider.decide, "easy", places_by_size=switch.places_by_size,
            hello=a_hello(features=["start", "choice"]),
        )  # fmt: skip
        assert [each.start.choice for each in cycles.run(report).decisions] == choices
        switch.replace("easy", cycles)
        assert not switch.places_by_size()
        switch.replace("slurm-like", cycles)
        assert switch.places_by_size()


def test_a_policy_that_states_rules_is_told_where_they_belong(decider, cycles):
    switch = PolicySwitch(PRESETS["easy"], decider)
    for rules in ("rules: {limits: []}", "protect: {gpu: {cpus: 2}}"):
        with pytest.raises(ConfigError, match="belong in the section 'planning'"):
            switch.replace(f"{{preset: openccs, plan: {{name: openccs, {rules}}}}}", cycles)
    assert switch.name() == "easy"


def test_new_rules_say_whom_they_strand(decider, cycles):
    switch = PolicySwitch(PRESETS["openccs"], decider)
    request = a_request(min_nodes=1, max_nodes=1, exclusive=True)
    cycles.run(a_full([a_job("1", request=request), a_job("2", request=request)]))
    assert switch.obey(section({}), cycles) == []
    told = switch.obey(section(NONE), cycles)
    assert [sentence.split(":")[0] for sentence in told] == ["job 1", "job 2"]
    assert "limit" in told[0]
    assert decider.site == parse_site(NONE)
    assert switch.planning == section(NONE).plain()
    assert "# planning:\n#   limits:\n#   - user: '*'\n" in switch.yaml()
    switch.replace(switch.yaml(), cycles)


def test_resources_that_the_cluster_does_not_have(decider, cycles):
    rules = {
        "limits": [{"user": "a", "resource": "gpuu", "items": 1}, {"user": "a", "resource": "*"}],
        "free_pools": [
            {"name": "p", "nodes": {"having": "fpga"}, "access": [{"cpus": "< 4", "phi": ">= 1"}]},
            {"name": "q", "nodes": {"names": "n1"}, "access": [{"chunk": {"hbm": ">= 1"}}]},
            {"name": "r", "resource": "mem", "access": [{"time": "< 1h", "jobs": 1}]},
        ],
        "protect": {"npu": {"cpus": 1, "mem": 10}},
    }
    switch = PolicySwitch(PRESETS["openccs"], decider)
    switch.obey(section(rules), cycles)
    cycles.run(a_full([]))
    assert switch.unknown(cycles.published.snapshot) == ("fpga", "gpuu", "hbm", "npu", "phi")
    switch.obey(section(FOUR), cycles)
    assert switch.unknown(cycles.published.snapshot) == ()
    switch.obey(section(rules), cycles)
    switch.replace("easy", cycles)
    assert switch.unknown(cycles.published.snapshot) == ("fpga", "gpuu", "hbm", "npu", "phi")


def test_nothing_that_knows_the_future_is_put_in_force(decider, cycles):
    switch = PolicySwitch(PRESETS["openccs"], decider)
    with pytest.raises(ConfigError, match="'oracle' knows the future"):
        switch.replace("{preset: easy, predict: oracle}", cycles)
    switch.replace("{preset: easy, predict: last-two}", cycles)
    assert switch.name() == "easy+last-two"


@pytest.mark.parametrize(("through", "first"), [([], "1"), (["easy", "openccs"], "2")])
def test_what_was_announced_binds_no_longer_after_another_policy(decider, cycles, through, first):
    switch = PolicySwitch(PRESETS["openccs"], decider)
    request = a_request(min_nodes=4, max_nodes=4, exclusive=True)
    busy = a_running_job("0", "n[0-3]", end_s=NOW_S + 50)
    cycles.run(a_full([busy, a_job("1", request=request, priority=1)]))
    for policy in through:
        switch.replace(policy, cycles)
    cycles.run(a_delta(1, jobs=[a_job("2", request=request, priority=9)]))
    snapshot, plan = cycles.published.snapshot, cycles.published.plan
    assert snapshot.jobs.id[plan.job[plan.start_s.argmin()]] == first


class FailsWith:
    """A plan stage that fails while a certain job waits."""

    def __init__(self, job_id):
        self.job_id = job_id

    def plan(self, snapshot, order, preference, context):
        assert self.job_id not in snapshot.jobs.id
        return build(PRESETS["easy"]).plan.plan(snapshot, order, preference, context)


def test_whom_a_policy_failed_on_is_planned_by_the_next_one(decider, cycles):
    switch = PolicySwitch(PRESETS["easy"], decider)
    decider.exchange(dataclasses.replace(build(PRESETS["easy"]), plan=FailsWith("1")))
    first = cycles.run(a_full([a_job("1"), *(a_job(str(at)) for at in range(2, 6))]))
    assert "1" not in [d.job_id for d in first.decisions if d.WhichOneof("action") == "start"]
    switch.replace("easy", cycles)
    cycles.run(a_delta(1))
    snapshot, plan = cycles.published.snapshot, cycles.published.plan
    assert "1" in snapshot.jobs.id[plan.job[plan.starts_now]]
