# SPDX-License-Identifier: Apache-2.0
"""One table says which widths each rule allows: the model, the planner's kernel and the checker."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from bridge.model.job import WidthRule
from schedbridge_contracts.builders import a_job, a_snapshot
from schedbridge_contracts.cycles import check
from tests.unit.policies.test_backfill import nodes, planned

CASES = [
    (WidthRule[rule.strip().upper()], {int(width) for width in widths.split()})
    for line in (Path(__file__).parents[2] / "shim" / "widths.cases").read_text().splitlines()
    if not line.startswith("#")
    for rule, widths in [line.split(";")]
]
RULES = pytest.mark.parametrize(("rule", "allowed"), CASES, ids=[rule.name for rule, _ in CASES])


def test_the_table_has_every_rule():
    assert {rule for rule, _ in CASES} == set(WidthRule)


@RULES
def test_the_model(rule, allowed):
    assert {width for width in range(65) if rule.allows(width)} == allowed
    assert [rule.next_width(minimum) for minimum in range(1, 65) if max(allowed) >= minimum] == [
        min(width for width in allowed if width >= minimum)
        for minimum in range(1, 65)
        if max(allowed) >= minimum
    ]


@pytest.mark.parametrize("root", [99, 100, 101, 1000, 2**17])
def test_large_cubes(root):
    assert WidthRule.CUBIC.allows(root**3)
    assert not WidthRule.CUBIC.allows(root**3 + 1)
    assert WidthRule.CUBIC.next_width(root**3 + 1) == (root + 1) ** 3


@RULES
def test_the_planner(rule, allowed):
    for maximum in range(1, 65):
        widest = max((width for width in allowed if width <= maximum), default=0)
        job = a_job(nodes=1, max_nodes=maximum, width_rule=rule)
        assert len(nodes(planned(a_snapshot(nodes=64, jobs=[job])()), 1)) == widest


@RULES
def test_the_checker(rule, allowed):
    for width in range(1, 65):
        snapshot = a_snapshot(nodes=64, jobs=[a_job(nodes=width)])()
        plan = planned(snapshot)
        ruled = np.array([rule], dtype=np.int8)
        requested = dataclasses.replace(snapshot.jobs, width_rule=ruled)
        found = check(dataclasses.replace(snapshot, jobs=requested), plan)
        assert (not found) == (width in allowed)
