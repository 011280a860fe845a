# SPDX-License-Identifier: Apache-2.0
"""Sections of `planning:` that extensions bring: which are fields, and what becomes of the rest."""

from dataclasses import replace

import pytest
from pydantic import BaseModel

from bridge import extension_packages
from bridge.errors import ConfigError
from bridge.extension_packages import Installed, site_rules
from bridge.extensions.port import Extension, Face
from bridge.planning.site_rules.rules_text import PlanningSection, parse_site


class Water(BaseModel):
    litres: int = 0

    def check(self, zone):
        pass

    def repeated(self):
        return set()

    def openings(self):
        return 0

    def part(self):
        return None


class Rules:
    key, section, default, description = "water", Water, None, "Water."


class NoModel(Rules):
    section = 3


class Limits(Rules):
    key = "limits"


class Method(Rules):
    key = "site"


class Words(Rules):
    key = "two words"


GOOD = Extension("water", site=Water, rules=Face(f"{__name__}:Rules"))
BAD = {
    "Rules": "the name 'water' is taken",
    "Limits": "the name 'limits' is taken",
    "Method": "the name 'site' is taken",
    "Words": "must be a word",
    "NoModel": "has no model_fields, check",
    "Missing": "AttributeError",
}


@pytest.mark.parametrize("rules", BAD)
def test_a_section_that_cannot_be_is_left_out_and_named(monkeypatch, rules):
    bad = replace(GOOD, name="air", rules=Face(f"{__name__}:{rules}"))
    there = Installed({"water": GOOD, "air": bad, "plain": Extension("plain")})
    monkeypatch.setattr(extension_packages, "installed", lambda: there)
    assert list(site_rules({*PlanningSection.model_fields, *dir(PlanningSection)})) == ["water"]
    (problem,) = there.problems
    assert "'air'" in problem
    assert BAD[rules] in problem


def test_those_that_are_installed_are_fields_and_parts():
    rest = {"name": "rest", "idle": "71W", "max": "250W"}
    section = PlanningSection.model_validate({"power": {"nodes": [rest], "base": "2kW"}})
    assert section.section("power").base == "2kW"
    assert section.section("limits") is section.section("none") is None
    assert section.site().parts["power"].base_w == 2000
    assert len(parse_site({"power": None}).parts) == len(parse_site(None).parts) == 0


def test_a_section_may_be_a_list_and_have_another_name_than_its_extension():
    entries = [{"partition": "a"}, {"partition": "b", "scope": "all"}]
    section = PlanningSection.model_validate({"coscheduling": entries})
    assert section.plain() == {"coscheduling": entries}
    assert [each.partition for each in section.site().parts["sharing"].partitions] == ["a", "b"]
    for nothing in ({"coscheduling": None}, {"coscheduling": []}):
        section = PlanningSection.model_validate(nothing)
        assert section.plain() == {}
        assert not section.site().parts
    with pytest.raises(
        ConfigError, match=r"coscheduling.1.quota: unknown key; there are partition"
    ):
        parse_site({"coscheduling": [{"partition": "a"}, {"partition": "b", "quota": 1}]})
    with pytest.raises(ConfigError, match="coscheduling: must be a list, not 5"):
        parse_site({"coscheduling": 5})


@pytest.mark.parametrize("key", ["water", "powers"])
def test_a_section_of_no_extension_is_unknown(key):
    with pytest.raises(ConfigError, match=f"{key}: unknown"):
        parse_site({key: {}})
