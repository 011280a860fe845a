# SPDX-License-Identifier: Apache-2.0
"""Some hundreds of senseless messages, the same in every run; `scripts/test fuzz` sends a million.

SCHEDBRIDGE_SEED=N sends those of that episode alone.
"""

import os
import random
from collections import Counter

import pytest

from bridge.rpc.pb import scheduler_pb2 as pb
from tests.fuzz.harness import MESSAGES, Broken, Episode
from tests.fuzz.mutation import mutated, mutated_bytes
from tests.unit.rpc.worlds import a_full, a_job

GIVEN = os.environ.get("SCHEDBRIDGE_SEED")
SEEDS = [int(GIVEN)] if GIVEN else range(20)


def test_every_report_that_is_taken_gets_a_legal_plan(caplog):
    """Slow: 20 services and 400 reports."""
    caplog.set_level("CRITICAL", "bridge")
    counts = Counter()
    for seed in SEEDS:
        counts += Episode(seed).run()
    assert counts["messages"] == len(SEEDS) * MESSAGES
    assert GIVEN or counts["planned"] > counts["messages"] / 5  # else it proves little


def test_a_plan_that_is_illegal_is_noticed(monkeypatch):
    monkeypatch.setattr("tests.fuzz.harness.check", lambda *_: ("some violation",))
    with pytest.raises(Broken, match=r"some violation\n.*--seed 1\n"):
        Episode(1).run()


def test_an_error_that_is_not_documented_is_noticed(monkeypatch):
    def fail(*_):
        raise KeyError("x")

    monkeypatch.setattr("bridge.rpc.reported.cluster.read_partitions", fail)
    with pytest.raises(Broken, match=r"KeyError: 'x'\n"):
        Episode(1).run()


def test_mutations_repeat_and_differ():
    def some(seed):
        rng, message = random.Random(seed), a_full([a_job()])
        mutated(rng, message, 5)
        return mutated_bytes(rng, message.SerializeToString())

    assert some(1) == some(1)
    assert len({some(seed) for seed in range(50)}) == 50
    fields = set()
    for seed in range(2000):
        message = a_full([a_job()])
        mutated(random.Random(seed), message, 3)
        fields |= {field.name for job in message.jobs for field, _ in job.ListFields()}
    assert fields == {field.name for field in pb.Job.DESCRIPTOR.fields}
