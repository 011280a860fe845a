# SPDX-License-Identifier: Apache-2.0
"""Guests that were sent back to the queue."""

from bridge.extensions.sharing.left_hosts import KEPT_S, MAX_TIMES, PAUSE_S, LeftHosts
from bridge.model.learnt import Learning, Learnt


def waits_s(learning, at_s):
    """How long the job is no guest from then on; None: never again within a week."""
    for second in range(0, 7 * 86400, PAUSE_S):
        if LeftHosts(learning, at_s + second).may_be_guest("ann", "g"):
            return second
    return None


def test_the_pause_grows_and_then_it_is_no_guest_any_more():
    learning, at_s, pauses = Learning(Learnt()), 1000, []
    assert LeftHosts(learning, at_s).may_be_guest("ann", "g")
    for _ in range(MAX_TIMES):
        assert LeftHosts(learning, at_s).leaves("ann", "g", at_s)
        pauses.append(waits_s(learning, at_s))
        at_s += pauses[-1] or 0
    assert pauses == [*(PAUSE_S * 2**time for time in range(MAX_TIMES - 1)), None]
    assert LeftHosts(learning, at_s).may_be_guest("ann", "other")


def test_a_run_counts_once():
    learning = Learning(Learnt())
    assert LeftHosts(learning, 1000).leaves("ann", "g", 900)
    assert not LeftHosts(learning, 1010).leaves("ann", "g", 900)
    assert LeftHosts(learning, 1000 + PAUSE_S).may_be_guest("ann", "g")


def test_jobs_that_are_gone_are_forgotten():
    learning = Learning(Learnt())
    LeftHosts(learning, 1000).leaves("ann", "gone", 900)
    LeftHosts(learning, 1000).leaves("ann", "waits", 900)
    for now_s in range(1000, 1000 + 5 * KEPT_S, 60):
        LeftHosts(learning, now_s).forget({"waits"})
    assert len(learning.known) == 1
    assert "waits" in learning.known.in_order()[0]
