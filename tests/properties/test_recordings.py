# SPDX-License-Identifier: Apache-2.0
"""What is recorded comes back, column by column; what is damaged is refused with one line."""

import gzip
import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.errors import BridgeError, RecordingError
from bridge.model.decisions.prediction import Prediction
from bridge.planning.site_rules.rules_text import parse_site
from bridge.ports import Promises, State
from bridge.recording.recordings import Recording, decode, encode
from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.alike import assert_alike
from schedbridge_contracts.worlds import random_world

PLANNERS = ("easy", "conservative", "slurm-like", "openccs")


def recorded(seed, policy="slurm-like", *, chunks=False):
    snapshot = random_world(seed, chunks=chunks)
    state = State(Promises(policy, {str(job): 100 + seed for job in range(seed % 4)}))
    planning = {"limits": [{"user": "*", "resource": "cpus", "items": "9"}]} if seed % 2 else {}
    site = parse_site(planning)
    plan = Decider(build(PRESETS[policy]), state, seed, site=site).decide(snapshot)
    origin = {"trace": f"world {seed}", "é": "ü"}
    return Recording(snapshot, state, PRESETS[policy], seed, plan, origin, planning=planning)


def test_predictions_keep_their_key_in_files():
    """Files of earlier versions are read, and earlier versions read files of this one."""
    recording = recorded(1)
    jobs, running = len(recording.snapshot.jobs), len(recording.snapshot.running)
    predicted = Prediction("oracle", np.full(jobs, 7), np.full(running, 8))
    recording = replace(recording, plan=replace(recording.plan, predicted=predicted))
    plan = json.loads(gzip.decompress(encode(recording)))["plan"]
    assert plan["believed"]["by"] == "oracle"
    assert "predicted" not in plan
    assert_alike(decode(encode(recording)), recording)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(PLANNERS), st.booleans())
def test_what_is_recorded_comes_back(seed, policy, chunks):
    """Slow: each example is a whole snapshot, written and read."""
    recording = recorded(seed, policy, chunks=chunks)
    raw = encode(recording)
    assert encode(recording) == raw
    assert_alike(decode(raw), recording)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_a_recorded_cycle_gives_its_plan_again(seed, chunks):
    back = decode(encode(recorded(seed, "openccs", chunks=chunks)))
    site = parse_site(back.planning)
    plan = Decider(build(back.policy), back.state, back.seed, site=site).decide(back.snapshot)
    assert_alike(plan.start_s, back.plan.start_s)
    assert_alike(plan.job, back.plan.job)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 50), st.data())
def test_cut_or_flipped_bytes_are_refused_or_read_but_never_crash(seed, data):
    raw = bytearray(encode(recorded(seed)))
    at = data.draw(st.integers(0, len(raw) - 1))
    if data.draw(st.booleans()):
        raw = raw[:at]
    else:
        raw[at] ^= 1 << data.draw(st.integers(0, 7))
    said = refusal(lambda: decode(bytes(raw), "file"), RecordingError)
    assert said is None or (said.startswith("file: ") and "\n" not in said)


def refusal(work, kind):
    """What an expected error says; None if there is none."""
    try:
        work()
    except kind as error:
        return str(error)
    return None


def leaves(value, path=()):
    """Paths to everything in plain data."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list):
        for position in range(len(value)):
            yield from leaves(value[position], (*path, position))


WEIRD = st.sampled_from(
    [None, True, -1, 2**70, 1.5, "", "x", [], {}, [[]], [None], {"shape": [1], "all": 1},
     {"shape": [10**9, 10**9], "all": 0}, {"of": [], "at": [0]}, {"of": ["a"], "at": [-1]}]
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 30), st.booleans(), WEIRD, st.data())
def test_any_other_value_anywhere_is_refused_or_planned_without_a_crash(seed, chunks, weird, data):
    """Slow: each example is a whole snapshot, read and planned."""
    plain = json.loads(gzip.decompress(encode(recorded(seed, chunks=chunks))))
    path = data.draw(st.sampled_from(list(leaves(plain))[1:]))
    owner = plain
    for step in path[:-1]:
        owner = owner[step]
    owner[path[-1]] = weird

    def use():
        back = decode(json.dumps(plain).encode(), "file")
        Decider(build(back.policy), back.state, back.seed).decide(back.snapshot)

    said = refusal(use, BridgeError)
    assert said is None or "\n" not in said


@pytest.mark.parametrize("shape", [[1], [1, 1], [3], [1, 4]], ids=str)
def test_a_column_of_any_shape_is_refused_or_read(shape):
    """Every column of every table, one at a time."""
    plain = json.loads(gzip.decompress(encode(recorded(4, chunks=True))))
    refused = {}
    for name, table in plain["snapshot"].items():
        if not isinstance(table, dict):
            continue
        for column, whole in table.items():
            table[column] = {"shape": shape, "all": 1}
            wrong = json.dumps(plain).encode()
            refused[f"{name}.{column}"] = refusal(partial(decode, wrong, "file"), RecordingError)
            table[column] = whole
    assert refused["running.use"]
    assert len(refused) > 60
    for field, said in refused.items():
        assert said is None or (said.startswith("file: ") and "\n" not in said), field


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(format="zip"), 'format: must be "schedbridge cycle"'),
        (lambda d: d.update(version=3), "version: is 3; this schedbridge reads 1 to 2"),
        (lambda d: d.pop("snapshot"), "snapshot: is missing"),
        (lambda d: d["snapshot"].pop("now_s"), "snapshot.now_s: is missing"),
        (lambda d: d["snapshot"].update(now_s="x"), "snapshot.now_s: is 'x', not a whole number"),
        (
            lambda d: d["snapshot"]["jobs"].update(tasks=[1]),
            "snapshot.jobs.tasks: has 1 rows where",
        ),
        (lambda d: d["snapshot"]["jobs"].update(colour=[1]), "snapshot.jobs.colour: is an unknown"),
        (
            lambda d: d["snapshot"].update(
                topology={"names": ["a", "b"], "parent": [1, 0], "leaf_of_node": []}
            ),
            "snapshot.topology",
        ),
        (lambda d: d.update(seed=-1), "seed: must be 0 or more"),
        (lambda d: d["memory"].update(kept_plan="eA=="), "memory.kept_plan: cannot be used"),
    ],
)
def test_a_wrong_file_is_one_line_with_file_field_and_problem(change, said):
    plain = json.loads(gzip.decompress(encode(recorded(3))))
    change(plain)
    with pytest.raises(RecordingError) as caught:
        decode(gzip.compress(json.dumps(plain).encode()), "a.cycle.json.gz")
    assert str(caught.value).startswith(f"a.cycle.json.gz: {said}")
