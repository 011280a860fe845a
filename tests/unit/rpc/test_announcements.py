# SPDX-License-Identifier: Apache-2.0
"""Only what is new or changed goes out."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.rpc.controller.announcements import (
    CALM_S,
    OPEN_S,
    PROMPT,
    WORDS_S,
    Announcements,
    plain,
    wake_after_s,
)
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.units import NEVER, UNPLANNED
from schedbridge_contracts.builders import a_job, a_reservation, a_snapshot

WAITS = Reason(ReasonCode.RESOURCES, "waits")


def a_plan(snapshot, *rows, policy="test"):
    """Rows are (job, start, nodes) or (job, start, nodes, reason)."""
    filled = [
        (*row, None if row[1] == snapshot.now_s else WAITS)[:4] if len(row) == 3 else row
        for row in rows
    ]
    return Plan(
        now_s=snapshot.now_s,
        policy=policy,
        job=np.array([row[0] for row in filled], dtype=np.int32),
        start_s=np.array([row[1] for row in filled], dtype=np.int64),
        end_s=np.array([row[1] + 100 if row[2] else 0 for row in filled], dtype=np.int64),
        partition=np.array([0 if row[2] else -1 for row in filled], dtype=np.int32),
        indptr=np.cumsum([0, *(len(row[2]) for row in filled)]).astype(np.int64),
        nodes=np.array([node for row in filled for node in row[2]], dtype=np.int32),
        tasks=np.zeros(sum(len(row[2]) for row in filled), dtype=np.int32),
        reasons=tuple(row[3] for row in filled),
    )


class Told:
    """A controller's view: decides and shows what was said, shortly."""

    def __init__(self, maximum=1000):
        self.announcements = Announcements(maximum)
        self.last = None

    def __call__(self, snapshot, *rows, serials=None):
        serials = np.arange(len(snapshot.jobs)) if serials is None else np.array(serials, int)
        plan = a_plan(snapshot, *rows)
        nodes = NodeIndex(snapshot.nodes.names)
        self.last = self.announcements.decide(snapshot, serials, plan, nodes)
        return [short(message) for message in self.last.messages]


def short(message):
    match message.WhichOneof("action"):
        case "start":
            return ("start", message.job_id, message.start.nodes)
        case "planned_start":
            planned = message.planned_start
            return ("planned", message.job_id, planned.start_s, planned.nodes)
        case "pending":
            return ("pending", message.job_id, message.pending.text)


def two_jobs(now_s=0):
    return a_snapshot(jobs=[a_job(), a_job()], now_s=now_s)()


def test_everything_is_said_once():
    told = Told()
    assert told(two_jobs(), (0, 50, [0, 1]), (1, UNPLANNED, [])) == [
        ("planned", "1", 50, "n[1-2]"),
        ("pending", "2", "waits"),
    ]
    assert told(two_jobs(1), (0, 50, [0, 1]), (1, UNPLANNED, [])) == []


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ((0, 60, [0, 1]), [("planned", "1", 60, "n[1-2]")]),
        ((0, 50, [0, 2]), [("planned", "1", 50, "n[1,3]")]),
        ((0, UNPLANNED, []), [("pending", "1", "waits")]),
        ((0, NEVER, []), [("pending", "1", "waits")]),
        (
            (0, 50, [0, 1], Reason(ReasonCode.PRIORITY, "waits")),
            [("planned", "1", 50, "n[1-2]")],
        ),
        ((0, 50, [0, 1], Reason(ReasonCode.RESOURCES, "other words")), []),
    ],
    ids=["start", "nodes", "withdrawn", "never", "code", "words alone"],
)
def test_what_changed_is_said_again(row, said):
    told = Told()
    told(two_jobs(), (0, 50, [0, 1]), (1, UNPLANNED, []))
    assert told(two_jobs(1), row, (1, UNPLANNED, [])) == said


def test_words_alone_are_renewed_after_a_while():
    told = Told()
    other = (0, 500, [0], Reason(ReasonCode.RESOURCES, "other words"))
    told(two_jobs(), (0, 500, [0]), (1, UNPLANNED, []))
    assert told(two_jobs(WORDS_S - 1), other, (1, UNPLANNED, [])) == []
    assert told(two_jobs(WORDS_S), other, (1, UNPLANNED, [])) == [("planned", "1", 500, "n1")]


def test_a_clock_that_was_set_back_silences_nobody():
    told = Told()
    late, other = 10**6, Reason(ReasonCode.RESOURCES, "other words")
    two, three = (1, late + 500, [1]), (2, UNPLANNED, [])
    told(a_snapshot(jobs=[a_job(), a_job(), a_job()], now_s=late)(), (0, late, [0]), two, three)
    snapshot = a_snapshot(jobs=[a_job(), a_job(), a_job()], now_s=0)()
    assert told(snapshot, (0, 0, [0]), (1, 400, [1]), (*three, other)) == [
        ("start", "1", "n1"),
        ("planned", "2", 400, "n2"),
        ("pending", "3", "other words"),
    ]


def test_a_new_version_is_told_again():
    told = Told()
    told(two_jobs(), (0, 50, [0]), (1, UNPLANNED, []))
    snapshot = two_jobs(1)
    snapshot.jobs.version[0] = 2
    assert told(snapshot, (0, 50, [0]), (1, UNPLANNED, [])) == [("planned", "1", 50, "n1")]
    assert told.last.messages[0].job_version == 2


def test_jobs_keep_their_announcements_when_others_leave_or_come():
    told = Told()
    three = a_snapshot(jobs=[a_job(id=i) for i in "abc"])()
    told(three, (0, 50, [0]), (1, 60, [0]), (2, 70, [0]), serials=[3, 5, 9])
    later = a_snapshot(jobs=[a_job(id=i) for i in "bcd"], now_s=1)()
    assert told(later, (0, 60, [0]), (1, 70, [0]), (2, 80, [0]), serials=[5, 9, 10]) == [
        ("planned", "d", 80, "n1")
    ]


def test_reset_says_everything_again():
    told = Told()
    rows = ((0, 50, [0]), (1, UNPLANNED, []))
    told(two_jobs(), *rows)
    told.announcements.reset()
    assert len(told(two_jobs(1), *rows)) == 2


def test_ids_grow_and_are_never_used_twice():
    told = Told()
    told(two_jobs(), (0, 0, [0]), (1, 50, [0]))
    first = [message.id for message in told.last.messages]
    told.announcements.reset()
    told(two_jobs(), (0, 0, [0]), (1, 50, [0]))
    second = [message.id for message in told.last.messages]
    assert first == sorted(first)
    assert max(first) < min(second)


# ------------------------------------------------------------------ starts


def test_an_open_start_is_not_repeated():
    told = Told()
    rows = ((0, 0, [0]), (1, UNPLANNED, []))
    assert told(two_jobs(), *rows)[0] == ("start", "1", "n1")
    later = [(0, 1, [0]), (1, UNPLANNED, [])]
    assert told(two_jobs(1), *later) == []


def test_a_start_is_repeated_after_a_bounded_time():
    told = Told()
    told(two_jobs(), (0, 0, [0]), (1, UNPLANNED, []))
    now = OPEN_S - 1
    assert told(two_jobs(now), (0, now, [0]), (1, UNPLANNED, [])) == []
    now = OPEN_S
    assert told(two_jobs(now), (0, now, [0]), (1, UNPLANNED, [])) == [("start", "1", "n1")]


def test_a_start_whose_result_is_known_may_be_repeated():
    told = Told()
    told(two_jobs(), (0, 0, [0]), (1, UNPLANNED, []))
    closed = told.announcements.close(told.last.messages[0].id)
    assert (closed.job_id, closed.version) == ("1", 1)
    assert told.announcements.close(told.last.messages[0].id) is None
    assert told(two_jobs(1), (0, 1, [0]), (1, UNPLANNED, [])) == [("start", "1", "n1")]


@pytest.mark.parametrize("bit", [1, 31, 32, 60])
def test_a_start_for_another_version_is_sent(bit):
    """In whatever bit it differs; the other job's start is open."""
    told = Told()
    told(two_jobs(), (0, 0, [0]), (1, 0, [1]))
    snapshot = two_jobs(1)
    snapshot.jobs.version[0] ^= 1 << bit
    assert told(snapshot, (0, 1, [0]), (1, 1, [1])) == [("start", "1", "n1")]


def test_tasks_of_an_array_start_and_its_next_is_announced():
    told = Told()
    array = a_snapshot(jobs=[a_job(array_tasks=9, array_startable=4)])()
    rows = ((0, 0, [0]), (0, 0, [1]), (0, 90, [0]), (0, 70, [1]))
    assert told(array, *rows) == [
        ("start", "1", "n1"),
        ("start", "1", "n2"),
        ("planned", "1", 70, "n2"),
    ]
    assert told(array, *rows) == []  # both open
    assert told(array, (0, 0, [0]), (0, 0, [1]), (0, 0, [2]), (0, 70, [1])) == [
        ("start", "1", "n3")
    ]


def test_a_start_carries_the_tasks_of_its_nodes():
    announcements = Announcements()
    snapshot = a_snapshot(jobs=[a_job(nodes=2, tasks=3, shared=True)])()
    plan = a_plan(snapshot, (0, 0, [1, 2]))
    plan.tasks[:] = [2, 1]
    found = announcements.decide(snapshot, np.arange(1), plan, NodeIndex(snapshot.nodes.names))
    assert list(found.messages[0].start.tasks) == [2, 1]
    assert found.messages[0].start.partition == "batch"


@pytest.mark.parametrize(
    ("requested", "told_s"),
    [
        ({"min_s": 60, "limit_s": 7200}, 100),
        ({"min_s": 60, "limit_s": 0}, 100),
        ({"min_s": 60, "limit_s": 100}, 0),
        ({"min_s": 0, "limit_s": 7200}, 0),
        ({"min_s": 60, "limit_s": 7200, "deadline_s": 100}, 0),  # the controller cuts it
    ],
)
def test_a_start_says_to_what_the_limit_is_cut(requested, told_s):
    snapshot = a_snapshot(jobs=[a_job(**requested)])()
    plan = a_plan(snapshot, (0, 0, [1]))
    nodes = NodeIndex(snapshot.nodes.names)
    found = Announcements().decide(snapshot, np.arange(1), plan, nodes)
    assert found.messages[0].start.time_limit_s == told_s


# ------------------------------------------------------------------ how many


def test_what_does_not_fit_comes_with_the_next_reply():
    told = Told(maximum=3)
    snapshot = a_snapshot(jobs=[a_job() for _ in range(6)])()
    rows = [(5, 0, [0]), *((job, 50 + job, [1]) for job in (4, 3, 2, 1, 0))]
    assert [said[:2] for said in told(snapshot, *rows)] == [
        ("start", "6"), ("planned", "5"), ("planned", "4"),
    ]  # fmt: skip
    assert told.last.again_s == 1
    told.announcements.close(told.last.messages[0].id)
    rows = rows[1:]
    rows.append((5, 400, [0]))
    assert [said[1] for said in told(snapshot, *rows)] == ["3", "2", "1"]
    assert [said[1] for said in told(snapshot, *rows)] == ["6"]
    assert told.last.again_s == 0


def test_a_job_that_moves_is_told_once_a_second():
    told = Told()
    told(two_jobs(), (0, 50, [0]), (1, UNPLANNED, []))
    assert told(two_jobs(), (0, 40, [0]), (1, UNPLANNED, [])) == []
    assert told.last.again_s == 1
    assert told(two_jobs(), (0, UNPLANNED, []), (1, UNPLANNED, [])) == [("pending", "1", "waits")]
    assert told(two_jobs(1), (0, 30, [0]), (1, UNPLANNED, [])) == [("planned", "1", 30, "n1")]
    assert told.last.again_s == 0


def test_when_very_many_move_far_starts_are_told_less_often():
    many = PROMPT + 100
    told = Told(maximum=10**6)

    def world(now_s):
        return a_snapshot(jobs=[a_job() for _ in range(many)], now_s=now_s)()

    def rows(shift_s):
        return [(job, 300 + job + shift_s, [0]) for job in range(many)]

    assert len(told(world(0), *rows(0))) == many
    first = len(told(world(1), *rows(1)))
    assert PROMPT < first < PROMPT + 100 // 4  # the others wait for their turn, of 7 or 8 s
    assert told.last.again_s == 1
    assert len(told(world(2), *rows(1))) == many - first  # now they are the first
    assert told.last.again_s == 0
    assert told(world(2 + CALM_S), *rows(1)) == []


def test_after_a_quiet_while_all_that_moved_is_told_at_once():
    many = PROMPT + 100
    told = Told(maximum=10**6)
    for now_s, shift_s in ((0, 0), (CALM_S, 1)):
        world = a_snapshot(jobs=[a_job() for _ in range(many)], now_s=now_s)()
        assert len(told(world, *((job, 9_000 + job + shift_s, [0]) for job in range(many)))) == many
        assert told.last.again_s == 0


def test_far_starts_that_move_all_the_time_are_told_once_in_their_interval():
    many, seconds = PROMPT + 100, 4 * CALM_S
    told = Told(maximum=10**6)
    said_s = {}
    for now_s in range(seconds):
        world = a_snapshot(jobs=[a_job() for _ in range(many)], now_s=now_s)()
        for said in told(world, *((job, 9_000 + job + now_s, [0]) for job in range(many))):
            said_s.setdefault(said[1], []).append(now_s)
    far = [np.diff(said_s[str(job + 1)][1:]) for job in range(PROMPT, many)]
    assert all((gaps == CALM_S).all() and len(gaps) >= 2 for gaps in far)


def test_counts_and_promises():
    told = Told()
    told(two_jobs(), (0, 0, [0]), (1, 50, [0]))
    assert told.last.by_kind == {"start": 1, "planned_start": 1, "pending": 0}
    assert told.last.promised == {"2": (50, "batch")}


def test_an_empty_queue_says_nothing():
    told = Told()
    assert told(a_snapshot()()) == []
    assert told(two_jobs(), (0, 50, [0]), (1, 60, [0]))
    assert told(a_snapshot()(), serials=[]) == []


def test_a_large_queue_costs_columns():
    n = 50_000
    told = Told(maximum=10**6)
    snapshot = a_snapshot(jobs=[a_job()])()
    columns = {
        name: np.repeat(getattr(snapshot.jobs, name), n, axis=0)
        for name in type(snapshot.jobs).__dataclass_fields__
    }
    jobs = type(snapshot.jobs)(**columns)
    snapshot = type(snapshot)(**{**vars(snapshot), "jobs": jobs})
    rows = [(job, 50 + job, [job % 4]) for job in range(n)]
    assert len(told(snapshot, *rows)) == n
    rows[7] = (7, 51, [0])
    later = type(snapshot)(**{**vars(snapshot), "now_s": 1})
    assert len(told(later, *rows)) == 1


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([3, 1000]), st.sampled_from([1, 40]))
def test_in_the_end_everything_was_told(seed, maximum, n_jobs):
    """Whatever was put off: once nothing changes any more, what was told is what is planned."""
    rng = np.random.default_rng(seed)
    announcements, told, now_s = Announcements(max(maximum, 1)), {}, 0
    alive = list(range(n_jobs))
    for step in range(30):
        quiet = step > 8
        if not quiet:
            now_s += int(rng.integers(0, 3))
            alive = [job for job in alive if rng.random() < 0.95] + [100 * (step + 1)]
            chosen = [
                (1000 + int(rng.integers(0, 5)), [int(rng.integers(0, 4))])
                if rng.random() < 0.7
                else (UNPLANNED, [])
                for _ in alive
            ]
        snapshot = a_snapshot(jobs=[a_job(id=str(job)) for job in alive], now_s=now_s)()
        rows = [(row, start_s, nodes) for row, (start_s, nodes) in enumerate(chosen)]
        found = announcements.decide(
            snapshot, np.array(alive), a_plan(snapshot, *rows), NodeIndex(snapshot.nodes.names)
        )
        assert len(found.messages) <= maximum
        told |= {message.job_id: short(message) for message in found.messages}
        if quiet:
            if not found.again_s:
                break
            now_s += found.again_s
    names = [f"n{node}" for node in range(1, 5)]
    assert {job: told[job] for job in map(str, alive)} == {
        str(job): ("planned", str(job), start_s, names[nodes[0]])
        if nodes
        else ("pending", str(job), "waits")
        for job, (start_s, nodes) in zip(alive, chosen, strict=True)
    }


# ------------------------------------------------------------------ words and waking


def test_words_are_printable_ascii_and_short():
    assert plain("näh\x1b") == "n?h?"
    assert len(plain("x" * 500)) == 160
    assert plain("x" * 160) == "x" * 160


def wake(snapshot, *rows, retry_s=None, again_s=0):
    return wake_after_s(snapshot, a_plan(snapshot, *rows), retry_s, again_s)


def test_wakes_at_the_next_instant_that_matters():
    plain_jobs = two_jobs(100)
    never = (1, NEVER, [])
    assert wake(plain_jobs, (0, UNPLANNED, []), never) == 0
    assert wake(plain_jobs, (0, 130, [0]), never) == 30
    assert wake(plain_jobs, (0, 130, [0]), never, retry_s=110) == 10
    assert wake(plain_jobs, (0, 130, [0]), never, again_s=4) == 4
    assert wake(plain_jobs, (0, 10**9, [0]), never) == 86_400
    edges = a_snapshot(jobs=[a_job()], reservations=[a_reservation([0], 120, 170)], now_s=100)()
    assert wake(edges, (0, UNPLANNED, [])) == 20
    inside = a_snapshot(jobs=[a_job()], reservations=[a_reservation([0], 20, 170)], now_s=100)()
    assert wake(inside, (0, UNPLANNED, [])) == 70
    begins = a_snapshot(jobs=[a_job(begin_s=105)], now_s=100)()
    assert wake(begins, (0, UNPLANNED, [])) == 5
    asks = a_plan(plain_jobs, (0, 130, [0]), never)
    for again_s, wait_s in ((103, 3), (99, 1), (200, 30)):
        assert wake_after_s(plain_jobs, replace(asks, again_s=again_s), None, 0) == wait_s


def test_codes_are_those_of_the_wire():
    assert {code.name for code in ReasonCode} - {"NONE"} == {
        name.removeprefix("REASON_") for name, _ in pb.ReasonCode.items()
    } - {"UNSPECIFIED"}
    for code in ReasonCode:
        if code:
            assert pb.ReasonCode.Value(f"REASON_{code.name}") == code
