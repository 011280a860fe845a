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
    section, description = Water, "Water."


class NoModel(Rules):
    section = 3


GOOD = Extension("water", site=Water, rules=Face(f"{__name__}:Rules"))
BAD = {
    "limits": (GOOD, "the name is taken"),
    "site": (GOOD, "the name is taken"),
    "air": (replace(GOOD, rules=Face(f"{__name__}:NoModel")), "has no model_fields, check"),
    "fire": (replace(GOOD, rules=Face(f"{__name__}:Missing")), "AttributeError"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_section_that_cannot_be_is_left_out_and_named(monkeypatch, name):
    bad, why = BAD[name]
    there = Installed({name: replace(bad, name=name), "water": GOOD, "plain": Extension("plain")})
    monkeypatch.setattr(extension_packages, "installed", lambda: there)
    assert list(site_rules({*PlanningSection.model_fields, *dir(PlanningSection)})) == ["water"]
    (problem,) = there.problems
    assert f"'{name}'" in problem
    assert why in problem


def test_those_that_are_installed_are_fields_and_parts():
    rest = {"name": "rest", "idle": "71W", "max": "250W"}
    section = PlanningSection.model_validate({"power": {"nodes": [rest], "base": "2kW"}})
    assert section.section("power").base == "2kW"
    assert section.section("limits") is section.section("none") is None
    assert section.site().parts["power"].base_w == 2000
    assert len(parse_site({"power": None}).parts) == len(parse_site(None).parts) == 0


@pytest.mark.parametrize("key", ["water", "powers"])
def test_a_section_of_no_extension_is_unknown(key):
    with pytest.raises(ConfigError, match=f"{key}: unknown"):
        parse_site({key: {}})
