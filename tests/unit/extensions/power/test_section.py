# SPDX-License-Identifier: Apache-2.0
import pytest

from bridge.errors import ConfigError
from bridge.extensions.power.corridor.corridor_entries import CalendarEntry
from bridge.extensions.power.corridor.sites import calendar_of
from bridge.extensions.power.rules import Corridor, NodePower, power_of
from bridge.model.rules.node_set import NodeSet
from bridge.planning.site_rules.rules_text import PlanningSection, parse_site

REST = {"name": "rest", "idle": "71W", "max": "250W"}


def read(**power):
    return power_of(parse_site({"power": {"nodes": [REST], **power}}))


def test_node_types_base_and_grace():
    gpu = {"name": "gpu", "nodes": {"having": "gpu"}, "idle": "0.3kW", "max": 2400}
    rules = read(nodes=[gpu, REST], base="12kW", grace="30s")
    assert rules.node_types == (
        NodePower("gpu", NodeSet(having="gpu"), 300, 2400),
        NodePower("rest", NodeSet(), 71, 250),
    )
    assert (rules.base_w, rules.grace_s, rules.corridor) == (12_000, 30, Corridor())
    assert (read().base_w, read().grace_s) == (0, 10)
    assert power_of(parse_site({})) is None


def test_the_calendar_is_apart():
    said = {"power": {"nodes": [REST], "corridor": [{"name": "c", "upper": "2kW"}]}}
    section = PlanningSection.model_validate(said)
    assert calendar_of(section) == (CalendarEntry("c", None, 2000),)
    assert section.plain() == said
    assert calendar_of(PlanningSection.model_validate({})) == ()


@pytest.mark.parametrize(
    ("power", "problem"),
    [
        ({"nodes": []}, "power.nodes: has fewer entries than 1"),
        ({"nodes": [{**REST, "idle": "1kW"}]}, "idle 1kW above max 250W"),
        ({"nodes": [REST, REST]}, "two entries are called 'rest'"),
        ({"nodes": [REST, {**REST, "name": "b"}]}, "'rest' is without nodes, but not the last"),
        ({"nodes": [{**REST, "nodes": {"names": "n1"}}]}, "last entry must be without nodes"),
        ({"base": "much"}, "power.base: must be a power"),
        ({"corridor": [{"upper": "2kW"}, {}]}, "power.corridor.1: must name lower, upper or both"),
        (
            {"corridor": [{"upper": 1, "valid": {"cron": "* * * * *", "length": "1m"}}] * 2},
            "give a smaller cron_days",
        ),
        (
            {
                "corridor": [
                    {"upper": 1, "valid": {"cron": "0 1 * * *", "length": f"{at + 1}m"}}
                    for at in range(101)
                ]
            },
            "more than 100 different times",
        ),
    ],
)
def test_what_makes_no_sense_is_named(power, problem):
    with pytest.raises(ConfigError, match=problem):
        read(**power)
