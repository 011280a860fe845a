# SPDX-License-Identifier: Apache-2.0
"""Numbers of 64 bits are compared whole: generations, epochs and versions that only look alike.

They look alike modulo 2^32, or as doubles.
"""

import pytest

from bridge.errors import StaleSnapshot
from bridge.model.job import Hold
from tests.unit.rpc.test_session import hold_of, jobs_of
from tests.unit.rpc.worlds import NOW_S, a_delta, a_full, a_hello, a_job, a_session


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
