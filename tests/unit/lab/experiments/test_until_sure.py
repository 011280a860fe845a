# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from bridge.errors import ConfigError, ResultError
from bridge.lab.experiments.results import DONE, CellResult, write_cell
from bridge.lab.experiments.until_sure import until_sure
from tests.experiment_results import PROCESSORS, a_cell, made_columns, write_made


def keep(folder, seeds, noise, policies=("easy", "conservative")):
    """Cells whose waits differ between policies by 20 %, give or take the noise."""
    for policy in policies:
        for seed in seeds:
            dice = np.random.default_rng([seed, len(policy)])
            factor = (1.2 if policy == "conservative" else 1.0) * (1 + noise * dice.normal())
            columns = made_columns(seed, n_jobs=60, factor=factor)
            result = CellResult(a_cell(policy, seed=seed), DONE, {}, {"processors": PROCESSORS})
            write_cell(folder, result, columns)


def test_it_asks_for_seeds_until_the_intervals_are_narrow(tmp_path):
    seeds = 2
    keep(tmp_path, range(seeds), noise=0.05)
    first = until_sure(tmp_path, 0.05)
    assert (first.more_seeds, first.wide[0].width) == (3, None)
    assert "conservative on made has no interval yet; 3 more seeds" in first.words
    for _ in range(20):
        found = until_sure(tmp_path, 0.05)
        if not found.more_seeds:
            break
        assert found.more_seeds <= max(3, seeds)
        keep(tmp_path, range(seeds, seeds + found.more_seeds), noise=0.05)
        seeds += found.more_seeds
    assert found.sure
    assert found.words == "sure: the intervals of all 1 comparisons are at most 5 % wide"
    assert 10 < seeds < 100


def test_it_stops_at_the_cap(tmp_path):
    keep(tmp_path, range(6), noise=0.3)
    found = until_sure(tmp_path, 0.01, max_seeds=8)
    assert (found.more_seeds, found.sure) == (2, False)
    assert "the cap of 6 seeds is reached" in until_sure(tmp_path, 0.01, max_seeds=6).words


def test_it_stops_where_seeds_change_nothing(tmp_path):
    for policy, factor in (("easy", 1.0), ("conservative", 1.2)):
        for seed in range(6):
            columns = made_columns(0, factor=factor)
            result = CellResult(a_cell(policy, seed=seed), DONE, {}, {"processors": PROCESSORS})
            write_cell(tmp_path, result, columns)
    found = until_sure(tmp_path, 0.05)
    assert (found.more_seeds, found.sure) == (0, False)
    assert "further seeds change nothing there: add a perturbation" in found.words


def test_wrong_inputs_are_told(tmp_path):
    with pytest.raises(ConfigError, match="not a share"):
        until_sure(tmp_path, 0)
    with pytest.raises(ConfigError, match="'speed' is unknown; there are wait_mean"):
        until_sure(tmp_path, 0.1, measure="speed")
    with pytest.raises(ResultError, match="has no results"):
        until_sure(tmp_path, 0.1)
    write_made(tmp_path, {"easy": 1.0})
    with pytest.raises(ResultError, match="nothing to compare with easy"):
        until_sure(tmp_path, 0.1)
