# SPDX-License-Identifier: Apache-2.0
import pytest

from bridge.state.accuracy import OPEN_S, Announced, Began, Happened, Promise, Waiting


def said(**starts):
    """Announcements by job: `said(a=100)`; a leading j keeps numbers legal names."""
    return {name.removeprefix("j"): Announced(start_s, "batch") for name, start_s in starts.items()}


def follow(*events, waiting=None):
    """All records of a history: started and gone."""
    waiting = waiting if waiting is not None else Waiting()
    started, gone = [], []
    for event in events:
        changes = waiting.happen(event)
        started += changes.started
        gone += changes.gone
    return started, gone


def one_start(*events):
    started, gone = follow(*events)
    assert gone == []
    (record,) = started
    return record


def test_a_promise_kept_to_the_second():
    record = one_start(
        Happened(10, promised=said(a=100)), Happened(100, started=[Began("a", 100, "batch")])
    )
    assert record == ("a", 100, "batch", Promise(100, 10, 100, 10))


def test_first_and_last_promise_and_all_that_was_between():
    record = one_start(
        Happened(10, promised=said(a=100)),
        Happened(20, promised=said(a=150)),
        Happened(30, promised=said(a=90)),
        Happened(40, promised=said(a=95)),
        Happened(97, started=[Began("a", 97, "batch")]),
    )
    assert record.promise == Promise(100, 10, 95, 40, changes=3, later_s=55, earlier_s=60)


def test_the_same_start_again_is_no_change_and_keeps_its_time():
    waiting = Waiting()
    follow(Happened(10, promised=said(a=100)), waiting=waiting)
    changes = waiting.happen(Happened(50, promised=said(a=100)))
    assert (changes.touched, changes.later, changes.earlier) == (set(), 0, 0)
    assert waiting["a"] == ("batch", Promise(100, 10, 100, 10))


def test_changes_are_counted_by_direction():
    waiting = Waiting()
    follow(Happened(10, promised=said(a=100, b=200, c=300)), waiting=waiting)
    changes = waiting.happen(Happened(20, promised=said(a=101, b=90, c=300, d=5)))
    assert (changes.later, changes.earlier) == (1, 1)
    assert changes.touched == {"a", "b", "d"}


def test_a_job_that_starts_unannounced():
    assert one_start(Happened(10, started=[Began("a", 10, "debug")])).promise is None


def test_a_promise_made_after_the_start_is_none():
    record = one_start(
        Happened(10, promised=said(a=100)), Happened(11, started=[Began("a", 9, "batch")])
    )
    assert record.promise is None


def test_a_requeued_job_is_promised_anew():
    started, _ = follow(
        Happened(10, promised=said(a=100)),
        Happened(100, started=[Began("a", 100, "batch")]),
        Happened(110, promised=said(a=200)),
        Happened(205, started=[Began("a", 205, "batch")]),
    )
    assert [record.promise for record in started] == [
        Promise(100, 10, 100, 10),
        Promise(200, 110, 200, 110),
    ]


def test_a_cancelled_job_is_gone_with_its_promise():
    started, gone = follow(
        Happened(10, promised=said(a=100)), Happened(20, gone=["a", "never-heard-of"])
    )
    assert started == []
    assert gone == [("a", 20, "batch", Promise(100, 10, 100, 10))]


def test_who_is_missing_in_a_whole_report_is_gone():
    started, gone = follow(
        Happened(10, promised=said(a=100, b=100, c=100)),
        Happened(200, started=[Began("b", 150, "batch")], waiting=["c"]),
    )
    assert [record.job_id for record in started] == ["b"]
    assert [record.job_id for record in gone] == ["a"]


def test_the_partition_is_that_of_the_allocation_or_of_the_last_promise():
    started, gone = follow(
        Happened(10, promised={"a": Announced(50, "x"), "b": Announced(50, "x")}),
        Happened(20, promised={"b": Announced(50, "y")}),
        Happened(50, started=[Began("a", 50, "z")], gone=["b"]),
    )
    assert (started[0].partition, gone[0].partition) == ("z", "y")


def test_rows_of_jobs_that_left_are_used_again_from_nothing():
    waiting = Waiting()
    for job in range(5000):
        follow(
            Happened(job + 1, promised=said(a=job + 10)),
            Happened(job + 2, gone=["a"]),
            Happened(job + 3, promised={f"b{job}": Announced(job + 9, "batch")}),
            waiting=waiting,
        )
    assert len(waiting) == 5000
    assert waiting["b7"] == ("batch", Promise(16, 10, 16, 10))


# ------------------------------------------------------------------ arrays


def test_tasks_that_start_together_share_the_promise_of_their_head():
    started, _ = follow(
        Happened(10, promised=said(j7=100)),
        Happened(100, started=[Began("7_1", 100, "batch"), Began("7_2", 100, "batch")]),
        Happened(120, started=[Began("7_3", 120, "batch")]),
    )
    assert [record.promise for record in started] == [Promise(100, 10, 100, 10)] * 2 + [None]


def test_the_next_task_is_promised_anew_and_that_is_no_change():
    waiting = Waiting()
    follow(Happened(10, promised=said(j7=100)), waiting=waiting)
    changes = waiting.happen(Happened(100, starting=["7"], promised=said(j7=300)))
    assert (changes.later, changes.earlier) == (0, 0)
    started, _ = follow(
        Happened(101, started=[Began("7_1", 100, "batch")]),
        Happened(102, started=[Began("7_2", 101, "batch")]),
        Happened(290, started=[Began("7_3", 290, "batch")]),
        waiting=waiting,
    )
    assert [record.promise for record in started] == [
        Promise(100, 10, 100, 10),
        Promise(100, 10, 100, 10),
        Promise(300, 100, 300, 100),
    ]


def test_tasks_that_start_at_once_were_promised_nothing():
    started, _ = follow(
        Happened(10, starting=["7"], promised=said(j7=300)),
        Happened(11, started=[Began("7_1", 10, "batch")]),
    )
    assert started[0].promise is None


def test_a_promise_set_aside_is_forgotten_after_a_while():
    started, _ = follow(
        Happened(10, promised=said(j7=20)),
        Happened(20, starting=["7"], promised=said(j7=300)),
        Happened(21 + OPEN_S),
        Happened(90, started=[Began("7_1", 90, "batch")]),
    )
    assert started[0].promise == Promise(300, 20, 300, 20)


def test_a_head_whose_last_task_started_is_not_gone():
    started, gone = follow(
        Happened(10, promised=said(j7=100)),
        Happened(100, started=[Began("7_9", 100, "batch")], gone=["7"]),
    )
    assert len(started) == 1
    assert gone == []


# ------------------------------------------------------------------ over a restart


def test_what_is_restored_goes_on_as_before():
    first, second = Waiting(), Waiting()
    follow(Happened(10, promised=said(a=100, b=5)), Happened(12, gone=["b"]), waiting=first)
    second.restore((job, *first[job]) for job in ["a"])
    for waiting in (first, second):
        record = follow(
            Happened(20, promised=said(a=140)),
            Happened(130, started=[Began("a", 130, "batch")]),
            waiting=waiting,
        )[0][0]
        assert record.promise == Promise(100, 10, 140, 20, changes=1, later_s=40)


@pytest.mark.parametrize("job_id", ["a", "7_3"])
def test_nothing_is_known_of_a_job_that_was_never_promised(job_id):
    assert job_id not in Waiting()
