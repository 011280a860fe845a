# SPDX-License-Identifier: Apache-2.0
import pytest

from bridge.errors import ConfigError
from bridge.registry import PRESETS, build, choices, describe, parse_policy, summaries
from schedbridge_contracts.crosses import each


@each(name=[*PRESETS])
def test_every_preset_is_built_and_read_back(name):
    spec = parse_policy(name)
    assert build(spec).name == name
    assert parse_policy(describe(spec)) == spec


@pytest.mark.parametrize(
    ("value", "key", "says"),
    [
        ("nonsense", "policy", "slurm-like"),
        (3, "policy", "mapping"),
        ({"ordr": "fcfs"}, "policy.ordr", "unknown key"),
        ({"order": "lifo"}, "policy.order", "fcfs"),
        ({"order": 3}, "policy.order", "name"),
        ({"preset": "best-ever"}, "policy.preset", "slurm-like"),
        ({"plan": {"name": "easy", "dept": 2}}, "policy.plan.dept", "depth"),
        ({"plan": {"name": "easy", "depth": "deep"}}, "policy.plan.depth", "int"),
        ({"plan": {"name": "easy", "depth": -1}}, "policy.plan.depth", "0 or more"),
        ({"plan": {"name": "easy", "depth": True}}, "policy.plan.depth", "int"),
        ({"place": {"name": "compact", "effort": 2**31}}, "policy.place.effort", "between"),
        ({"plan": {"name": "window", "period_s": 10**30}}, "policy.plan.period_s", "between"),
        ({"order": {"name": "fcfs", "x": 1}}, "policy.order.x", "none"),
    ],
)
def test_a_wrong_policy_says_what_where_and_what_there_is(value, key, says):
    with pytest.raises(ConfigError) as caught:
        parse_policy(value)
    assert caught.value.key == key
    assert says in caught.value.problem


def test_any_stage_can_be_exchanged():
    spec = parse_policy({"preset": "easy", "plan": {"name": "conservative"}})
    assert (spec.order.name, spec.plan.name) == ("fcfs", "conservative")


def test_parameters_beside_a_preset_need_no_name():
    spec = parse_policy({"preset": "search", "plan": {"budget_ms": 20}})
    assert spec.plan.name == "search"
    assert build(spec).plan.budget_ms == 20
    assert parse_policy(describe(spec)) == spec
    with pytest.raises(ConfigError, match=r"policy\.plan\.budget_ms"):
        parse_policy({"preset": "search", "plan": {"budget_ms": -4}})
    with pytest.raises(ConfigError, match="with a name"):
        parse_policy({"plan": {"depth": 3}})


def test_choices_name_every_stage():
    assert set(choices()) == {
        "preset",
        "order",
        "plan",
        "place",
        "predict",
        "reshape",
        "share",
    }


def test_a_site_chooses_from_few_presets_and_each_has_a_line():
    assert set(summaries()) <= set(PRESETS)
    assert len(summaries()) <= 12
    assert {"recommended", "slurm-like"} <= set(summaries())
    assert not {"pcp19", "asax"} & set(summaries())
