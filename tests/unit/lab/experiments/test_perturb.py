# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

import numpy as np
import pytest

from bridge.errors import ConfigError
from bridge.lab.experiments.perturb import WEEK_S, numbers_of, perturbed
from bridge.lab.sim.workloads.swf import read_swf
from bridge.lab.sim.workloads.workload import Workload, workload_from
from schedbridge_contracts.workloads import a_workload
from tests.experiment_results import EXCERPT

STEPS = (
    {"ties": True},
    {"weeks": True},
    {"users": True},
    {"load": 1.3},
    {"malleable": 40},
    {"weeks": True, "users": True, "load": 0.8, "ties": True},
)


@pytest.fixture(scope="module")
def kth() -> Workload:
    """The bundled excerpt, spread over four weeks."""
    return perturbed(workload_from(read_swf(EXCERPT)), {"load": 0.4}, 0)


def _rows(workload: Workload) -> list[tuple[int, ...]]:
    columns = (workload.runtime_s, workload.time_limit_s, workload.processors, workload.row)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("parameters", STEPS)
def test_a_seed_gives_the_same_sound_jobs(kth: Workload, parameters: dict[str, object]) -> None:
    made, again = (perturbed(kth, parameters, 7) for _ in range(2))
    for name in ("id", "submit_s", "user", "row", "processors"):
        assert np.array_equal(getattr(made, name), getattr(again, name))
    assert np.all(np.diff(made.submit_s) >= 0)
    assert len(np.unique(made.id.astype(str))) == len(made)
    assert set(_rows(made)) <= set(_rows(kth))
    if parameters.keys() - {"load"}:
        other = perturbed(kth, parameters, 8)
        same = len(other) == len(made) and np.array_equal(other.row, made.row)
        assert not same or other.malleable is not None


def test_ties_change_the_order_within_a_second_alone() -> None:
    workload = a_workload([(s, 10 + n, 100, 1) for s in (5, 9, 9, 9, 9, 9, 12) for n in (1, 2)], 4)
    made = perturbed(workload, {"ties": True}, 3)
    assert np.array_equal(made.submit_s, workload.submit_s)
    assert sorted(made.id) == sorted(workload.id)
    assert not np.array_equal(made.id, workload.id)
    for row, job in enumerate(made.id.tolist()):
        assert made.submit_s[row] == workload.submit_s[int(job) - 1]


def test_load_divides_times_between_submissions() -> None:
    workload = a_workload([(100, 1, 1, 1), (200, 1, 1, 1), (400, 1, 1, 1)], 4)
    assert perturbed(workload, {"load": 2.0}, 0).submit_s.tolist() == [100, 150, 250]
    assert perturbed(workload, {"load": 0.5}, 0).submit_s.tolist() == [100, 300, 700]


def test_weeks_are_drawn_whole() -> None:
    """Week w has w + 1 jobs; after three whole weeks there is a rest."""
    at_s = [(1 + w * WEEK_S + 60 * n, w, n) for w in range(3) for n in range(w + 1)]
    workload = a_workload(
        [(s, 1 + w, 10, 1 + n) for s, w, n in at_s] + [(1 + 3 * WEEK_S, 9, 9, 1)], 9
    )
    seen = set()
    for seed in range(30):
        made = perturbed(workload, {"weeks": True}, seed)
        slot, within = np.divmod(made.submit_s - 1, WEEK_S)
        drawn = made.runtime_s - 1  # the week that a job comes from
        weeks = [np.unique(drawn[slot == each]) for each in range(3)]
        assert [len(each) for each in weeks] == [1, 1, 1]
        assert len(made) == sum(int(each[0]) + 1 for each in weeks)
        assert np.array_equal(within, 60 * (made.processors - 1))
        seen.add(tuple(int(each[0]) for each in weeks))
    assert len(seen) > 8


def test_users_are_drawn_with_all_of_their_jobs() -> None:
    workload = a_workload([(1 + n * 86_400, 1 + n % 5, 10, 1) for n in range(40)], 9)
    workload = replace(workload, user=np.arange(40) % 5 - (np.arange(40) % 5 == 4) * 5)
    for seed in range(20):
        made = perturbed(workload, {"users": True}, seed)
        for user in np.unique(made.user).tolist():
            kinds = np.unique(made.runtime_s[made.user == user])
            assert len(kinds) == 1
            assert np.sum(made.user == user) == 8
        assert np.sum(made.user == -1) == 8
        assert made.submit_s.min() >= 1


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"weeks": True}, "0 whole weeks"),
        ({"users": True}, "names 0 users"),
        ({"load": 0.0}, "must be 0.01"),
        ({"shuffle": True}, "no such step"),
    ],
)
def test_what_a_trace_does_not_allow_is_said(parameters: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        perturbed(a_workload([(1, 1, 1, 1), (2, 1, 1, 1)], 4), parameters, 0)


def test_numbers_are_those_of_the_trace_and_unique() -> None:
    workload = a_workload([(n, 1, 1, 1) for n in range(5)], 4)
    workload = replace(workload, id=np.array(["7", "3", "7.2", "x", "3.4"], dtype=object))
    assert numbers_of(workload).tolist() == [7, 3, 8, 9, 10]
