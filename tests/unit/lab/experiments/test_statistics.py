# SPDX-License-Identifier: Apache-2.0
"""The statistics of experiments against naive implementations and simulations of known truth."""

import re
from dataclasses import replace
from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import ConfigError, ResultError
from bridge.lab.experiments.statistics.bootstrap import (
    Blocks,
    block_quantiles,
    mean_interval,
    over_blocks,
    over_both,
    over_runs,
    share_interval,
    weeks_of,
)
from bridge.lab.experiments.statistics.classes import classes_of
from bridge.lab.experiments.statistics.fairness import harm_of
from bridge.lab.experiments.statistics.jobs import Jobs, Trim, pair_of
from bridge.lab.experiments.statistics.quantities import BY_NAME, MEAN_WAIT, OF_JOBS, of_run
from bridge.lab.experiments.statistics.student import below, quantile
from bridge.lab.experiments.statistics.verdict import Finding, holm, verdicts

REPEATS = 300
WEEK_S = 7 * 86_400.0


def some_jobs(submit_s, wait_s, run_s=600.0, width=1, user=0, capacity=64):
    """Jobs of these waits; whatever is one number is that of all."""
    submit_s, wait_s = np.asarray(submit_s, float), np.asarray(wait_s, float)
    n_jobs = len(submit_s)
    run_s = np.broadcast_to(np.asarray(run_s, float), n_jobs)
    return Jobs(
        id=np.arange(n_jobs), user=np.broadcast_to(np.asarray(user), n_jobs), submit_s=submit_s,
        start_s=submit_s + wait_s, end_s=submit_s + wait_s + run_s,
        width=np.broadcast_to(np.asarray(width), n_jobs), limit_s=run_s, run_s=run_s,
        capacity=capacity,
    )  # fmt: skip


# ---------------------------------------------------------------- known truth


@pytest.mark.parametrize("n_runs", [6, 12])
def test_intervals_over_runs_cover_the_truth_at_their_level(n_runs):
    """Runs differ by a level that both sides share; the policy takes 15 % away, on average."""
    covered = 0
    for repeat in range(REPEATS):
        rng = np.random.default_rng([n_runs, repeat])
        base = rng.lognormal(7, 0.4, n_runs)
        other = base * 0.85 * rng.lognormal(-0.005, 0.1, n_runs)
        found = over_runs(base, other, rng)
        covered += found.low <= -0.15 <= found.high
    assert 0.90 <= covered / REPEATS <= 0.98


def weekly(rng, n_weeks, factor):
    """Forty jobs a week; weeks differ in load and in what the policy takes away."""
    week = np.repeat(np.arange(n_weeks), 40)
    base = rng.exponential(1000.0, len(week)) * rng.lognormal(0, 0.5, n_weeks)[week]
    change = rng.lognormal(-0.02, 0.2, n_weeks)[week] * rng.lognormal(-0.125, 0.5, len(week))
    submit_s = np.sort(week * WEEK_S + rng.uniform(0, WEEK_S, len(week)))
    submit_s[0] = 0.0
    return some_jobs(submit_s, base), some_jobs(submit_s, base * factor * change)


def test_intervals_over_weeks_cover_the_truth_at_their_level():
    covered = 0
    for repeat in range(REPEATS):
        rng = np.random.default_rng([16, repeat])
        base, other = weekly(rng, 16, factor=0.85)
        blocks = Blocks.drawn("weeks", weeks_of(base.submit_s), rng)
        found = over_blocks(base, other, blocks, MEAN_WAIT)
        covered += found.low <= -0.15 <= found.high
    assert 0.90 <= covered / REPEATS <= 0.98


def test_intervals_over_runs_and_weeks_cover_the_truth_at_their_level():
    """Chance moves each run by 5 %; weeks differ as above."""
    covered = 0
    for repeat in range(REPEATS // 2):
        rng = np.random.default_rng([17, repeat])
        jobs = weekly(rng, 16, factor=0.85)
        means = [one.wait_s.mean() * rng.lognormal(-0.00125, 0.05, 6) for one in jobs]
        blocks = Blocks.drawn("weeks", weeks_of(jobs[0].submit_s), rng)
        found = over_both((means[0], means[1]), jobs, blocks, MEAN_WAIT, rng=rng)
        assert (found.over, found.units) == ("runs and weeks", 6)
        covered += found.low <= -0.15 <= found.high
    assert 0.90 <= covered / (REPEATS // 2) <= 0.995


def test_a_policy_compared_with_itself_seldom_differs():
    """A/A: both sides are drawn alike. At 5 %, 2 to 8 % of the tests may cry wolf."""
    cried = 0
    for repeat in range(REPEATS):
        rng = np.random.default_rng([77, repeat])
        level = rng.lognormal(7, 0.4, 10)
        base, other = (level * rng.lognormal(0, 0.1, 10) for _ in range(2))
        (verdict,) = verdicts([(MEAN_WAIT, over_runs(base, other, rng))])
        cried += verdict.outcome is not Finding.NOT_SHOWN
    assert 0.02 <= cried / REPEATS <= 0.08


def test_a_table_of_policies_compared_with_themselves_seldom_holds_a_difference():
    """Holm: of tables with eight comparisons that differ in nothing, 5 % show one."""
    cried = 0
    for repeat in range(100):
        rng = np.random.default_rng([78, repeat])
        table = []
        for _ in range(8):
            level = rng.lognormal(7, 0.4, 10)
            base, other = (level * rng.lognormal(0, 0.1, 10) for _ in range(2))
            table.append((MEAN_WAIT, over_runs(base, other, rng)))
        cried += any(one.outcome is not Finding.NOT_SHOWN for one in verdicts(table))
    assert cried <= 12


# ---------------------------------------------------------------- naive implementations


@given(st.data())
def test_block_quantiles_are_those_of_repeated_values(data):
    n_values = data.draw(st.integers(1, 700))
    n_blocks = data.draw(st.integers(1, 12))
    share = data.draw(st.sampled_from((0.0, 0.3, 0.5, 0.95, 0.99, 1.0)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    values = rng.integers(0, data.draw(st.sampled_from((3, 10_000))), n_values).astype(float)
    block = rng.integers(0, n_blocks, n_values)
    weights = rng.integers(0, 3, (5, n_blocks)).astype(float)
    for found, drawn in zip(
        block_quantiles(values, block, weights, share), weights.astype(int), strict=True
    ):
        repeated = np.repeat(values, drawn[block])
        if len(repeated):
            assert found == pytest.approx(np.quantile(repeated, share), abs=1e-6)
        else:
            assert isnan(found)


jobs_lists = st.lists(
    st.tuples(
        st.integers(0, 10_000),  # submission
        st.integers(0, 5_000),  # wait
        st.integers(0, 90_000),  # run time
        st.integers(1, 64),  # width
        st.integers(1, 4),  # user
    ),
    min_size=1,
    max_size=40,
)


@given(jobs_lists)
def test_measures_are_those_of_a_naive_implementation(listed):
    submit, wait, run, width, user = zip(*listed, strict=True)
    jobs = some_jobs(submit, wait, run, width, user)
    slow = [max(1.0, (w + r) / max(r, 10)) for w, r in zip(wait, run, strict=True)]
    work = [n * r for n, r in zip(width, run, strict=True)]
    users = {u: [s for s, other in zip(slow, user, strict=True) if other == u] for u in user}
    squares = sum(a * w * w for a, w in zip(work, wait, strict=True))
    expected = {
        "wait_mean": sum(wait) / len(wait),
        "wait_median": np.quantile(wait, 0.5),
        "wait_p95": np.quantile(wait, 0.95),
        "wait_p99": np.quantile(wait, 0.99),
        "wait_max": max(wait),
        "response_mean": sum(w + r for w, r in zip(wait, run, strict=True)) / len(wait),
        "bounded_slowdown": sum(slow) / len(slow),
        "wait_power_mean": (squares / sum(work)) ** 0.5 if sum(work) else 0.0,
        "user_slowdown": sum(sum(s) / len(s) for s in users.values()) / len(users),
    }
    assert expected.keys() == {quantity.name for quantity in OF_JOBS}
    for name, value in expected.items():
        assert BY_NAME[name].of(jobs) == pytest.approx(value), name


@given(jobs_lists, st.integers(0, 5_000))
def test_harm_and_utilisation_are_those_of_a_naive_implementation(listed, later_s):
    submit, wait, run, width, user = zip(*listed, strict=True)
    base = some_jobs(submit, wait, run, width, user)
    other = some_jobs(submit, [w + later_s * (i % 2) for i, w in enumerate(wait)], run, width, user)
    worse = [
        later_s * (i % 2) > 60 and later_s * (i % 2) > 0.1 * w for i, w in enumerate(wait)
    ]  # fmt: skip
    assert harm_of(base, other).jobs_worse == pytest.approx(sum(worse) / len(worse))
    longer = [r + later_s * (i % 2) for i, r in enumerate(run)]  # run, not wait: the same harm
    assert harm_of(base, some_jobs(submit, wait, longer, width, user)).jobs_worse == pytest.approx(
        sum(worse) / len(worse)
    )
    assert harm_of(other, base).jobs_better >= 0
    assert harm_of(base, base) == harm_of(other, other)
    assert harm_of(base, base).worst_user == 1.0
    pair = pair_of(base, other, Trim(0, 0))
    found = of_run(pair)
    ends = [s + w + r for s, w, r in zip(submit, wait, run, strict=True)]
    assert found["makespan"][0] == max(ends) - min(submit)
    if (length := max(submit) - min(submit)) == 0:
        assert "utilisation" not in found
        return
    held = sum(
        n * max(0, min(e, max(submit)) - max(e - r, min(submit)))
        for n, e, r in zip(width, ends, run, strict=True)
    )
    assert found["utilisation"][0] == pytest.approx(held / (64 * length))


@given(st.lists(st.one_of(st.just(nan), st.floats(0, 1)), max_size=12))
def test_holm_rejects_what_the_procedure_of_the_paper_rejects(p):
    known = sorted(value for value in p if not isnan(value))
    rejected = 0
    while rejected < len(known) and known[rejected] < 0.05 / (len(known) - rejected) * (1 - 1e-12):
        rejected += 1
    found = holm(p)
    assert sum(value < 0.05 * (1 - 1e-9) for value in found) == rejected
    assert [isnan(value) for value in found] == [isnan(value) for value in p]


@pytest.mark.parametrize(
    ("freedom", "t"), [(1, 12.706), (2, 4.303), (5, 2.571), (10, 2.228), (29, 2.045), (5000, 1.960)]
)
def test_students_distribution_is_that_of_the_printed_tables(freedom, t):
    assert quantile(0.975, freedom) == pytest.approx(t, abs=5e-4)
    assert quantile(0.025, freedom) == pytest.approx(-t, abs=5e-4)
    assert below(t, freedom) == pytest.approx(0.975, abs=1e-4)


# ---------------------------------------------------------------- pairs, classes, too little


def test_jobs_are_paired_by_id_and_judged_alike():
    base = some_jobs(range(20), [5.0] * 20)
    mixed = np.random.default_rng(3).permutation(20)
    other = some_jobs(range(20), np.arange(20.0))[mixed]
    pair = pair_of(base, other[other.id != 7], Trim(0.1, 0.2))
    assert pair.unpaired == 1
    assert np.array_equal(pair.base.id, pair.other.id)
    assert pair.other.wait_s.tolist() == [float(i) for i in range(20) if i != 7]
    assert pair.base.id[pair.judged].tolist() == [i for i in range(1, 16 + 1) if i != 7]


def test_runs_of_other_workloads_are_no_pair():
    base = some_jobs(range(5), [0.0] * 5)
    with pytest.raises(ResultError, match=r"job 0 differs.*same workload"):
        pair_of(base, some_jobs(range(1, 6), [0.0] * 5), Trim(), "here")
    with pytest.raises(ResultError, match="no job in common"):
        pair_of(base, base[base.id > 9], Trim(), "here")
    with pytest.raises(ResultError, match="the same id"):
        pair_of(base[np.array([0, 0])], base, Trim(), "here")


@pytest.mark.parametrize("shares", [(0.5, 0.5), (-0.1, 0), (0, 1), (nan, 0)])
def test_a_trim_that_leaves_nothing_is_refused(shares):
    with pytest.raises(ConfigError, match="leave no jobs"):
        Trim(*shares)


def test_classes_split_the_jobs_at_their_edges():
    jobs = some_jobs(
        range(7), [0.0] * 7, [600, 601, 3600, 3601, 28_800, 28_801, 0], [1, 2, 8, 9, 32, 33, 64],
        [1] * 7,
    )  # fmt: skip
    found = {c.name: np.flatnonzero(rows).tolist() for c, rows in classes_of(jobs)}
    assert found == {
        "all jobs": list(range(7)),
        "1 processor": [0], "up to 1/8 of the machine": [1, 2], "up to 1/2": [3, 4],
        "over 1/2": [5, 6],
        "up to 10 min": [0, 6], "10 min to 1 h": [1, 2], "1 h to 8 h": [3, 4], "over 8 h": [5],
        "users with up to 10 jobs": list(range(7)),
    }  # fmt: skip


def test_too_few_units_give_no_interval():
    rng = np.random.default_rng(1)
    few = over_runs(np.ones(4), np.full(4, 0.5), rng)
    assert (few.difference, few.has_interval, few.over) == (-0.5, False, "")
    assert isnan(mean_interval(np.ones(4), rng)[0])
    base, other = weekly(rng, 7, factor=0.5)
    blocks = Blocks.drawn("weeks", weeks_of(base.submit_s), rng)
    assert not over_blocks(base, other, blocks, MEAN_WAIT).has_interval
    assert isnan(share_interval(base.wait_s > 0, blocks)[0])
    base, other = weekly(rng, 20, factor=0.5)
    blocks = Blocks.drawn("weeks", weeks_of(base.submit_s), rng)
    assert not over_blocks(base, other, blocks, BY_NAME["wait_max"]).has_interval
    runs = np.ones(6), np.linspace(0.5, 0.6, 6)
    longest = over_both(runs, (base, other), blocks, BY_NAME["wait_max"], rng=rng)
    assert (longest.over, longest.has_interval) == ("runs", True)
    early = base.submit_s < 7 * WEEK_S
    few = over_both(runs, (base[early], other[early]), blocks[early], MEAN_WAIT, rng=rng)
    assert (few.over, few.has_interval) == ("", False)  # not that of the runs alone
    nobody = some_jobs(base.submit_s, base.wait_s * 0)
    zero = over_both(runs, (nobody, other), blocks, MEAN_WAIT, rng=rng)
    assert (zero.over, zero.relative, zero.low > 0) == ("weeks", False, True)
    low, high = share_interval(other.wait_s < base.wait_s, blocks)
    assert low < (other.wait_s < base.wait_s).mean() < high


@pytest.mark.parametrize(
    ("base", "other", "name", "words"),
    [
        (100.0, 85.0, "wait_mean", "better by 1[0-9] to [12][0-9] %"),
        (100.0, 150.0, "wait_mean", "worse by [34][0-9] to [56][0-9] %"),
        (0.5, 0.6, "utilisation", "better by 1[0-9] to 2[0-9] %"),
        (100.0, 100.2, "wait_mean", r"no difference shown \(-[0-9.]+ to \+[0-9.]+ %\)"),
    ],
)
def test_verdicts_are_words(base, other, name, words):
    rng = np.random.default_rng(4)
    noise = rng.normal(1, 0.04, 12)
    found = over_runs(np.full(12, base), other * noise / noise.mean(), rng)
    (verdict,) = verdicts([(BY_NAME[name], found)])
    assert re.fullmatch(words, verdict.words), verdict.words


def test_a_verdict_over_blocks_alone_says_so():
    found = over_runs(np.full(8, 100.0), np.arange(80.0, 88), np.random.default_rng(4))
    assert verdicts([(MEAN_WAIT, found)])[0].words.endswith(" %")
    for over in ("weeks", "users"):
        (verdict,) = verdicts([(MEAN_WAIT, replace(found, over=over))])
        assert verdict.words.endswith(" %, in these runs alone")
        assert verdict.outcome is Finding.BETTER


def test_verdicts_of_special_cases():
    rng = np.random.default_rng(4)
    same = over_runs(np.arange(1.0, 9), np.arange(1.0, 9), rng)
    grown = over_runs(np.zeros(8), np.full(8, 120.0), rng)
    few = over_runs(np.ones(2), np.ones(2) * 2, rng)
    judged = verdicts([(MEAN_WAIT, same), (MEAN_WAIT, grown), (MEAN_WAIT, few)])
    assert [one.words for one in judged] == [
        "no difference: all values are equal",
        "worse by 2 min",
        "too few runs to say (+100 % here)",
    ]
    assert [one.family for one in judged] == [2, 2, 2]
    weak = over_runs(100 + rng.normal(0, 5, 6), 94 + rng.normal(0, 4, 6), rng)
    assert weak.p < 0.05
    many = verdicts([(MEAN_WAIT, weak)] * 40)
    assert all("not after Holm's correction for 40 comparisons" in one.words for one in many)
