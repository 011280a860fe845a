# SPDX-License-Identifier: Apache-2.0
"""The predictors: what they learn, what they expect, and how they follow running jobs."""

import dataclasses

import numpy as np
import pytest

from bridge.errors import ConfigError, PolicyError
from bridge.model.job import EndedTable, Ending, Hold
from bridge.model.learnt import MAX_KNOWN, Learning, Learnt
from bridge.planning.prediction.run_times import extended
from bridge.policies.predict.last_two import LastTwo
from bridge.policies.predict.name_history import NameHistory
from bridge.policies.predict.oracle import Oracle
from bridge.policies.predict.time_limit import TimeLimit
from bridge.ports import State
from bridge.registry import PRESETS, build, for_live, parse_policy, predicting
from schedbridge_contracts.builders import a_job, a_partition, a_running_job, a_snapshot
from schedbridge_contracts.cycles import Memory, predict_alone


def ints(*values):
    return np.array(values, dtype=np.int64)


def some_ended(*jobs, ending=Ending.COMPLETED):
    """Jobs as (id, user, name, start, end)."""
    columns = list(zip(*jobs, strict=True))
    return EndedTable(
        id=np.array(columns[0], dtype=object),
        user=np.array(columns[1], dtype=object),
        name=np.array(columns[2], dtype=object),
        start_s=ints(*columns[3]),
        end_s=ints(*columns[4]),
        time_limit_s=ints(*[1000] * len(jobs)),
        ending=np.full(len(jobs), ending, dtype=np.int8),
    )


def world(*, jobs=(), running=(), ended=None, now_s=0, names=None, partitions=()):
    snapshot = a_snapshot(jobs=jobs, running=running, now_s=now_s, partitions=partitions)()
    if names is not None:
        named = dataclasses.replace(snapshot.jobs, name=np.array(names, dtype=object))
        snapshot = dataclasses.replace(snapshot, jobs=named)
    return snapshot if ended is None else dataclasses.replace(snapshot, ended=ended)


def running_since(snapshot, *starts):
    table = dataclasses.replace(snapshot.running, start_s=ints(*starts))
    return dataclasses.replace(snapshot, running=table)


class TestExtending:
    def test_nothing_that_is_in_time_is_extended(self):
        assert extended(ints(100, 100), ints(0, 99)).tolist() == [100, 100]

    def test_steps_are_a_minute_then_a_quarter_of_an_hour_doubled(self):
        over = [0, 59, 60, 959, 960, 2759, 2760, 6359, 6360]
        found = extended(np.full(len(over), 100), 100 + ints(*over))
        more = (found - 100).tolist()
        assert more == [60, 60, 960, 960, 2760, 2760, 6360, 6360, 13560]

    def test_it_always_lies_ahead(self):
        elapsed = np.arange(0, 200_000, 7)
        for word in ("stepwise", "second"):
            assert (extended(np.full(len(elapsed), 50), elapsed, word) > elapsed).all()

    def test_by_the_second(self):
        assert extended(ints(100, 100), ints(99, 500), "second").tolist() == [100, 501]


class TestTimeLimit:
    def test_it_predicts_nothing(self):
        memory = Memory()
        assert predict_alone(TimeLimit(), world(jobs=[a_job()]), memory) is None
        assert memory.state == State()

    def test_every_preset_but_one_has_it(self):
        others = {n: s.predict.name for n, s in PRESETS.items() if s.predict.name != "time-limit"}
        assert others == {"responsive": "last-two"}


class TestLastTwo:
    def run_s(self, memory, *users, ended=None):
        jobs = [a_job(user=user, limit_s=1000) for user in users]
        return predict_alone(LastTwo(), world(jobs=jobs, ended=ended), memory).run_s.tolist()

    def test_the_mean_of_the_last_two_of_the_user(self):
        memory = Memory()
        assert self.run_s(memory, "ann", "bob") == [0, 0]
        one = some_ended(("e1", "ann", "x", 0, 100))
        assert self.run_s(memory, "ann", "bob", ended=one) == [100, 0]
        more = some_ended(("e2", "ann", "y", 0, 201), ("e3", "bob", "x", 5, 10))
        assert self.run_s(memory, "ann", "bob", ended=more) == [150, 5]
        last = some_ended(("e4", "ann", "y", 0, 51))
        assert self.run_s(memory, "ann", "bob", ended=last) == [126, 5]

    def test_what_the_machine_cut_short_teaches_nothing(self):
        memory = Memory()
        lost = some_ended(("1", "ann", "x", 0, 3), ending=Ending.LOST)
        assert self.run_s(memory, "ann", ended=lost) == [0]
        assert memory.learnt_by("last-two").judged == 0

    def test_a_running_job_stays_with_what_was_expected_and_is_extended(self):
        memory, predictor = Memory(), LastTwo()
        running = [a_running_job((0,), end_s=1000, user="ann", id="r")]
        taught = some_ended(("1", "ann", "x", 0, 100))
        first = running_since(world(running=running, ended=taught, now_s=10), 10)
        assert predict_alone(predictor, first, memory).end_s.tolist() == [110]
        other = some_ended(("2", "ann", "x", 0, 900))
        later = running_since(world(running=running, ended=other, now_s=50), 10)
        assert predict_alone(predictor, later, memory).end_s.tolist() == [110]
        over = running_since(world(running=running, now_s=110), 10)
        assert predict_alone(predictor, over, memory).end_s.tolist() == [170]
        again = running_since(world(running=running, now_s=200), 150)  # requeued, started again
        assert predict_alone(predictor, again, memory).end_s.tolist() == [150 + 500]

    def test_a_stranger_takes_his_limit(self):
        running = [a_running_job((0,), end_s=1000, user="eve")]
        found = predict_alone(LastTwo(), world(running=running, now_s=10), Memory())
        assert found.end_s.tolist() == [0]

    def test_nodes_that_are_cleaned_up_are_not_followed(self):
        memory = Memory()
        running = [a_running_job((0,), end_s=0, user="ann", id="r")]
        predict_alone(LastTwo(), world(running=running, now_s=10), memory)
        assert memory.learnt_by("last-two").running == {}

    def test_errors_are_of_what_was_predicted_at_the_start(self):
        memory, predictor = Memory(), LastTwo()
        running = [a_running_job((0,), end_s=1000, user="ann", id="r")]
        taught = some_ended(("1", "ann", "x", 0, 100))
        predict_alone(predictor, running_since(world(running=running, ended=taught), 0), memory)
        learnt = memory.learnt_by("last-two")
        assert (learnt.judged, learnt.off_s) == (1, 900)  # nothing was known: its limit, 1000
        over = some_ended(("r", "ann", "x", 0, 400))
        predict_alone(predictor, world(ended=over, now_s=400), memory)
        learnt = memory.learnt_by("last-two")
        assert (learnt.judged, learnt.under, learnt.off_s) == (2, 1, 1200)
        assert learnt.accuracy == pytest.approx(100 / 1000 + 100 / 400)
        assert learnt.running == {}

    def test_those_who_left_without_a_word_are_forgotten(self):
        memory, predictor = Memory(), LastTwo()
        for number in range(1500):
            job = a_running_job((0,), end_s=9000, id=f"r{number}")
            predict_alone(predictor, world(running=[job]), memory)
        assert len(memory.learnt_by("last-two").running) <= 1002

    def test_limits_are_used_while_somebody_waits_for_too_long(self):
        memory, predictor = Memory(), LastTwo(patience_s=100)
        taught = some_ended(("1", "ann", "x", 0, 100))
        waits = [a_job(user="ann", submit_s=50)]
        assert (
            predict_alone(predictor, world(jobs=waits, ended=taught, now_s=150), memory) is not None
        )
        assert predict_alone(predictor, world(jobs=waits, now_s=151), memory) is None
        held = [a_job(user="ann", submit_s=50, hold=Hold.DEPENDENCY)]
        assert predict_alone(predictor, world(jobs=held, now_s=900), memory).run_s.tolist() == [100]
        with pytest.raises(ConfigError, match=r"policy\.predict\.patience_s.*0 or more"):
            parse_policy({"predict": {"name": "last-two", "patience_s": -1}})

    def test_an_unknown_extension_is_refused(self):
        with pytest.raises(ConfigError, match=r"policy\.predict\.extension.*stepwise or second"):
            parse_policy({"predict": {"name": "last-two", "extension": "never"}})


PARTS = [a_partition("short", range(4)), a_partition("long", range(4))]


class TestNameHistory:
    """Each rule, from the likest on."""

    def taught(self, *jobs):
        """A memory that saw jobs (job, name, run time) wait, run and end."""
        memory, predictor = Memory(), NameHistory()
        for number, (job, name, run_s) in enumerate(jobs):
            known = dataclasses.replace(job, id=f"old{number}")
            predict_alone(predictor, world(jobs=[known], names=[name], partitions=PARTS), memory)
            ended = some_ended((f"old{number}", job.user, name, 0, run_s))
            predict_alone(predictor, world(ended=ended, partitions=PARTS), memory)
        return memory

    def expected(self, memory, job, name):
        snapshot = world(jobs=[job], names=[name], partitions=PARTS)
        return predict_alone(NameHistory(), snapshot, memory).run_s.tolist()[0]

    def test_the_likest_job_counts(self):
        base = a_job(limit_s=900, tasks=4, shared=True)
        wider = dataclasses.replace(base, tasks=8)
        longer = dataclasses.replace(base, limit_s=1800)
        memory = self.taught(
            (longer, "cfd", 60),  # same name
            (longer, "cfd7", 50),  # same stem
            (wider, "cfd7", 40),  # same stem, queue, limit
            (wider, "cfd", 30),  # same name, queue, limit
            (base, "cfd7", 20),  # same stem, queue, limit, size
            (base, "cfd", 10),  # all the same
        )
        assert self.expected(memory, base, "cfd") == 10
        assert self.expected(memory, base, "cfd9") == 10  # the last of that stem
        assert self.expected(memory, base, "cfd7") == 20
        assert self.expected(memory, wider, "cfd") == 30
        assert self.expected(memory, wider, "cfd7") == 40
        elsewhere = dataclasses.replace(base, partitions=(1,))
        assert self.expected(memory, elsewhere, "cfd7") == 20  # the last of that name
        assert self.expected(memory, elsewhere, "cfd8") == 10  # the last of that stem
        assert self.expected(memory, elsewhere, "qcd") == 0

    @pytest.mark.parametrize(
        ("change", "name", "found"),
        [
            ({}, "cfd", 77),
            ({}, "cfd2", 77),
            ({"tasks": 9}, "cfd", 77),
            ({"tasks": 9}, "cfd2", 77),
            ({"partitions": (1,)}, "cfd", 77),
            ({"partitions": (1,)}, "cfd2", 77),
            ({}, "qcd", 0),
            ({"user": "eve"}, "cfd", 0),
        ],
    )
    def test_each_rule_alone(self, change, name, found):
        base = a_job(limit_s=900, tasks=4, shared=True)
        memory = self.taught((base, "cfd", 77))
        assert self.expected(memory, dataclasses.replace(base, **change), name) == found

    def test_whole_nodes_are_counted(self):
        memory = self.taught((a_job(nodes=3), "cfd", 30), (a_job(nodes=2), "cfd", 20))
        assert self.expected(memory, a_job(nodes=3), "cfd") == 30

    def test_a_job_first_seen_running_is_known_by_what_it_holds(self):
        memory = Memory()
        running = [a_running_job((0, 1), end_s=900, id="r")]
        predictor = NameHistory()
        predict_alone(predictor, world(running=running, partitions=PARTS), memory)
        ended = some_ended(("r", "user", running_name(running), 0, 44))
        predict_alone(predictor, world(ended=ended, partitions=PARTS), memory)
        same = a_job(nodes=2, limit_s=900)
        assert self.expected(memory, same, running_name(running)) == 44
        assert memory.learnt_by("name-history").known

    def test_a_task_is_known_as_its_array(self):
        memory, predictor = Memory(), NameHistory()
        array = a_job(id="7", array_tasks=3, array_startable=3)
        predict_alone(predictor, world(jobs=[array], names=["cfd"], partitions=PARTS), memory)
        ended = some_ended(("7_1", "user", "cfd", 0, 33))
        predict_alone(predictor, world(jobs=[array], ended=ended, partitions=PARTS), memory)
        assert self.expected(memory, a_job(), "cfd") == 33


def running_name(running):
    return str(world(running=running).running.name[0])


class TestOracle:
    def test_it_knows(self):
        snapshot = world(jobs=[a_job(id="a"), a_job(id="b")], running=[a_running_job(id="c")])
        found = predict_alone(Oracle(), snapshot, Memory(run_s={"a": 5, "c": 50}))
        assert (found.run_s.tolist(), found.end_s.tolist()) == (
            [5, 0],
            [int(snapshot.running.start_s[0]) + 50],
        )

    def test_nobody_knows_in_real_life(self):
        with pytest.raises(PolicyError, match="simulations only"):
            predict_alone(Oracle(), world(), Memory())
        with pytest.raises(ConfigError, match="it is for simulations; a service can predict time"):
            for_live(predicting(PRESETS["easy"], "oracle"))
        assert for_live(predicting(PRESETS["easy"], "last-two")).name == "easy+last-two"


class TestRemembering:
    def test_what_was_learnt_makes_the_same_predictions_again(self):
        memory = Memory()
        taught = some_ended(("1", "ann", "x", 0, 100), ("2", "ann", "x", 0, 300))
        for predictor in (LastTwo(), NameHistory()):
            predict_alone(predictor, world(ended=taught), memory)
        again = Memory(
            learnt={name: Learnt(one.known) for name, one in memory.state.learnt.items()}
        )
        jobs = [a_job(user="ann")]
        assert predict_alone(LastTwo(), world(jobs=jobs), again).run_s.tolist() == [200]
        snapshot = world(jobs=jobs, names=["x"])
        assert predict_alone(NameHistory(), snapshot, again).run_s.tolist() == [300]

    def test_what_has_not_changed_for_longest_is_forgotten_first(self, monkeypatch):
        assert MAX_KNOWN >= 100_000
        monkeypatch.setattr("bridge.model.learnt.MAX_KNOWN", 2)
        learning = Learning(Learnt())
        for key in ("a", "b", "a", "c"):
            learning.learn("ann", key, [1])
        assert list(learning.done().known) == ["a", "c"]

    def test_a_cycle_that_does_not_serve_teaches_nothing(self):
        memory, predictor = Memory(), NameHistory()
        jobs = [a_job(user="user")]
        snapshot = world(jobs=jobs, names=["x"], ended=some_ended(("1", "user", "x", 0, 100)))
        before = memory.state
        for _ in range(3):  # each from the state before, as if no plan had served
            found = predictor.predict(snapshot, memory.context())
            assert found.prediction.run_s.tolist() == [100]
        assert memory.state == before == State()
        assert found.learnt["name-history"].judged == 1
        again = predict_alone(predictor, world(jobs=jobs, names=["x"]), memory)
        assert again.run_s.tolist() == [0]


class TestPolicies:
    def test_any_policy_can_have_any(self):
        for preset in PRESETS:
            for name in ("time-limit", "last-two", "name-history", "oracle"):
                spec = parse_policy({"preset": preset, "predict": name})
                own = name == PRESETS[preset].predict.name
                assert spec.name == (preset if own else f"{preset}+{name}")
                assert build(spec).predict is not None

    def test_an_unknown_one_is_refused(self):
        with pytest.raises(ConfigError, match=r"policy\.predict: no algorithm 'crystal-ball'"):
            predicting(PRESETS["easy"], "crystal-ball")
