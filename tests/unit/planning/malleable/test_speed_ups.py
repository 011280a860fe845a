# SPDX-License-Identifier: Apache-2.0
"""Learnt speed-ups: curves by numbers that can be checked by hand, and under any input."""

import dataclasses
import math
import sqlite3

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.model.job import EndedTable, Ending
from bridge.model.layers import Layers
from bridge.model.learnt import Learnt
from bridge.planning.malleable.observing import NAME, kept_of, learnt_serials, observed
from bridge.planning.malleable.speed import UNKNOWN_SERIAL, speed
from bridge.planning.malleable.speed_ups import (
    MAX_NAMES,
    MAX_WIDTHS,
    curve,
    from_numbers,
    name_code,
    serial_of,
    to_numbers,
    with_ended,
    with_kept,
    with_measured,
)
from bridge.ports import State
from bridge.state.predictor_store import (
    SCHEMA,
    everything,
    read_predictor_records,
    write_predictor_records,
)
from schedbridge_contracts.builders import a_running_job, a_snapshot, objects

WIDTHS = (1, 2, 4, 8, 16, 64)


def kept(*steps):
    found = ()
    for what, width, value in steps:
        found = (with_measured if what == "mtct" else with_ended)(found, width, value)
    return found


def test_what_is_not_known_is_assumed():
    assert serial_of(()) == UNKNOWN_SERIAL
    assert [point.source for point in curve((), (4, 1))] == ["assumed", "assumed"]
    assert [point.speed_up for point in curve((), (1, 4))] == [1.0, speed(UNKNOWN_SERIAL, 4)]


def test_one_measurement_counts_as_much_as_the_assumption_and_four_as_four():
    assert serial_of(kept(("mtct", 4, 0.25))) == pytest.approx((UNKNOWN_SERIAL + 0.25) / 2)
    many = kept(*[("mtct", 4, 0.25)] * 9)
    assert serial_of(many) == pytest.approx((UNKNOWN_SERIAL + 4 * 0.25) / 5)
    assert [point.source for point in curve(many, (2, 4))] == ["learnt", "measured"]
    assert curve(many, (4,))[0].speed_up == pytest.approx(speed(0.25, 4))


@pytest.mark.parametrize("serial", [0.0, 0.05, 0.4, 1.0])
def test_run_times_at_two_widths_show_the_serial_fraction(serial):
    runs = [("end", width, round(100_000 / speed(serial, width))) for width in (2, 8)] * 20
    found = serial_of(kept(*runs))
    assert found == pytest.approx((UNKNOWN_SERIAL + 4 * serial) / 5, abs=2e-3)


def test_run_times_at_widths_that_are_too_close_say_nothing():
    assert serial_of(kept(("end", 4, 100), ("end", 5, 999))) == UNKNOWN_SERIAL
    assert serial_of(kept(("end", 4, 100), ("end", 4, 999))) == UNKNOWN_SERIAL


def test_a_job_that_is_slower_on_more_nodes_is_all_serial():
    found = serial_of(kept(*[("end", 2, 100), ("end", 8, 400)] * 9))
    assert found == pytest.approx((UNKNOWN_SERIAL + 4 * 1.0) / 5)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("mtct"), st.integers(-5, 1 << 40), st.floats()),
        st.tuples(st.just("end"), st.integers(-5, 1 << 40), st.integers(-5, 1 << 62)),
        st.tuples(st.just("mtct"), st.integers(2, 12), st.floats(0, 1)),
        st.tuples(st.just("end"), st.integers(1, 12), st.integers(1, 10**6)),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(STEPS)
def test_whatever_comes_in_the_curve_rises_and_stays_below_perfect(steps):
    found = kept(*steps)
    assert len(found) <= MAX_WIDTHS
    serial = serial_of(found)
    assert 0 <= serial <= 1
    speeds = [speed(serial, width) for width in WIDTHS]
    assert speeds == sorted(speeds)
    for width, value in zip(WIDTHS, speeds, strict=True):
        assert 1 - 1e-9 <= value <= width + 1e-9
    for point in curve(found, WIDTHS):
        assert 1 - 1e-9 <= point.speed_up <= point.width + 1e-9


@settings(deadline=None)
@given(st.lists(st.integers(-(1 << 54), 1 << 54), max_size=60), STEPS)
def test_numbers_that_nobody_wrote_are_read_within_bounds(numbers, steps):
    for garbage in (numbers, [1, *numbers], to_numbers({7: kept(*steps)})[: len(numbers)]):
        for its in from_numbers(garbage).values():
            assert 0 <= serial_of(its) <= 1
            assert all(math.isfinite(point.speed_up) for point in curve(its, WIDTHS))


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(max_size=9), STEPS), max_size=6))
def test_an_entry_is_read_as_it_was_written(apps):
    entry = {}
    for name, steps in apps:
        entry = with_kept(entry, name_code(name), kept(*steps))
    again = from_numbers(to_numbers(entry))
    assert list(again) == list(entry)
    for code, its in entry.items():
        assert serial_of(again[code]) == pytest.approx(serial_of(its), abs=1e-4)


def test_names_are_forgotten_that_were_changed_longest_ago():
    entry = {}
    for code in range(MAX_NAMES + 5):
        entry = with_kept(entry, code, kept(("end", 2, 10)))
    assert list(entry) == list(range(5, MAX_NAMES + 5))


# ---------------------------------------------------------------- from snapshots


def world(*jobs, ended=(), names=(), mtct=()):
    snapshot = a_snapshot(nodes=16, running=list(jobs), now_s=1000)()
    running = snapshot.running
    running = dataclasses.replace(
        running,
        name=objects(list(names) or ["heat"] * len(jobs)),
        mtct=np.array(list(mtct) or [-1.0] * len(jobs)),
    )
    table = EndedTable(
        id=objects([job for job, *_ in ended]), name=objects(["heat"] * len(ended)),
        user=objects(["ann"] * len(ended)),
        start_s=np.array([start for _, start, _, _ in ended], dtype=np.int64),
        end_s=np.array([end for _, _, end, _ in ended], dtype=np.int64),
        time_limit_s=np.zeros(len(ended), dtype=np.int64),
        ending=np.array([ending for *_, ending in ended], dtype=np.int8),
    )  # fmt: skip
    return dataclasses.replace(snapshot, running=running, ended=table)


def a_job(width, user="ann", job="7", start_s=10, maximum=16):
    return a_running_job(
        tuple(range(width)), id=job, user=user, start_s=start_s, min_nodes=1, max_nodes=maximum
    )


def learn(*worlds):
    learnt = Learnt()
    for each in worlds:
        learnt = observed(each, learnt)
    return learnt


def test_a_measurement_counts_when_the_width_changes_and_only_the_last_of_it():
    learnt = learn(world(a_job(4), mtct=[0.1]), world(a_job(4), mtct=[0.6]))
    assert kept_of(learnt, "ann", "heat") == ()
    learnt = observed(world(a_job(2)), learnt)
    (at,) = kept_of(learnt, "ann", "heat")
    assert (at.width, at.measured, at.serial) == (4, 1, pytest.approx(0.2))


@pytest.mark.parametrize(
    ("ending", "start_s", "counts"),
    [(Ending.COMPLETED, 10, 1), (Ending.TIMEOUT, 10, 0), (Ending.FAILED, 10, 0),
     (Ending.COMPLETED, 11, 0)],
)  # fmt: skip
def test_a_run_counts_that_completed_with_its_first_nodes(ending, start_s, counts):
    end = world(ended=[("7", start_s, 510, ending)])
    assert [at.ended for at in kept_of(learn(world(a_job(4)), end), "ann", "heat")] == [1] * counts
    changed = learn(world(a_job(4)), world(a_job(8)), end)
    assert kept_of(changed, "ann", "heat") == ()


def test_rigid_jobs_teach_nothing_and_a_job_that_rests_is_followed_on():
    end = world(ended=[("7", 10, 510, Ending.COMPLETED)])
    assert learn(world(a_job(4, maximum=0)), end) == Learnt()
    rested = learn(world(a_job(4)), world(a_job(4, maximum=0)), end)
    assert [at.ended for at in kept_of(rested, "ann", "heat")] == [1]


def test_nothing_new_is_the_same_object():
    learnt = learn(world(a_job(4), mtct=[0.1]))
    assert observed(world(a_job(4), mtct=[0.1]), learnt) is learnt


def test_a_job_that_was_requeued_is_another_one():
    learnt = learn(
        world(a_job(4), mtct=[0.3]), world(a_job(2, start_s=700), mtct=[0.1]),
        world(ended=[("7", 700, 900, Ending.COMPLETED)]),
    )  # fmt: skip
    (at,) = kept_of(learnt, "ann", "heat")
    assert (at.width, at.measured, at.ended) == (2, 1, 1)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.tuples(st.integers(1, 16), st.floats(0, 1e9), st.text(max_size=5)), max_size=8
    )
)  # fmt: skip
def test_nobody_changes_what_is_known_of_others(lies):
    honest = [world(a_job(4), mtct=[0.3]), world()]
    alone = learn(*honest)
    liar = [world(a_job(width, "eve"), names=[name], mtct=[mtct]) for width, mtct, name in lies]
    both = learn(*liar, world(), *honest)
    assert both.known["ann"] == alone.known["ann"]
    found = learnt_serials(both, objects(["ann", "ann", "bob"]), objects(["heat", "x", "heat"]))
    assert found.tolist() == [
        serial_of(kept_of(alone, "ann", "heat")), UNKNOWN_SERIAL, UNKNOWN_SERIAL,
    ]  # fmt: skip


def test_what_was_learnt_outlives_the_service():
    learnt = learn(
        world(a_job(4), mtct=[0.3]), world(ended=[("7", 10, 510, Ending.COMPLETED)]),
    )  # fmt: skip
    database = sqlite3.connect(":memory:")
    database.executescript(SCHEMA)
    write_predictor_records(database, everything(State(learnt={NAME: learnt})))
    kept_on_disk = read_predictor_records(database)[NAME]
    assert kept_on_disk == dict(learnt.known)
    again = Learnt(Layers(kept_on_disk))
    assert kept_of(again, "ann", "heat") == kept_of(learnt, "ann", "heat")
    database.close()
