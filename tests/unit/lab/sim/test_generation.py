# SPDX-License-Identifier: Apache-2.0
"""Generated jobs: the published model's moments, and what a fitted model keeps."""

from collections import Counter

import numpy as np
import pytest

from bridge.errors import ConfigError
from bridge.lab.sim.workloads.generation import lublin as model
from bridge.lab.sim.workloads.generation.fitted import HOUR_S, WEEK_S, fit
from bridge.lab.sim.workloads.generation.mixes import (
    load_of,
    records_of,
    records_of_trace,
    with_gpus,
    with_load,
    with_memory,
)
from bridge.lab.sim.workloads.records.as_swf import as_swf
from bridge.lab.sim.workloads.records.job_record import JobRecord, SiteWorkload
from bridge.lab.sim.workloads.records.lowering import simulation_of
from bridge.lab.sim.workloads.swf import Field
from bridge.lab.sim.workloads.system import read_system

N = 60_000


@pytest.fixture(scope="module")
def drawn():
    return model.lublin(N, 128, 7)


def test_sizes_are_those_of_the_published_parameters(drawn):
    size = drawn.processors
    parallel = size[size > 1]
    assert np.mean(size == 1) == pytest.approx(0.244, abs=0.006)
    # Powers of two: 0.576 of all are rounded to one; few of the others are one by chance.
    powers = np.mean((parallel & (parallel - 1)) == 0) * len(parallel) / N
    assert 0.576 < powers < 0.70
    # Of log2, before rounding: two uniform pieces, [0.8, 4.5] with 0.86 and [4.5, 7].
    assert np.log2(parallel).mean() == pytest.approx(0.86 * 2.65 + 0.14 * 5.75, abs=0.03)
    assert np.mean(parallel > 2**4.5) == pytest.approx(0.14, abs=0.01)
    assert (size.min(), size.max()) == (1, 128)


def test_run_times_are_hyper_gamma_and_depend_on_the_size():
    dice = np.random.default_rng(3)
    for size in (1.0, 32.0, 128.0):
        logs = np.log(model.runtimes_s(np.full(N, size), dice))
        short = 0.78 - 0.0054 * size
        mean = short * 4.2 * 0.94 + (1 - short) * 312 * 0.03
        assert logs.mean() == pytest.approx(mean, abs=0.1)  # whole seconds, and at most e^12
        assert logs.max() <= 12
    # More long jobs among large ones.
    assert np.median(model.runtimes_s(np.full(999, 128.0), dice)) > 3600


def test_arrivals_follow_the_cycle_of_the_day(drawn):
    points = model.bucket_points()
    assert points.mean() == pytest.approx(1)
    counted = np.bincount(drawn.submit_s % 86_400 // 1800, minlength=48) / N * 48
    assert np.abs(counted - points).max() < 0.3
    assert np.corrcoef(counted, points)[0, 1] > 0.99
    # The mean of gamma(8.1737, 3.9631) is bucket 32.4 of the day: a quarter past four.
    assert 26 <= int(np.argmax(points)) <= 32
    # E[e^x] of the gamma distribution, of which values above 13 are left out.
    dice = np.random.default_rng(1)
    gaps = dice.gamma(10.2303 * 1.0225, 0.4871, 10**6)
    mean_s = np.exp(gaps[gaps <= 13]).mean()
    assert drawn.submit_s[-1] / N == pytest.approx(mean_s, rel=0.06)


def test_limits_are_common_ones_that_no_job_exceeds(drawn):
    assert (drawn.time_limit_s >= drawn.runtime_s).all()
    assert set(drawn.time_limit_s.tolist()) <= set(model.LIMITS_S.tolist())
    assert 0.2 < np.mean(drawn.runtime_s / drawn.time_limit_s) < 0.5
    with pytest.raises(ConfigError, match="8 processors and more"):
        model.lublin(5, 4, 0)


def test_the_seed_decides(drawn):
    again, other = model.lublin(N, 128, 7), model.lublin(N, 128, 8)
    assert all(
        np.array_equal(a, b)
        for a, b in zip(vars(drawn).values(), vars(again).values(), strict=True)
    )
    assert not np.array_equal(drawn.submit_s, other.submit_s)
    assert model.lublin(500, 1024, 1).processors.max() > 128


def test_memory_gpus_and_load(tmp_path):
    jobs = records_of(model.lublin(2000, 128, 1))
    dice = np.random.default_rng(1)
    jobs = with_gpus(with_memory(jobs, 100, 1000, dice), 0.25, 4, 16, dice)
    memory = np.array([job.memory_mib for job in jobs])
    assert (memory.min() >= 99, memory.max() <= 1000) == (True, True)
    assert np.median(memory) == pytest.approx(316, rel=0.1)
    asking = [job for job in jobs if job.gres]
    assert len(asking) == pytest.approx(500, abs=60)
    assert {job.gres["gpu"] // job.nodes for job in asking} == {1, 2, 4}
    assert all(job.nodes == -(-job.cpus // 16) for job in asking)
    scaled = with_load(jobs, 128, 0.5)
    assert load_of(scaled, 128) == pytest.approx(0.5, rel=1e-3)
    path = tmp_path / "s.yaml"
    path.write_text(
        'nodes: [{names: "n[1-8]", cpus: 16, memory_mib: 16000, gres: {gpu: 4}}]\n'
        "use_memory: true\n"
    )
    site = SiteWorkload("s", scaled)
    found = simulation_of(site, read_system(path), 128)
    assert len(found.workload) > 1990  # a few on few nodes ask for too much of one
    assert found.ignored == ()


def record(number, submit_s, user, **more):
    return JobRecord(str(number), submit_s, user=user, cpus=2, runtime_s=60, **more)


def test_sessions_hours_and_dependencies_are_kept():
    """Slow: the draws are long enough that their means say something."""
    weeks = 6
    given = []
    for day in range(7 * weeks):
        at = 86_400 * day + 10 * HOUR_S
        given += [
            record(len(given) + 1, at, "ann", time_limit_s=500, gres={"gpu": 1}),
            record(len(given) + 2, at + 600, "ann", after=(("afterok", str(len(given) + 1)),)),
        ]
        if day % 7 == 0:
            given.append(record(len(given) + 1, at + 5 * HOUR_S, "bob", partitions=("night",)))
    fitted = fit(given)
    origin_s = given[0].submit_s
    assert len(fitted.sessions) == 7 * weeks + weeks
    once = fitted.draw(fitted.weeks, 4)
    assert Counter(job.user for job in once) == Counter(job.user for job in given)
    nights = [(job.submit_s - origin_s) // (168 * HOUR_S) for job in once if job.partitions]
    assert nights != sorted(set(nights))  # not one in each week
    week = fit([job for job in given if job.submit_s - origin_s < 168 * HOUR_S])
    times = [tuple(job.submit_s for job in week.draw(week.weeks, seed)) for seed in range(5)]
    assert len(set(times)) == 5  # even where there is no other week
    twice = fitted.draw(2 * weeks, 4)
    assert Counter(job.user for job in twice) == {"ann": 4 * 7 * weeks, "bob": 2 * weeks}
    drawn = fitted.draw(200, 1)
    assert [job.submit_s for job in drawn] == sorted(job.submit_s for job in drawn)
    assert len({job.id for job in drawn}) == len(drawn)
    firsts = [job for job in drawn if job.gres]
    assert len(firsts) == pytest.approx(7 * 200, rel=0.08)
    assert {(job.submit_s - origin_s) // HOUR_S % 24 for job in firsts} == {0}
    nights = [job for job in drawn if job.partitions]
    assert {(job.submit_s - origin_s) // HOUR_S % 168 for job in nights} == {5}
    after = {job.id: job.after for job in drawn if job.after}
    assert len(after) == len(firsts)
    by_id = {job.id: job for job in drawn}
    for name, ((kind, before),) in after.items():
        assert kind == "afterok"
        assert by_id[name].submit_s - by_id[before].submit_s == 600
    assert len(fitted.draw(200, 1, 2.0)) == pytest.approx(2 * len(drawn), rel=0.08)
    assert fitted.draw(3, 5) == fitted.draw(3, 5) != fitted.draw(3, 6)
    with pytest.raises(ConfigError, match="are more than"):
        fitted.draw(1e9, 1)
    short = fit([record(number, number, "ann") for number in range(2000)])  # half an hour
    assert len(short.draw(52, 1)) == 52 * 2000
    with pytest.raises(ConfigError, match="has no jobs"):
        fit([])


def test_whole_days_keep_who_avoids_whom():
    given = []
    for day in range(40 * 7):
        user, size = ("ann", 3) if day // 7 % 2 else ("bob", 1)  # ann's weeks are not bob's
        at = 86_400 * day + 9 * HOUR_S
        given += [record(len(given) + n, at + 60 * n, user) for n in range(size)]
    fitted = fit(given)
    for load, maximum in ((1.0, 1), (0.5, 1), (2.0, 2)):
        drawn = fitted.draw(60, 3, load, whole_days=True)
        days = {}
        for job in drawn:
            days.setdefault((job.submit_s - fitted.origin_s) // 86_400, []).append(job)
        assert len(drawn) == pytest.approx(60 * 7 * 2 * load, rel=0.1)
        assert max(len({job.user for job in each}) for each in days.values()) == maximum
        assert {len(each) for each in days.values()} <= {1, 3, 2, 4, 6}
    assert [job.plain() for job in fitted.draw(3, 1, whole_days=True)] == [
        job.plain() for job in fitted.draw(3, 1, whole_days=True)
    ]
    assert max((job.submit_s for job in fitted.draw(1 / 168, 1, whole_days=True)), default=0) < (
        fitted.origin_s + HOUR_S
    )


def test_arrays_keep_their_tasks_together():
    given = [
        record("5_1", 100, "ann", array="5"),
        record("5_2", 100, "ann", array="5"),
        record("9", 110, "ann", after=(("afterany", "5"), ("afterok", "77"))),
    ]
    drawn = fit(given).draw(50, 2)
    tasks = [job for job in drawn if job.array]
    assert len(tasks) % 2 == 0
    assert all(job.id.startswith(f"{job.array}_") for job in tasks)


def test_a_trace_becomes_records_and_is_the_same_trace_again():
    jobs = records_of(model.lublin(300, 128, 1))
    trace = as_swf(SiteWorkload("t", jobs, processors=128))
    again = as_swf(SiteWorkload("t", records_of_trace(trace), processors=128))
    same = [Field.SUBMIT_S, Field.RUNTIME_S, Field.REQUESTED_PROCESSORS, Field.REQUESTED_TIME_S]
    assert np.array_equal(trace.columns[:, same], again.columns[:, same])
    assert WEEK_S == 604_800
