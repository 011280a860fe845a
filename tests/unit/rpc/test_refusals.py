# SPDX-License-Identifier: Apache-2.0
"""How often a start that the controller refuses is tried again."""

from itertools import pairwise

from bridge.rpc.reported.refusals import BUSY_FOR_S, Refusals

RETRY_S = 30


def tries(changed=(), seconds=300):
    """When two jobs are tried whose nodes are always busy, each at the earliest."""
    refusals, found = Refusals(RETRY_S), {"1": [], "2": []}
    changes = 0
    for now_s in range(1000, 1000 + seconds):
        changes += now_s - 1000 in changed
        for job_id, tried in found.items():
            refusal = refusals._refused.get(job_id)
            if refusal is None or not refusal.holds(changes, now_s):
                refusals.add(job_id, 1, "busy", changes=changes, now_s=now_s, busy=True)
                tried.append(now_s - 1000)
    return found


def test_nodes_that_stay_busy_are_tried_each_second_for_a_while_only():
    """A job that needs nodes which lie together may see idle ones for hours."""
    for tried in tries().values():
        assert tried[: BUSY_FOR_S + 1] == list(range(BUSY_FOR_S + 1))
        later = tried[BUSY_FOR_S:]
        assert {after - before for before, after in pairwise(later)} == {RETRY_S}


def test_a_change_of_nodes_is_tried_at_once_and_each_second_for_a_while():
    """They may be free in a moment, when what ran there has been cleaned up."""
    for tried in tries(changed=(100, 217)).values():
        for at in (100, 217):
            assert {*range(at, at + BUSY_FOR_S)} <= {*tried}
        assert not {*tried} & {*range(91, 100), *range(161, 190), *range(191, 217)}


def test_busy_nodes_after_a_pause_are_tried_each_second_again():
    refusals = Refusals(RETRY_S)
    for now_s in (*range(40), 500, 501):
        refusals.add("1", 1, "busy", changes=0, now_s=1000 + now_s, busy=True)
    assert refusals.next_retry_s(0, 1501) == 1502
    refusals.add("2", 1, "no", changes=0, now_s=1501)
    assert refusals._refused["2"].retry_at_s == 1501 + RETRY_S
