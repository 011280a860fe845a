# SPDX-License-Identifier: Apache-2.0
"""The time of a suite that was stopped."""

import json
import os

import pytest

from tests.release.unfinished import begun, ended

COMMIT, OTHER = "a" * 40, "b" * 40


@pytest.fixture
def stop(tmp_path):
    """Lets a suite begin at 1,000 s and be stopped, as its log says, some seconds later."""

    def stopped_after(name, seconds, commit=COMMIT):
        before_s = begun(tmp_path / name, commit, 1000.0)
        (tmp_path / f"{name}.log").write_text("dots\n")
        os.utime(tmp_path / f"{name}.log", (1000 + seconds, 1000 + seconds))
        return before_s

    return stopped_after


def test_the_times_of_all_parts_are_added(stop):
    assert stop("fuzz", 60) == 0
    assert stop("mutants", 7) == 0
    assert stop("fuzz", 5) == 60
    assert stop("fuzz", 1) == 65
    assert stop("mutants", 7) == 7


def test_what_was_stopped_at_another_commit_does_not_count(stop):
    assert stop("fuzz", 60) == 0
    assert stop("fuzz", 5, OTHER) == 0
    assert stop("fuzz", 1, OTHER) == 5


def test_what_has_ended_does_not_count(stop, tmp_path):
    stop("fuzz", 60)
    ended(tmp_path / "fuzz")
    ended(tmp_path / "mutants")
    assert stop("fuzz", 5) == 0


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"commit": COMMIT})])
def test_half_a_file_counts_nothing(stop, tmp_path, text):
    (tmp_path / "fuzz.unfinished").write_text(text)
    assert stop("fuzz", 60) == 0
    assert stop("fuzz", 5) == 60
