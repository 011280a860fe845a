# SPDX-License-Identifier: Apache-2.0
"""What is noted of resizes: every request ends once, with its result."""

from hypothesis import given
from hypothesis import strategies as st

from bridge.extensions.elastic.resizing.journal import MAX_UNTOLD, ResizeResult
from tests.properties.test_resizing_runtime import EVENTS, NAMES, Cluster, play


def settle(cluster, willing=True):
    for _ in range(4):
        cluster.cycle()
        cluster.launcher.take()
        cluster.launcher.work(willing)
        cluster.cycle()


def noted(cluster):
    return [
        (entry.result, entry.direction, entry.before, entry.after)
        for entry in cluster.runtime.journal.take()
    ]


def test_resizes_that_are_completed():
    cluster = Cluster()
    cluster.cycle(NAMES[:5])
    assert noted(cluster) == [(ResizeResult.REQUESTED, "grow", 2, 5)]
    settle(cluster)
    assert noted(cluster) == [(ResizeResult.COMPLETED, "grow", 2, 5)]
    assert noted(cluster) == []
    began_s = cluster.now_s
    cluster.cycle(NAMES[:1])
    settle(cluster)
    last = cluster.runtime.journal.last["m"]
    assert (last.result, last.direction) == (ResizeResult.COMPLETED, "shrink")
    assert last.lasted_s == last.at_s - began_s


def test_what_the_application_refuses_is_withdrawn():
    for want, direction in ((NAMES[:4], "grow"), (NAMES[:1], "shrink")):
        cluster = Cluster()
        cluster.cycle(want)
        settle(cluster, willing=False)
        assert noted(cluster)[1] == (ResizeResult.WITHDRAWN, direction, 2, len(want))
        assert "the application will not" in cluster.runtime.journal.last["m"].reason


def test_what_the_controller_refuses_failed():
    cluster = Cluster()
    cluster.mood = "refuses"
    cluster.cycle(NAMES[:4])
    cluster.cycle()
    assert noted(cluster)[1][0] == ResizeResult.FAILED
    assert cluster.runtime.journal.last["m"].reason == "refused by the controller: planted"


def test_the_journal_of_nobody_is_bounded():
    cluster = Cluster()
    change = None
    cluster.cycle(NAMES[:4])
    (change,) = cluster.runtime.changes
    for _ in range(MAX_UNTOLD + 5):
        cluster.runtime.journal.begun(change, 0)
    assert len(cluster.runtime.journal.take()) == MAX_UNTOLD


@given(st.lists(EVENTS.filter(lambda event: "restarts" not in event[0]), max_size=40))
def test_each_resize_is_over_once(events):
    cluster = Cluster()
    for name, value in events:
        play(cluster, name, value)
    entries = cluster.runtime.journal.take()
    requested = sum(entry.result == ResizeResult.REQUESTED for entry in entries)
    under_way = len(cluster.runtime.changes)
    # A launcher that comes back may name nodes that make a change of their own.
    assert len(entries) - requested + under_way >= requested
    assert all(entry.lasted_s is None or entry.lasted_s >= 0 for entry in entries)
