# SPDX-License-Identifier: Apache-2.0
"""Numbers of 64 bits are compared whole: generations, epochs and versions that only look alike.

They look alike modulo 2^32, or as doubles.
"""

import pytest

from bridge.errors import StaleSnapshot
from bridge.model.job import Hold
from bridge.rpc.pb import scheduler_pb2 as pb
from tests.unit.rpc.test_cycles import conservative_cycles
from tests.unit.rpc.test_offers import choosing_cycles, one, results, starts
from tests.unit.rpc.worlds import (
    NOW_S,
    a_delta,
    a_full,
    a_hello,
    a_job,
    a_session,
    hold_of,
    jobs_of,
)


@pytest.mark.parametrize("generation", [7, 2**32 + 7, 2**53 + 2, 2**63 + 7])
def test_a_generation_is_compared_with_all_its_bits(generation):
    """Alike: modulo powers of 2, and as a double."""
    session = a_session(a_full([a_job("1"), a_job("2")], generation=generation))
    for bit in range(64):
        base = generation ^ 1 << bit
        if base:  # else it is a full report
            delta = a_delta(base, removed_jobs=["1"], generation=2**64 - 1)
            assert not session.apply(delta), bit
    assert session.generation == generation
    assert session.apply(a_delta(generation, removed_jobs=["2"], generation=generation + 1))
    assert list(jobs_of(session)) == ["1"]


@pytest.mark.parametrize("epoch", [5, 2**32 + 5, 2**53 + 2])
def test_an_epoch_is_compared_with_all_its_bits(epoch):
    for other in [epoch ^ 1 << bit for bit in range(64) if epoch ^ 1 << bit]:
        session = a_session(a_full([a_job()], epoch=epoch), epoch=epoch)
        with pytest.raises(StaleSnapshot):
            session.apply(a_delta(1, epoch=other, removed_jobs=["1"]))
        assert list(jobs_of(session)) == ["1"]
        if other < epoch:
            with pytest.raises(StaleSnapshot):
                session.greet(a_hello(epoch=other))
            assert session.apply(a_delta(1, epoch=epoch))
            continue
        session.greet(a_hello(epoch=other))
        with pytest.raises(StaleSnapshot):
            session.apply(a_delta(1, epoch=epoch))


@pytest.mark.parametrize("bit", [0, 9, 31, 32, 53, 63])
def test_a_version_is_compared_with_all_its_bits(bit):
    """The controller makes versions by hashing."""
    version = 2**60 + 2**32 + 1
    session = a_session(a_full([a_job("1", version=version), a_job("11", version=version)]))
    for job in ("1", "11"):
        session.refuse(job, version, "no", NOW_S)
    assert session.apply(a_delta(1, jobs=[a_job("11", version=version ^ 1 << bit)]))
    assert hold_of(session, "1")[0] is Hold.REFUSED
    assert hold_of(session, "11")[0] is Hold.NONE
    versions = {job: int(row["version"]) for job, row in jobs_of(session).items()}
    assert versions == {"1": version, "11": version ^ 1 << bit}


@pytest.mark.parametrize(("features", "said"), [("", False), ("none", False), ("none", True)])
def test_what_was_decided_for_a_version_is_decided_anew_for_another(features, said):
    """A start that is open, a choice that is open, and one that was refused."""
    for bit in range(64):
        jobs = [one(job, features=features) for job in ("1", "11")]
        for job in jobs:
            job.version = 2**60 + 2**32 + 1
        cycles = choosing_cycles()
        reply = cycles.run(a_full(jobs))
        assert [job for job, _, _ in starts(reply)] == ["1", "11"]
        assert starts(cycles.run(a_delta(1, fates=results(reply) if said else []))) == []
        jobs[1].version ^= 1 << bit
        reply = cycles.run(a_delta(2, jobs=jobs[1:]))
        assert [job for job, _, _ in starts(reply)] == ["11"], bit


def test_results_of_a_controller_that_looks_alike_do_not_count():
    for epoch in [5 ^ 1 << bit for bit in range(64)]:
        cycles = conservative_cycles()
        cycles.greet(a_hello(epoch=5))
        made = cycles.run(a_full([a_job("1"), a_job("11")], epoch=5)).decisions
        said = [
            pb.Fate(decision_id=each.id, job_id=each.job_id, outcome=pb.OUTCOME_REFUSED)
            for each in made
        ]
        with pytest.raises(StaleSnapshot):
            cycles.run(a_full(epoch=epoch, fates=said))
        assert len(made) == 2
        assert not cycles.counts.refusals
        assert not cycles.run(a_delta(1, epoch=5)).decisions
