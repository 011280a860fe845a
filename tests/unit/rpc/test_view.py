# SPDX-License-Identifier: Apache-2.0
"""A cycle that went to the operators' process is the same there."""

import dataclasses

import numpy as np
import pytest

from bridge.model.reasons import Reason, ReasonCode
from bridge.registry import PRESETS, build
from bridge.rpc.controller.cycles import Published
from bridge.rpc.operators.view import pack, unpack
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.state.announced_starts import StartRecords
from schedbridge_contracts.alike import assert_alike
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import Memory, run
from schedbridge_contracts.worlds import random_world


def there(value):
    """A value after its way: the parts are copied, as a socket does."""
    return unpack([bytearray(part) for part in pack(value)])


@each(seed=range(20))
def test_random_cycles(seed):
    snapshot = random_world(seed, chunks=True)
    plan = run(snapshot, Memory(), build(PRESETS["openccs"]))
    found = there(Published(snapshot, plan, NodeIndex(snapshot.nodes.names)))
    assert_alike(found.snapshot, snapshot)
    assert_alike(found.plan, plan)
    assert found.nodes.names == snapshot.nodes.names


@pytest.mark.parametrize(
    "texts",
    [
        [],
        [""],
        ["", ""],
        ["a"],
        ["\0"],
        ["a\0b", "c"],
        ["ä", "\ud800"],
        ["x"] * 20_000,
        ["a", None],
    ],
)
def test_columns_of_texts(texts):
    column = np.empty(len(texts), dtype=object)
    column[:] = texts
    found = there(column)
    assert found.dtype == object
    assert found.tolist() == texts


@pytest.mark.parametrize("words", ["why", "", "a\0b"])
def test_reasons(words):
    plan = run(random_world(3), Memory(), build(PRESETS["easy"]))
    reasons = [None, Reason(ReasonCode.OTHER, words), Reason(ReasonCode.NEVER, "never")]
    reasons = tuple(reasons[row % 3] for row in range(len(plan)))
    plan = dataclasses.replace(plan, reasons=reasons)
    assert there(plan).reasons == reasons


def test_what_is_small_and_what_is_not_there():
    assert there(None) is None
    assert there(StartRecords()) == StartRecords()


def test_others_may_go_first_between_columns():
    turns = []
    pack(random_world(1), lambda: turns.append(1))
    assert len(turns) > 20
