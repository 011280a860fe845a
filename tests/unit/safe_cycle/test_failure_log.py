# SPDX-License-Identifier: Apache-2.0
"""One traceback for each place at which a policy fails."""

import logging

from bridge.safe_cycle.failure_log import FailureLog


def fail_here(text):
    raise ValueError(text)


def fail_there(text):
    raise ValueError(text)


def caught(function, text):
    try:
        function(text)
    except ValueError as error:
        return error
    raise AssertionError("it did not fail")


def test_one_traceback_for_each_place_and_policy(caplog):
    log = FailureLog()
    with caplog.at_level(logging.ERROR):
        for policy, function in (
            ("a", fail_here), ("a", fail_here), ("a", fail_there),
            ("b", fail_here), ("a", fail_here),
        ):  # fmt: skip
            log.write(policy, "failed", caught(function, "job 7"))
    assert [record.exc_info is not None for record in caplog.records] == [
        True, False, True, True, False,
    ]  # fmt: skip
    assert caplog.messages[1] == "policy a failed again: ValueError: job 7"


def test_places_are_forgotten_before_there_are_too_many(caplog):
    log = FailureLog()
    for number in range(1000):
        log.write(f"policy {number}", "failed", caught(fail_here, "x"))
    assert len(log._places) <= 100
