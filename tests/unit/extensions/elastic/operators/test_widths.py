# SPDX-License-Identifier: Apache-2.0
"""Why malleable jobs have the widths they have, as operators and users are told."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.extensions.elastic.operators.widths import (
    _TEXTS,
    last_line,
    last_resize,
    speed_ups,
    width_reason,
)
from bridge.extensions.elastic.resizing.journal import JournalEntry, ResizeResult
from bridge.extensions.elastic.resizing.overlay import Shown
from bridge.model.decisions.width_reasons import WidthCode, WidthReason
from bridge.model.job import WidthRule
from bridge.model.learnt import Learnt
from bridge.model.rules.limits import ConsumerKind
from bridge.model.rules.resize_limits import ResizeBounds, ResizeLimit
from bridge.planning.malleable.observing import observed
from bridge.planning.malleable.speed import UNKNOWN_SERIAL, speed
from bridge.rpc.pb import operator_pb2 as pb
from schedbridge_contracts.builders import a_running_job, a_snapshot

NOW_S = 1000


def a_world(width=2, maximum=8, **columns):
    job = a_running_job(tuple(range(width)), id="m", user="ann", min_nodes=1, max_nodes=maximum)
    snapshot = a_snapshot(nodes=8, running=[job], now_s=NOW_S)()
    changed = {name: np.array([value]) for name, value in columns.items()}
    return replace(snapshot, running=replace(snapshot.running, **changed))


def a_shown(**changed):
    usual = {
        "job_id": "m", "user": "ann", "nodes": ("n1", "n2"), "min_nodes": 1, "max_nodes": 8,
        "rule": WidthRule.ANY, "engine": "join", "state": "running", "target": ("n1", "n2"),
        "until_s": 0, "held": False, "rests_until_s": 0, "reason": "",
    }  # fmt: skip
    return Shown(**(usual | changed))


def reason(said=None, world=None, limits=(), **job):
    world = world or a_world()
    told = None if said is None else WidthReason("m", said, 4)
    return width_reason(a_shown(**job), 0, world, ResizeBounds(world, limits), told)


def test_every_code_has_a_sentence_and_a_number_on_the_wire():
    assert set(_TEXTS) | {WidthCode.LIMIT} == set(WidthCode)
    for code in WidthCode:
        assert pb.WidthCode.Value(f"WIDTH_CODE_{code.name}") == code


@pytest.mark.parametrize(
    ("job", "code", "words"),
    [
        ({"state": "adding", "held": True}, WidthCode.ADAPTING, "is changing"),
        ({"engine": "", "held": True}, WidthCode.NO_LAUNCHER, "schedbridge run"),
        ({"held": True, "rests_until_s": 2000}, WidthCode.HELD, "--release"),
        ({"rests_until_s": NOW_S + 30}, WidthCode.RESTS, "for 30 s"),
        ({"rests_until_s": NOW_S}, WidthCode.NO_GAIN, "recover the cost"),
        ({"strays": True}, WidthCode.ELSEWHERE, "other nodes than it holds"),
        ({}, WidthCode.NO_GAIN, "recover the cost"),
    ],
)
def test_what_forbids_any_change_comes_first(job, code, words):
    found = reason(WidthCode.NO_GAIN, **job)
    assert found.code == code
    assert words in found.text


def test_a_policy_that_says_nothing_resizes_nothing():
    assert reason().code == WidthCode.POLICY
    assert reason(WidthCode.GROWS).text == "grows to 4 nodes: they are idle"


def test_a_limit_of_the_site_is_told_in_its_own_words():
    keeps = a_world(keeps_nodes=True)
    assert reason(world=keeps, held=True).text.endswith("--no-resize")
    few = (ResizeLimit(ConsumerKind.USER, "ann", extra_nodes=0),)
    requested = a_world(requested_nodes=2)
    assert reason(WidthCode.WIDEST, requested, few).code == WidthCode.LIMIT
    assert "extra_nodes" in reason(WidthCode.WIDEST, requested, few).text
    assert reason(WidthCode.NO_IDLE_NODES, requested, few).code == WidthCode.NO_IDLE_NODES


def test_the_last_resize_is_told_with_what_became_of_it():
    assert last_resize(None) is None
    entry = JournalEntry("m", ResizeResult.FAILED, 2, 4, 940, 15, "refused by the controller: busy")
    assert last_line(last_resize(entry), NOW_S) == (
        "its last change, to grow from 2 to 4 nodes, failed 15 s after it was decided, 1 min ago: "
        "refused by the controller: busy"
    )
    old = last_resize(replace(entry, lasted_s=None, reason=""))
    assert not old.HasField("lasted_s")
    assert "decided" not in last_line(old, NOW_S)
    done = last_resize(replace(entry, result=ResizeResult.COMPLETED, reason=""))
    assert "nodes, was completed 15 s" in last_line(done, NOW_S)


def points(world, learnt=None, mtct=-1.0, maximum=8):
    found = speed_ups(world, 0, learnt or Learnt(), minimum=1, maximum=maximum, mtct=mtct)
    return [(point.width, round(point.speed_up, 6), point.source) for point in found]


def test_the_curve_says_what_is_measured_learnt_and_assumed():
    assumed = [(width, round(speed(UNKNOWN_SERIAL, width), 6), "assumed") for width in (1, 2, 4, 8)]
    assert points(a_world()) == assumed
    now = points(a_world(), mtct=0.25)
    assert [source for _, _, source in now] == ["learnt", "measured", "learnt", "learnt"]
    assert now[1][1] == pytest.approx(2 / 1.25)
    learnt = observed(a_world(4, mtct=0.3), Learnt())
    learnt = observed(a_world(2), learnt)
    assert [source for _, _, source in points(a_world(), learnt)] == [
        "learnt", "learnt", "measured", "learnt",
    ]  # fmt: skip


def test_the_curve_of_a_wide_job_is_short():
    found = points(a_world(), maximum=1_000_000)
    assert len(found) == 12
    assert [width for width, _, _ in found][::11] == [1, 1_000_000]
    assert 2 in [width for width, _, _ in found]
