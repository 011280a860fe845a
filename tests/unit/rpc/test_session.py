# SPDX-License-Identifier: Apache-2.0
"""Epochs and generations: what a report builds on, and when everything is requested."""

import pytest

from bridge.errors import StaleSnapshot, UnsupportedVersion
from bridge.rpc.reported.session import Session
from tests.unit.rpc.worlds import (
    NOW_S,
    a_delta,
    a_full,
    a_hello,
    a_job,
    a_session,
    jobs_of,
)


def test_a_delta_builds_on_what_is_held():
    session = a_session(a_full([a_job("1")]))
    assert session.apply(a_delta(1, jobs=[a_job("2")], now_s=NOW_S + 5))
    snapshot, _ = session.snapshot()
    assert snapshot.jobs.id.tolist() == ["1", "2"]
    assert (snapshot.generation, snapshot.now_s) == (2, NOW_S + 5)


def test_a_report_before_hello_asks_for_everything():
    session = Session()
    assert not session.apply(a_full(epoch=7))
    assert session.generation == 0


def test_a_delta_on_another_generation_asks_for_everything():
    session = a_session(a_full([a_job("1")]))
    assert not session.apply(a_delta(5, jobs=[a_job("2")]))
    assert list(jobs_of(session)) == ["1"]
    assert session.apply(a_delta(1, jobs=[a_job("2")]))  # what is held still counts


def test_a_full_report_replaces_everything():
    session = a_session(a_full([a_job("1")]), a_full([a_job("2")], generation=9))
    assert list(jobs_of(session)) == ["2"]
    assert session.generation == 9


def test_a_newer_epoch_fences_the_older():
    session = a_session(a_full(epoch=5), epoch=5)
    session.greet(a_hello(epoch=6))
    with pytest.raises(StaleSnapshot, match="epoch 5 is over"):
        session.apply(a_delta(1, epoch=5))
    with pytest.raises(StaleSnapshot):
        session.greet(a_hello(epoch=5))
    assert session.apply(a_full(epoch=6))


def test_a_hello_that_is_repeated_changes_nothing():
    session = a_session(a_full([a_job()]))
    assert not session.greet(a_hello())
    assert session.apply(a_delta(1))
    assert session.greet(a_hello(whole_cores=True))
    assert not session.apply(a_delta(2))


def test_words_of_a_hello_are_bounded():
    session = Session()
    hello = a_hello(features=["x" * 1000] * 1000)
    hello.controller = "a\nb" * 100_000
    session.greet(hello)
    assert session.hello.ByteSize() < 50_000
    assert session.hello.controller.isprintable()


def test_another_wire_version_is_refused():
    with pytest.raises(UnsupportedVersion, match="wire version 2, this service 1"):
        Session().greet(a_hello(wire_version=2))


def test_generations_must_grow():
    session = a_session(a_full(generation=4))
    assert not session.apply(a_delta(4, generation=4))
