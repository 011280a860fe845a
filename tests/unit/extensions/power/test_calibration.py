# SPDX-License-Identifier: Apache-2.0
"""The line through what metered nodes reported."""

import os

import numpy as np
import pytest

from bridge.extensions.power.calibration import MIN_READINGS, NodeReports, calibrations, fitted
from bridge.extensions.power.rules import NodePower, PowerRules
from bridge.model.rules.node_set import NodeSet
from schedbridge_contracts.builders import a_node, a_snapshot
from schedbridge_contracts.crosses import each

SEED = int(os.environ.get("SCHEDBRIDGE_SEED", "0"))


def readings(idle_w, max_w, loads, noise_w=0.0, each=20, seed=SEED):
    rng = np.random.default_rng(seed)
    load = np.repeat(np.array(loads, dtype=float), each)
    return load, idle_w + (max_w - idle_w) * load + rng.uniform(-noise_w, noise_w, len(load))


def test_an_exact_line_is_found():
    line = fitted(*readings(71, 250, [0, 0.5, 1]))
    assert (line.idle_w, line.max_w, line.error_w, line.problem) == (71, 250, 0, "")
    assert (line.least_load, line.most_load) == (0, 1)


@each(seed=range(SEED, SEED + 20))
def test_a_noisy_line_is_found_within_its_noise_and_max_covers_the_readings(seed):
    load, watts = readings(71, 250, [0.02, 0.3, 0.97], noise_w=10, each=32, seed=seed)
    line = fitted(load, watts)
    assert abs(line.idle_w - 71) <= 10
    assert 250 - 10 <= line.max_w <= 250 + 25
    model_w = line.idle_w + (line.max_w - line.idle_w) * load
    assert np.mean(watts[load > 0.5] > model_w[load > 0.5] + 1) <= 0.1


def test_a_few_absurd_readings_and_long_idle_times_do_not_decide():
    load, watts = readings(71, 250, [0, 1])
    watts[[0, 25]] = 100_000, 1
    idle = readings(71, 250, [0], each=2000)
    line = fitted(np.concatenate((load, idle[0])), np.concatenate((watts, idle[1])))
    assert (line.idle_w, line.max_w) == (71, 250)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (readings(71, 250, [0, 1], each=MIN_READINGS - 1), "only 10 readings"),
        (readings(71, 250, [0, 0.2]), "loads of 0% to 20% only"),
        (readings(71, 250, [1]), "loads of 100% only"),
        (readings(250, 71, [0, 1]), "less power under a higher load"),
        (readings(-50, 100, [0.5, 1]), "less than nothing"),
        ((np.empty(0), np.empty(0)), "only 0 readings"),
    ],
)
def test_what_no_line_fits_is_a_problem(given, words):
    line = fitted(*given)
    assert words in line.problem
    assert (line.idle_w, line.max_w) == (0, 0)


# ------------------------------------------------------------------ types of nodes


def curve(idle_w, max_w, loads=(0, 1), *, source="rapl", metered=True):
    load, watts = readings(idle_w, max_w, loads)
    return NodeReports(source, metered, tuple(load), tuple(watts))


def a_cluster(*cpus):
    return a_snapshot(nodes=[a_node(cpus=each) for each in cpus])()


def test_nodes_of_one_type_are_fitted_together_and_the_first_entry_counts():
    snapshot = a_cluster(4, 4, 4, 4)
    names = snapshot.nodes.names
    types = (
        NodePower("fat", NodeSet(names=names[:1]), 100, 400),
        NodePower("fast", NodeSet(names=names[:2]), 1, 2),
        NodePower("gone", NodeSet(features="gpu"), 1, 2),
        NodePower("rest", NodeSet(), 50, 60),
    )
    curves = {
        names[0]: curve(90, 390),
        names[1]: curve(60, 160, source="model", metered=False),
        names[2]: curve(55, 200, (0,)),
        names[3]: curve(55, 200, (1,)),
    }
    fat, fast, gone, rest = calibrations(PowerRules(node_types=types), snapshot, curves)
    assert (fat.name, fat.members, fat.before_w) == ("fat", names[:1], (100, 400))
    assert (fat.line.idle_w, fat.line.max_w, fat.metered, fat.readings) == (90, 390, 1, 40)
    assert "none of them has a meter" in fast.line.problem
    assert (fast.metered, fast.readings) == (0, 0)
    assert (gone.members, gone.line.problem) == ((), "the cluster has no such node")
    assert (rest.nodes, rest.metered, rest.members) == (None, 2, names[2:])
    assert (rest.line.idle_w, rest.line.max_w) == (55, 200)
    silent = calibrations(PowerRules(node_types=types), snapshot, {})
    problems = [each.line.problem for each in silent if each.members]
    assert all("no agent reports" in problem for problem in problems)


def test_without_stated_types_nodes_of_equal_capacity_are_one_and_most_of_them_the_rest():
    snapshot = a_cluster(4, 8, 8, 4, 8)
    names = snapshot.nodes.names
    small, rest = calibrations(None, snapshot, {names[1]: curve(55, 200)})
    assert (small.name, small.members) == ("4 CPUs", (names[0], names[3]))
    assert small.nodes == NodeSet(names=small.members)
    assert (rest.name, rest.nodes, rest.before_w, len(rest.members)) == ("8 CPUs", None, None, 3)
    assert (rest.line.idle_w, rest.line.max_w) == (55, 200)
