# SPDX-License-Identifier: Apache-2.0
"""The tables of actions on both sides of the wire."""

import re
from pathlib import Path

from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.features import Feature

PLUGIN = Path(__file__).parents[3] / "bridge/shim/actions.c"


def test_the_plugin_offers_nothing_that_the_service_does_not_know():
    text = PLUGIN.read_text()
    table = re.findall(r"ACTION\((\w+)\) = \{\"(\w+)\"", text)
    details = re.search(r"details\[\] = \{(.*?)\}", text).group(1)
    offered = {feature for _, feature in table} | set(re.findall(r'"(\w+)"', details))
    assert offered <= {feature.value for feature in Feature}
    actions = {action for field in pb.Decision.DESCRIPTOR.oneofs_by_name["action"].fields
               for action in [field.name.upper()]}  # fmt: skip
    assert {action for action, _ in table} <= actions
    assert actions - {action for action, _ in table} == {"RESIZE", "QUOTA"}
