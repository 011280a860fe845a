# SPDX-License-Identifier: Apache-2.0
"""Limits and FreePools are exchanged between two cycles."""

import pytest

from bridge.errors import ConfigError
from bridge.loop import Decider
from bridge.registry import PRESETS, build
from bridge.rpc.announcements import Announcements
from bridge.rpc.cycles import Cycles
from bridge.rpc.policy_switch import PolicySwitch
from bridge.rpc.session import Session
from tests.unit.rpc.worlds import a_full, a_hello, a_job, a_request

FOUR = {"limits": [{"user": "*", "resource": "cpus", "items": 8}]}
NONE = {"limits": [{"user": "*", "resource": "cpus", "items": 1}]}


@pytest.fixture
def decider():
    return Decider(build(PRESETS["openccs"]))


@pytest.fixture
def cycles(decider):
    made = Cycles(
        decider.decide,
        session=Session(),
        announcements=Announcements(),
        service="test",
        policy=lambda: "openccs",
    )
    made.greet(a_hello())
    return made


def test_rules_come_with_the_policy_that_takes_any(decider, cycles):
    switch = PolicySwitch(PRESETS["openccs"], decider, rules=FOUR)
    assert switch.spec.plan.parameters == {"rules": FOUR}
    switch.replace("easy", cycles)
    assert switch.spec.plan.parameters == {"rules": FOUR}
    switch.replace("openccs", cycles)
    assert decider.policy.plan.rules == FOUR


def test_a_policy_s_own_rules_stand(decider, cycles):
    switch = PolicySwitch(PRESETS["easy"], decider, rules=FOUR)
    switch.replace("{preset: openccs, plan: {name: openccs, rules: {limits: []}}}", cycles)
    assert decider.policy.plan.rules == {"limits": []}


def test_new_rules_say_whom_they_strand(decider, cycles):
    switch = PolicySwitch(PRESETS["openccs"], decider)
    request = a_request(min_nodes=1, max_nodes=1, exclusive=True)
    cycles.run(a_full([a_job("1", request=request), a_job("2", request=request)]))
    assert switch.obey({}, cycles) == []
    told = switch.obey(NONE, cycles)
    assert [sentence.split(":")[0] for sentence in told] == ["job 1", "job 2"]
    assert "limit" in told[0]
    assert decider.policy.plan.rules == NONE


def test_nobody_is_stranded_where_the_policy_knows_no_rules(decider, cycles):
    switch = PolicySwitch(PRESETS["easy"], decider)
    assert switch.obey(NONE, cycles) == []


def test_wrong_rules_change_nothing(decider, cycles):
    switch = PolicySwitch(PRESETS["openccs"], decider, rules=FOUR)
    with pytest.raises(ConfigError, match="limits"):
        switch.obey({"limits": [{"user": "a", "items": "lots"}]}, cycles)
    assert switch.spec.plan.parameters == {"rules": FOUR}


def test_resources_that_the_cluster_does_not_have(decider, cycles):
    rules = {
        "limits": [{"user": "a", "resource": "gpuu", "items": 1}, {"user": "a", "resource": "*"}],
        "free_pools": [
            {"name": "p", "nodes": {"having": "fpga"}, "access": [{"cpus": "< 4", "phi": ">= 1"}]},
            {"name": "q", "nodes": {"names": "n1"}, "access": [{"chunk": {"hbm": ">= 1"}}]},
            {"name": "r", "resource": "mem", "access": [{"time": "< 1h", "jobs": 1}]},
        ],
    }
    switch = PolicySwitch(PRESETS["openccs"], decider)
    switch.obey(rules, cycles)
    cycles.run(a_full([]))
    assert switch.unknown(cycles.published.snapshot) == ("fpga", "gpuu", "hbm", "phi")
    switch.obey(FOUR, cycles)
    assert switch.unknown(cycles.published.snapshot) == ()
    switch.obey(rules, cycles)
    switch.replace("easy", cycles)
    assert switch.unknown(cycles.published.snapshot) == ("fpga", "gpuu", "hbm", "phi")


def test_nothing_that_knows_the_future_is_put_in_force(decider, cycles):
    switch = PolicySwitch(PRESETS["openccs"], decider)
    with pytest.raises(ConfigError, match="'oracle' knows the future"):
        switch.replace("{preset: easy, predict: oracle}", cycles)
    switch.replace("{preset: easy, predict: last-two}", cycles)
    assert switch.name() == "easy+last-two"
