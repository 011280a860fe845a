# SPDX-License-Identifier: Apache-2.0
"""The tables of actions on both sides of the wire."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from bridge.rpc.controller.actions import actions, decided
from bridge.rpc.pb import scheduler_pb2 as pb

PLUGIN = (Path(__file__).parents[3] / "bridge/shim/decisions/actions.c").read_text()
TABLE = re.findall(r"ACTION\((\w+)\) = \{\"(\w+)\", (\w+), \w+\}", PLUGIN)


def test_the_table_has_every_action_of_the_contract():
    assert actions().keys() == {
        field.name for field in pb.Decision.DESCRIPTOR.oneofs_by_name["action"].fields
    }


@pytest.mark.parametrize(("name", "feature", "subject"), TABLE)
def test_the_plugin_means_the_same_by_an_action(name, feature, subject):
    action = actions()[name.lower()]
    assert (action.feature, action.of.name) == (feature, subject)


def test_the_plugin_offers_nothing_that_the_service_does_not_know():
    details = re.search(r"details\[\] = \{(.*?)\}", PLUGIN).group(1)
    offered = {feature for _, feature, _ in TABLE} | set(re.findall(r'"(\w+)"', details))
    assert offered <= set(decided())


def test_what_the_plugin_cannot_do_yet():
    """Shorten this set with the plugin's table."""
    assert {name.upper() for name in actions()} - {name for name, *_ in TABLE} == {"QUOTA"}


@pytest.mark.parametrize("module", sorted({action.made_by for action in actions().values()}))
def test_what_decides_an_action_is_there(module):
    assert find_spec(module) is not None
