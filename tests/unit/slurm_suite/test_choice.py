# SPDX-License-Identifier: Apache-2.0
"""Which of Slurm's tests are run is read as it is meant."""

import pytest

from tests.slurm_suite.choice import choose, expand, load

ONE = """
expect:
  - topic: sizes
    tests:
      test1.2: many tasks
      test1.20: {what: many nodes, limit_s: 60, unsupported: srun -I}
python:
  - topic: arrays
    tests:
      test_122_1: many arrays
left out:
  expect:
    - {why: no scheduling, tests: 1.3-5 9.1}
  python:
    - {why: no scheduling, tests: 101_1-2}
"""


@pytest.fixture
def read(tmp_path):
    def of(text):
        file = tmp_path / "chosen.yaml"
        file.write_text(text)
        return load(file)

    return of


def test_tests_and_what_is_left_out(read):
    choice = read(ONE)
    assert [test.name for test in choice.tests] == ["test1.2", "test1.20", "test_122_1"]
    assert choice.tests[1].limit_s == 60
    assert choice.tests[1].unsupported == "srun -I"
    assert choice.tests[0].limit_s != choice.tests[2].limit_s
    assert [group.numbers for group in choice.left_out] == [
        ("1.3", "1.4", "1.5", "9.1"), ("101_1", "101_2")
    ]  # fmt: skip


def test_what_another_slurm_has_more_or_less(read):
    assert read(ONE).unknown("expect", {"1.2", "1.3", "1.4", "1.5", "1.6", "9.1"}) == (
        {"1.6"}, {"1.20"}
    )  # fmt: skip


def test_names_choose_one_and_words_many(read):
    tests = read(ONE).tests
    assert [test.number for test in choose(tests, "test1.2")] == ["1.2"]
    assert [test.number for test in choose(tests, "1.20 122_1")] == ["1.20", "122_1"]
    assert [test.number for test in choose(tests, "expect MANY")] == ["1.2", "1.20"]
    assert choose(tests, "") == list(tests)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("1.3-5", "1.2-5", "named twice: expect 1.2"),
        ("test1.2:", "1.2:", "'1.2' is not a test in expect"),
        ("test_122_1", "test1.3", "'test1.3' is not a test in python"),
        ("srun -I", "laziness", "not in UNSUPPORTED"),
        ("limit_s", "limit", "only what, limit_s, unsupported, parts and layout"),
        ("9.1", "nine", "'nine' is not a number"),
    ],
)
def test_what_is_wrong_is_said(read, old, new, told):
    with pytest.raises(ValueError, match=told):
        read(ONE.replace(old, new))


def test_rows_of_numbers():
    assert expand("1.10 112_40-42") == ["1.10", "112_40", "112_41", "112_42"]


def test_the_choice_itself():
    choice = load()
    assert {test.suite for test in choice.tests} == {"expect", "python"}
    assert all(test.what for test in choice.tests)
