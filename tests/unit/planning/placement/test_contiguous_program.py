# SPDX-License-Identifier: Apache-2.0
"""The 0-1 program by two solvers has the optimum of the dynamic programme."""

import builtins
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_bench.placement import SAMPLE, hop_tree_for, read_instances

from bridge.errors import ConfigError
from bridge.model.hop_tree import HopTree, Metric
from bridge.model.topology import Topology, regular

sys.path.append(str(Path(__file__).parents[4] / "benchmarks" / "placement"))
from contiguous_program import BySolver, Program, by_cp_sat, by_scip

WINDOWS = sorted(read_instances(SAMPLE), key=lambda one: len(one.idle) * int(one.sizes.sum()))
SOLVERS = {"cp-sat": by_cp_sat, "scip": by_scip}
RNG = np.random.default_rng(0)


def ints(values):
    return np.array(values, dtype=np.int32)


def cost(hop_tree, solve, idle, sizes, limit_s=0.0):
    found = BySolver(solve, limit_s).place_jobs(hop_tree, idle, sizes, RNG)
    assert set(found[1].tolist()) <= set(idle.tolist())
    assert len(set(found[1].tolist())) == len(found[1])
    whole = np.array_equal(np.diff(found[0]), sizes)
    return float(hop_tree.costs(found).sum()) if whole else None


@pytest.mark.parametrize("metric", Metric)
@pytest.mark.parametrize("solver", SOLVERS)
def test_bundled_windows(solver, metric):
    """The smaller ones; benchmarks/placement/windows.py --solvers does all of them."""
    if solver == "scip":
        pytest.importorskip("pyscipopt")
    hop_tree = hop_tree_for(metric, None, WINDOWS)
    for one in WINDOWS[: 30 if solver == "cp-sat" else 8]:
        best = hop_tree.costs(hop_tree.tree.contiguous(hop_tree.metric, one.idle, one.sizes)).sum()
        assert cost(hop_tree, SOLVERS[solver], one.idle, one.sizes) == pytest.approx(best), one.name


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_random_windows_on_two_fabrics(data):
    """Five leaves of unequal size under two roots: runs across them do not exist."""
    leaf = np.repeat(np.arange(5), data.draw(st.lists(st.integers(1, 4), min_size=5, max_size=5)))
    topology = Topology(tuple("abcdefg"), ints([5, 5, 5, 6, 6, -1, -1]), leaf.astype(np.int32))
    hop_tree = HopTree.of(topology)
    idle = ints(sorted(data.draw(st.sets(st.integers(0, len(leaf) - 1), min_size=2))))
    sizes = ints(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    indptr, nodes = hop_tree.tree.contiguous(hop_tree.metric, idle, sizes)
    best = float(hop_tree.costs((indptr, nodes)).sum()) if len(nodes) else None
    assert cost(hop_tree, by_cp_sat, idle, sizes) == pytest.approx(best)
    pytest.importorskip("pyscipopt")
    assert cost(hop_tree, by_scip, idle, sizes) == pytest.approx(best)


def test_a_run_goes_on_at_the_head_of_the_row():
    hop_tree = HopTree.of(regular(6, 2))
    program = Program.of(hop_tree, ints([0, 2, 3, 5]), ints([2, 4, 5]))
    assert program.places(0, 3) == [3, 0]
    assert len(program.runs) == 4 + 1  # all nodes are one run; five there are not
    indptr, nodes = program.sets([(0, 3)])
    assert indptr.tolist() == [0, 2, 2, 2]
    assert nodes.tolist() == [0, 5]


@pytest.mark.parametrize("solver", SOLVERS)
def test_who_does_not_fit_is_left_out(solver):
    if solver == "scip":
        pytest.importorskip("pyscipopt")
    hop_tree = HopTree.of(regular(4, 2))
    found = BySolver(SOLVERS[solver]).place_jobs(hop_tree, ints([0, 1, 3]), ints([2, 2]), RNG)
    assert sorted(np.diff(found[0]).tolist()) == [0, 2]
    assert found[1].tolist() == [0, 1]


def test_without_scip_it_is_said(monkeypatch):
    real = builtins.__import__

    def none_of_it(name, *arguments, **others):
        if name == "pyscipopt":
            raise ImportError(name)
        return real(name, *arguments, **others)

    monkeypatch.setattr(builtins, "__import__", none_of_it)
    with pytest.raises(ConfigError, match="pip install pyscipopt"):
        by_scip(Program.of(HopTree.of(regular(4, 2)), ints([0, 1]), ints([1])))
