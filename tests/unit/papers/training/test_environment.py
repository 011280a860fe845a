# SPDX-License-Identifier: Apache-2.0
"""The practice ground, without torch: what is seen, what it costs, what is kept."""

import numpy as np
import pytest

from bridge.core import RepairNetwork
from bridge.model.hop_tree import Metric
from bridge.papers.placement.neural_weights import LARGEST, NUMBERS, Q
from bridge.papers.placement.training.environment import LONGEST, Boards
from bridge.papers.placement.training.windows import paper_hop_tree, stream

HOP_TREE = paper_hop_tree(Metric.CODE)
WINDOWS = list(stream(HOP_TREE, 3, 40))


def test_a_stream_is_the_papers():
    assert len(WINDOWS) > 20
    for window in WINDOWS:
        assert 1 <= len(window.sizes) <= 5
        assert window.sizes.min() >= 2
        assert window.sizes.max() <= 40
        assert window.sizes.sum() <= len(window.idle)
        assert (np.diff(window.idle) > 0).all()
    again = list(stream(HOP_TREE, 3, 40))
    assert all(np.array_equal(a.idle, b.idle) for a, b in zip(WINDOWS, again, strict=True))
    assert len(WINDOWS[0].idle) > len(WINDOWS[-1].idle)  # it fills


@pytest.fixture
def boards():
    return Boards(WINDOWS, 40, 1)


def choose(step, rng):
    return np.array([rng.choice(np.flatnonzero(legal)) for legal in step.legal])


def play(boards, rng):
    boards.begin()
    for which in range(2):
        step = boards.look(which)
        boards.put(step, which, choose(step, rng))
    return boards.end()


def held(boards, board):
    """Switches of each job's positions, from the board itself."""
    return [
        (boards._leaf[board][boards._owner[board] == job], boards._pod[board][
            boards._owner[board] == job])
        for job in range(5)
    ]  # fmt: skip


def pairwise(leaf, pod):
    """1, 3 or 5 hops for each unordered pair, per node, thousands."""
    hops = [
        1 if leaf[i] == leaf[j] else 3 if pod[i] == pod[j] else 5
        for i in range(len(leaf))
        for j in range(i)
    ]
    return 1000 * sum(hops) / max(len(leaf), 1)


def test_boards_stay_whole_and_pay_what_pairs_cost(boards):
    rng = np.random.default_rng(0)
    for _ in range(30):
        play(boards, rng)
    for board in range(40):
        for job, (leaf, pod) in enumerate(held(boards, board)):
            assert len(leaf) == boards._sizes[board, job]
            assert boards._paid[board, job] == pytest.approx(pairwise(leaf, pod))


def test_the_reward_is_what_is_saved_and_rejected_moves_are_undone(boards):
    rng = np.random.default_rng(0)
    boards.begin()
    owner, paid = boards._before.copy(), boards._paid_before.copy()
    for which in range(2):
        step = boards.look(which)
        boards.put(step, which, choose(step, rng))
    after = boards._paid.copy()
    boards._heat[:] = 1e-9
    reward = boards.end()
    assert reward == pytest.approx((paid.sum(1) - after.sum(1)) / 1000, abs=1e-4)
    worse = reward < 0
    assert worse.any()
    assert (boards._owner[worse] == owner[worse]).all()
    assert (boards._paid[worse] == paid[worse]).all()
    assert boards._paid[~worse] == pytest.approx(after[~worse])


def test_larger_jobs_first_and_the_other_is_told(boards):
    boards.begin()
    first, second = boards.look(0), boards.look(1)
    assert len(first.boards) == 40
    assert 0 < len(second.boards) < 40
    jobs = dict(zip(first.boards.tolist(), first.state[:, 2, 0] * LARGEST, strict=True))
    others = dict(zip(first.boards.tolist(), first.state[:, 3, 0] * LARGEST, strict=True))
    for board, size in zip(second.boards.tolist(), second.state[:, 2, 0] * LARGEST, strict=True):
        assert jobs[board] >= size
        assert others[board] == pytest.approx(size)
    assert (second.state[:, 3] == 0).all()
    assert first.last.sum() == 40 - len(second.boards)
    assert second.last.all()


def test_it_sees_what_the_core_sees(boards):
    boards.begin()
    step = boards.look(0)
    for row, board in enumerate(step.boards.tolist()):
        idle = int(boards._idle[board])
        leaf, pod = step.state[row, 0], step.state[row, 1]
        n = min(idle, Q)
        assert step.legal[row].sum() == n
        assert (step.state[row][:, n:] == 0).all()
        # A tree whose nodes are the board's row: the core numbers it by itself.
        line = boards._row[board][:idle]
        leaves, pods = boards._leaf[board][line], boards._pod[board][line]
        tree = tree_of(leaves, pods)
        seen = RepairNetwork.view(
            tree, np.arange(idle, dtype=np.int32), int(boards._offset[board]), NUMBERS
        )
        assert np.allclose(seen[0], leaf[:n])
        assert np.allclose(seen[1], pod[:n])


def tree_of(leaves, pods):
    from bridge.core import Tree

    n_pods = int(pods.max()) + 1
    parent = np.full(LONGEST + n_pods, -1, np.int32)
    for leaf, pod in zip(leaves.tolist(), pods.tolist(), strict=True):
        parent[leaf] = LONGEST + pod
    return Tree(parent, leaves.astype(np.int32))


def test_prices_are_what_is_paid(boards):
    rng = np.random.default_rng(0)
    for _ in range(5):
        boards.begin()
        for which in range(2):
            step = boards.look(which)
            prices = boards.prices(step, which)
            chosen = choose(step, rng)
            boards.put(step, which, chosen)
            job = boards._out[step.boards, which]
            paid = boards._paid[step.boards, job] / 1000
            assert prices[np.arange(len(chosen)), chosen] == pytest.approx(paid, abs=1e-3)
            assert np.isinf(prices[~step.legal]).all()
        boards.end()


def test_the_same_seed_is_the_same_practice():
    one, two = Boards(WINDOWS, 8, 5), Boards(WINDOWS, 8, 5)
    first = [play(one, np.random.default_rng(1)) for _ in range(3)]
    second = [play(two, np.random.default_rng(1)) for _ in range(3)]
    assert np.array_equal(first, second)
