# SPDX-License-Identifier: Apache-2.0
"""Trees of switches against oracles that go through pairs of nodes and sets of nodes one by one."""

from dataclasses import dataclass, replace
from itertools import combinations, pairwise, permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bridge.core import HopMetric, Tree

PAPER = HopMetric(np.array([2, 4, 6, 8], dtype=np.int64))
CODE = HopMetric(np.array([1, 3, 5, 7], dtype=np.int64), ordered=False, floored=True)
METRICS = [("paper", PAPER), ("code", CODE)]


@dataclass(frozen=True)
class Fabric:
    """A small forest of switches, with some of its nodes idle."""

    parent: list[int]
    leaf_of_node: list[int]
    idle: list[int]

    @property
    def tree(self) -> Tree:
        return Tree(np.array(self.parent, np.int32), np.array(self.leaf_of_node, np.int32))

    def level(self, switch: int) -> int:
        below = [v for v, above in enumerate(self.parent) if above == switch]
        return 1 + max(map(self.level, below)) if below else 0

    def path(self, node: int) -> list[int]:
        at = [self.leaf_of_node[node]]
        while self.parent[at[-1]] >= 0:
            at.append(self.parent[at[-1]])
        return at

    def hops(self, a: int, b: int, metric: str) -> float:
        common = [switch for switch in self.path(a) if switch in self.path(b)]
        if not common:
            return np.inf
        return 2 * self.level(common[0]) + (2 if metric == "paper" else 1)

    def cost(self, nodes: tuple[int, ...], metric: str) -> float:
        """Equation 1, pair by pair."""
        if not nodes:
            return 0.0
        hops = sum(self.hops(a, b, metric) for a, b in combinations(nodes, 2))
        if metric == "paper":
            return 2000 * hops / len(nodes)
        return np.inf if hops == np.inf else float(int(1000 * hops) // len(nodes))


@st.composite
def fabrics(draw: st.DrawFn, most_leaves: int = 5, max_nodes: int = 9) -> Fabric:
    """Up to three levels, unequal switches, one or two roots."""
    leaves = draw(st.integers(1, most_leaves))
    roots = draw(st.integers(1, 2))
    middles = draw(st.integers(0, 3))
    top, middle = leaves + middles, leaves
    parent = []
    for _ in range(leaves):
        above = draw(st.integers(middle, top + roots - 1))
        parent.append(above)
    parent += [draw(st.integers(top, top + roots - 1)) for _ in range(middles)]
    parent += [-1] * roots
    for root in range(top, top + roots):  # a switch that nothing hangs on is a leaf without nodes
        if root not in parent and draw(st.booleans()):
            parent[draw(st.integers(0, leaves - 1))] = root
    n_nodes = draw(st.integers(1, max_nodes))
    leaf_of_node = [draw(st.integers(0, leaves - 1)) for _ in range(n_nodes)]
    idle = sorted(draw(st.sets(st.integers(0, n_nodes - 1), min_size=1)))
    return Fabric(parent, leaf_of_node, idle)


def sets_of(found: tuple[np.ndarray, np.ndarray]) -> list[tuple[int, ...]]:
    indptr, nodes = found
    return [tuple(nodes[a:b].tolist()) for a, b in pairwise(indptr)]


def csr(sets: list[tuple[int, ...]]) -> tuple[np.ndarray, np.ndarray]:
    indptr = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    return indptr, np.array([node for one in sets for node in one], dtype=np.int32)


def assert_legal(fabric: Fabric, sizes: list[int], found: list[tuple[int, ...]]) -> None:
    taken = [node for nodes in found for node in nodes]
    assert len(set(taken)) == len(taken)
    assert set(taken) <= set(fabric.idle)
    for size, nodes in zip(sizes, found, strict=True):
        assert len(nodes) in (0, size)
        assert fabric.cost(nodes, "paper") < np.inf


def ints(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int32)


@settings(deadline=None)
@given(st.deferred(lambda: st.one_of(fabrics(), tall_fabrics())), st.data())
@pytest.mark.parametrize(("name", "metric"), METRICS)
def test_cost_from_counts_is_the_cost_pair_by_pair(
    name: str, metric: HopMetric, fabric: Fabric, data: st.DataObject
) -> None:
    nodes = tuple(sorted(data.draw(st.sets(st.sampled_from(range(len(fabric.leaf_of_node)))))))
    assert fabric.tree.costs(metric, *csr([nodes]))[0] == pytest.approx(fabric.cost(nodes, name))


@st.composite
def tall_fabrics(draw: st.DrawFn, max_nodes: int = 10) -> Fabric:
    """Three or four levels, unequal switches of unequal heights, one fabric or two."""
    widths = [draw(st.integers(2, 4)), 3, 2][: draw(st.integers(2, 3))]
    widths.append(draw(st.integers(1, 2)))
    first = [sum(widths[:level]) for level in range(len(widths))]
    parent = []
    for level, width in enumerate(widths[:-1]):
        for _ in range(width):  # most hang one level up, some anywhere above
            above = (
                level + 1 if draw(st.booleans()) else draw(st.integers(level + 1, len(first) - 1))
            )
            parent.append(first[above] + draw(st.integers(0, widths[above] - 1)))
    parent += [-1] * widths[-1]
    with_nodes = [v for v in range(len(parent)) if v not in parent]
    n_nodes = draw(st.integers(2, max_nodes))
    leaf_of_node = [draw(st.sampled_from(with_nodes)) for _ in range(n_nodes)]
    idle = sorted(draw(st.sets(st.integers(0, n_nodes - 1), min_size=2)))
    return Fabric(parent, leaf_of_node, idle)


@settings(deadline=None)
@given(st.one_of(fabrics(), tall_fabrics()), st.data())
@pytest.mark.parametrize(("name", "metric"), METRICS)
def test_one_job_gets_the_best_set_there_is(
    name: str, metric: HopMetric, fabric: Fabric, data: st.DataObject
) -> None:
    size = data.draw(st.integers(1, len(fabric.idle)))
    (found,) = sets_of(fabric.tree.compact(metric, ints(fabric.idle), ints([size]), 0))
    assert_legal(fabric, [size], [found])
    best = min(fabric.cost(nodes, name) for nodes in combinations(fabric.idle, size))
    if best == np.inf:
        assert found == ()
    else:
        assert fabric.cost(found, name) == pytest.approx(best)


def contiguous_sets(idle: list[int], sizes: list[int]) -> list[list[tuple[int, ...]]]:
    """All ways to place jobs as disjoint runs on the closed sequence of idle nodes."""
    if not sizes:
        return [[]]
    n = len(idle)
    ways = []
    for rest in contiguous_sets(idle, sizes[1:]):
        taken = {node for nodes in rest for node in nodes}
        for first in range(n):
            run = tuple(sorted(idle[(first + i) % n] for i in range(sizes[0])))
            if not taken & set(run):
                ways.append([run, *rest])
    return ways


@settings(deadline=None)
@given(st.one_of(fabrics(), tall_fabrics(8)), st.data())
@pytest.mark.parametrize(("name", "metric"), METRICS)
def test_contiguous_is_exact(
    name: str, metric: HopMetric, fabric: Fabric, data: st.DataObject
) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    found = sets_of(fabric.tree.contiguous(metric, ints(fabric.idle), ints(sizes)))
    ways = contiguous_sets(fabric.idle, sizes) if sum(sizes) <= len(fabric.idle) else []
    best = min((sum(fabric.cost(nodes, name) for nodes in way) for way in ways), default=np.inf)
    if best == np.inf:
        assert all(nodes == () for nodes in found)
    else:
        assert_legal(fabric, sizes, found)
        assert sum(fabric.cost(nodes, name) for nodes in found) == pytest.approx(best)


@settings(deadline=None)
@given(fabrics(), st.data())
@pytest.mark.parametrize(("name", "metric"), METRICS)
def test_compact_is_legal_and_between_its_bound_and_contiguous(
    name: str, metric: HopMetric, fabric: Fabric, data: st.DataObject
) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    tree, idle = fabric.tree, ints(fabric.idle)
    found = sets_of(tree.compact(metric, idle, ints(sizes), 0, iterations=20))
    assert_legal(fabric, sizes, found)
    static = sets_of(tree.contiguous(metric, idle, ints(sizes)))
    if all(static):
        assert all(found)
        cost = sum(fabric.cost(nodes, name) for nodes in found)
        assert cost <= sum(fabric.cost(nodes, name) for nodes in static) + len(sizes)
        if len({fabric.path(node)[-1] for node in fabric.idle}) == 1:
            assert tree.bound(metric, idle, ints(sizes), 50, cost) <= cost + 1e-6


@settings(deadline=None)
@given(fabrics(max_nodes=7), st.data())
def test_the_bound_holds_for_every_placement(fabric: Fabric, data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
    ways = [
        [nodes, *rest]
        for nodes in combinations(fabric.idle, sizes[0])
        for rest in (
            [[]] if len(sizes) == 1
            else [[other] for other in combinations(set(fabric.idle) - set(nodes), sizes[1])]
        )
    ]  # fmt: skip
    best = min((sum(fabric.cost(nodes, "paper") for nodes in way) for way in ways), default=np.inf)
    if best < np.inf:
        bound = fabric.tree.bound(PAPER, ints(fabric.idle), ints(sizes), 30, best)
        assert bound <= best + 1e-6


@settings(deadline=None)
@given(fabrics(), st.data(), st.booleans())
def test_annealing_is_legal_and_the_same_for_the_same_seed(
    fabric: Fabric, data: st.DataObject, restore: bool
) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    tree, idle = fabric.tree, ints(fabric.idle)
    found = tree.anneal(PAPER, idle, ints(sizes), 30, seed=7, restore=restore)
    if sum(sizes) <= len(fabric.idle):
        assert_legal(fabric, sizes, sets_of(found))
    again = tree.anneal(PAPER, idle, ints(sizes), 30, seed=7, restore=restore)
    assert sets_of(found) == sets_of(again)


@settings(deadline=None)
@given(fabrics())
def test_levels_and_roots(fabric: Fabric) -> None:
    tree = fabric.tree
    assert tree.level.tolist() == [fabric.level(v) for v in range(tree.n_switches)]
    for node, leaf in enumerate(fabric.leaf_of_node):
        assert tree.root[leaf] == fabric.path(node)[-1]


@settings(deadline=None)
@given(fabrics())
def test_sequential_takes_the_first(fabric: Fabric) -> None:
    sizes = [1, len(fabric.idle), 1]
    found = sets_of(fabric.tree.sequential(ints(fabric.idle), ints(sizes)))
    expected_last = (fabric.idle[1],) if len(fabric.idle) > 1 else ()
    assert found[0] == (fabric.idle[0],)
    assert found[1] == ()
    assert found[2] == expected_last


def test_all_orders_of_equal_jobs_are_one() -> None:
    """Two switches of three and two idle nodes; jobs of 2, 2: one each, whoever comes first."""
    tree = Tree(ints([2, 2, -1]), ints([0, 0, 0, 1, 1]))
    for sizes in set(permutations([2, 2, 1])):
        found = sets_of(tree.compact(PAPER, ints([0, 1, 2, 3, 4]), ints(list(sizes)), 0))
        assert tree.costs(PAPER, *csr(found)).sum() == 2 * 2000.0


@dataclass(frozen=True)
class Seats:
    """Nodes of a forest in the hands of jobs, the nodes of each kind tradable."""

    fabric: Fabric
    nodes: list[int]
    kind: list[int]
    holder: list[int]
    maximum: list[int]

    def after(self, moves: int) -> list[int]:
        columns = (ints(self.nodes), ints(self.kind), ints(self.holder), ints(self.maximum))
        found: list[int] = self.fabric.tree.exchange(PAPER, *columns, moves, 3).tolist()
        return found

    def cost(self, holder: list[int]) -> float:
        return sum(
            self.fabric.cost(self.held(holder, job), "paper") for job in range(len(self.maximum))
        )

    def held(self, holder: list[int], job: int) -> tuple[int, ...]:
        return tuple(node for node, who in zip(self.nodes, holder, strict=True) if who == job)

    def leaves(self, holder: list[int], job: int) -> int:
        return len({self.fabric.leaf_of_node[node] for node in self.held(holder, job)})


@st.composite
def seats(draw: st.DrawFn) -> Seats:
    fabric = draw(fabrics())
    n, jobs = len(fabric.idle), draw(st.integers(1, 3))
    kind = draw(st.lists(st.integers(-1, 1), min_size=n, max_size=n))
    roots = sorted({fabric.path(node)[-1] for node in fabric.idle})
    holder = [
        draw(st.sampled_from([-1, *[j for j in range(jobs) if len(roots) == 1 or j % 2 == at]]))
        for node in fabric.idle
        for at in [roots.index(fabric.path(node)[-1])]
    ]  # no job across two fabrics
    maximum = draw(st.lists(st.integers(0, 3), min_size=jobs, max_size=jobs))
    return Seats(fabric, fabric.idle, kind, holder, maximum)


@settings(deadline=None)
@given(seats(), st.sampled_from([0, 200]))
def test_an_exchange_leaves_everybody_as_many_of_each_kind_and_costs_no_more(
    given_: Seats, moves: int
) -> None:
    after = given_.after(moves)
    before = given_.holder
    for job in range(-1, len(given_.maximum)):
        for kind in (-1, 0, 1):
            had, has = (
                [k for k, who in zip(given_.kind, holders, strict=True) if who == job and k == kind]
                for holders in (before, after)
            )
            assert had == has
    stay = [who for who, kind in zip(before, given_.kind, strict=True) if kind < 0]
    assert stay == [who for who, kind in zip(after, given_.kind, strict=True) if kind < 0]
    assert given_.cost(after) <= given_.cost(before) + 1e-6
    for job, maximum in enumerate(given_.maximum):
        allowed = max(maximum, given_.leaves(before, job)) if maximum else len(given_.nodes)
        assert given_.leaves(after, job) <= allowed


@settings(deadline=None)
@given(seats())
def test_no_exchange_of_two_is_left_that_gains(given_: Seats) -> None:
    after = given_.after(0)
    cost = given_.cost(after)
    for a, b in combinations(range(len(after)), 2):
        if given_.kind[a] < 0 or given_.kind[a] != given_.kind[b]:
            continue
        other = list(after)
        other[a], other[b] = after[b], after[a]
        if all(
            not maximum
            or given_.leaves(other, job) <= max(maximum, given_.leaves(given_.holder, job))
            for job, maximum in enumerate(given_.maximum)
        ):
            assert given_.cost(other) >= cost - 1e-6


@settings(deadline=None)
@given(seats())
def test_annealing_finds_the_best_exchange_of_small_ones(given_: Seats) -> None:
    # Between fabrics that are not connected no single exchange may pay, though two would.
    assume(given_.fabric.parent.count(-1) == 1)
    free = replace(given_, maximum=[0] * len(given_.maximum))
    kinds = [[at for at, kind in enumerate(free.kind) if kind == which] for which in (0, 1)]
    if max(map(len, kinds)) > 5:
        return
    best = np.inf
    for first in set(permutations([free.holder[at] for at in kinds[0]])):
        for second in set(permutations([free.holder[at] for at in kinds[1]])):
            holder = list(free.holder)
            for at, who in zip(kinds[0] + kinds[1], first + second, strict=True):
                holder[at] = who
            best = min(best, free.cost(holder))
    assert free.cost(free.after(3000)) == pytest.approx(best)


def test_exchange_refuses_what_it_cannot_read() -> None:
    tree = Tree(ints([1, -1]), ints([0, 0, -1]))
    good = {
        "nodes": ints([0, 1]),
        "kind": ints([0, 0]),
        "holder": ints([0, -1]),
        "maximum": ints([0]),
    }
    for name, bad, word in (
        ("nodes", ints([0, 2]), "nodes"),
        ("kind", ints([0]), "kind"),
        ("holder", ints([1, -1]), "holder"),
        ("maximum", ints([-1]), "maximum"),
    ):
        with pytest.raises(ValueError, match=f"^{word}"):
            tree.exchange(PAPER, **{**good, name: bad})
