# SPDX-License-Identifier: Apache-2.0
"""The networks that put jobs back: the core against NumPy, files of weights, the placer."""

import dataclasses
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from bridge.core import RepairNetwork
from bridge.errors import ConfigError
from bridge.model.hop_tree import HopTree, Metric
from bridge.model.topology import Topology, regular
from bridge.papers.placement.annealing import Annealing
from bridge.papers.placement.neural import Neural
from bridge.papers.placement.neural_weights import (
    CHANNELS,
    MAX_BYTES,
    NETWORKS,
    SHIPPED,
    Q,
    folded,
    from_file,
    network_of,
    read_weights,
    shipped,
    write_weights,
)
from bridge.papers.placement.training.windows import paper_hop_tree, stream
from schedbridge_contracts.crosses import each


def naive(network, weights, state):
    """Table II, layer by layer."""
    shape = NETWORKS[network]
    rows, x = iter(weights), state.astype(np.float64)
    for i, (out, width, stride) in enumerate(shape.convolutions):
        w, b = next(rows), next(rows)
        x = np.tanh(x) if i else x
        places = range(0, x.shape[1] - width + 1, stride)
        x = np.array([[(w[o] * x[:, p : p + width]).sum() + b[o] for p in places]
                      for o in range(out)])  # fmt: skip
    x = x.ravel()
    for i in range(len(shape.hidden) + 1):
        x = np.tanh(x) if i and shape.bent else x
        x = next(rows) @ x + next(rows)
    return x


def random_weights(network, seed):
    rng = np.random.default_rng(seed)
    shapes = [each for layer in NETWORKS[network].layers() for each in (layer, layer[:1])]
    return [(rng.normal(size=shape) * 0.2).astype(np.float32) for shape in shapes]


def a_state(rng, n):
    leaf = (np.cumsum(rng.random(n) < 0.3) / 5).astype(np.float32)
    pod = (np.cumsum(rng.random(n) < 0.1) / 5).astype(np.float32)
    state = np.zeros((CHANNELS, Q), np.float32)
    state[:, :n] = np.stack([leaf, pod, np.full(n, 0.4), np.full(n, 0.7)])
    return state, leaf, pod


@each(n=[1, 9, 50, 93, 100], network=[*NETWORKS])
def test_the_core_computes_what_table_two_says(network, n):
    weights = random_weights(network, n)
    state, leaf, pod = a_state(np.random.default_rng(n), n)
    found = network_of(network, weights).numbers(leaf, pod, 0.4, 0.7)
    assert np.allclose(found, naive(network, weights, state)[:n], atol=2e-5)


@pytest.mark.parametrize(("network", "count"), [("fcn-1", 36324), ("cnn-3", 117372)])
def test_parameters_are_those_of_the_layers(network, count):
    assert NETWORKS[network].parameters() == count


def test_folding_leaves_one_linear_layer():
    weights = random_weights("cnn-3", 0)
    assert [array.shape for array in folded("cnn-3", weights)[4:]] == [(100, 352), (100,)]
    assert len(folded("fcn-1", random_weights("fcn-1", 0))) == 6


@pytest.mark.parametrize(
    ("arrays", "strides", "problem"),
    [
        ([(100, 400), (100,)], [], None),
        ([(100, 400)], [], "arrays"),
        ([(99, 400), (99,)], [], "layer 0 does not give 100"),
        ([(100, 401), (100,)], [], "layer 0 does not fit"),
        ([(100, 400), (99,)], [], "layer 0 lacks weights"),
        ([(4, 4, 10), (4,)], [1], "no linear one"),
        ([(4, 4, 101), (4,), (100, 4), (100,)], [1], "layer 0 does not fit"),
        ([(4, 4, 10), (4,), (100, 364), (100,)], [0], "strides"),
        ([(4, 4, 10), (4,), (100, 364), (100,)], [1], None),
    ],
)
def test_layers_that_do_not_fit_are_refused(arrays, strides, problem):
    made = [np.zeros(shape, np.float32) for shape in arrays]
    if problem is None:
        RepairNetwork(made, strides)
        return
    with pytest.raises(ValueError, match=problem):
        RepairNetwork(made, strides)


def test_a_view_counts_switches_as_it_comes_to_them():
    """Two switches of two nodes below each pod; the view begins at the third idle node."""
    tree = HopTree.of(regular(8, 2, 4)).tree
    leaf, pod = RepairNetwork.view(tree, np.array([0, 1, 3, 4, 5], np.int32), 2, 1.0)
    assert leaf.tolist() == [0, 1, 1, 2, 2]
    assert pod.tolist() == [0, 1, 1, 2, 2]


class TestFiles:
    @pytest.mark.parametrize("network", NETWORKS)
    def test_those_that_come_with_the_package_are_whole(self, network):
        name, weights = read_weights(SHIPPED / f"{network}.npz")
        assert name == network
        assert len(weights) == 2 * len(NETWORKS[network].layers())
        assert shipped(network) is shipped(network)

    def test_what_is_written_is_read(self, tmp_path):
        weights = random_weights("cnn-1", 0)
        write_weights(tmp_path / "w.npz", "cnn-1", weights)
        network, found = read_weights(tmp_path / "w.npz")
        assert network == "cnn-1"
        assert all(map(np.array_equal, weights, found))

    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            (lambda w: w[:-1], "array 5 is not float32 of shape"),
            (lambda w: [*w, w[0]], "does not use"),
            (lambda w: [w[1], *w[1:]], "array 0 is not"),
            (lambda w: [w[0] * np.nan, *w[1:]], "not finite"),
        ],
    )
    def test_wrong_arrays_are_refused(self, tmp_path, change, problem):
        write_weights(tmp_path / "w.npz", "fcn-1", change(random_weights("fcn-1", 0)))
        with pytest.raises(ConfigError, match=problem):
            read_weights(tmp_path / "w.npz")

    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"nothing", b"\x93NUMPY"])
    def test_what_is_no_file_of_weights_is_refused(self, tmp_path, content):
        (tmp_path / "w.npz").write_bytes(content)
        with pytest.raises(ConfigError, match=r"w\.npz"):
            Neural(weights=str(tmp_path / "w.npz"))

    def test_arrays_are_bounded_unpacked(self, tmp_path):
        np.savez_compressed(tmp_path / "w.npz", network=np.zeros(MAX_BYTES, np.int8))
        assert (tmp_path / "w.npz").stat().st_size < MAX_BYTES / 100
        with pytest.raises(ConfigError, match="more than 16 MiB of memory"):
            read_weights(tmp_path / "w.npz")

    def test_headers_may_lie_and_single_arrays_are_no_files_of_weights(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "lie.npz", "w") as packed, packed.open("0.npy", "w") as to:
            header = {"descr": "<f4", "fortran_order": False, "shape": (10**13,)}
            np.lib.format.write_array_header_1_0(to, header)
        np.save(tmp_path / "single.npy", np.zeros(3))
        for name in ("lie.npz", "single.npy"):
            with pytest.raises(ConfigError, match=name):
                read_weights(tmp_path / name)

    def test_broken_files_are_refused_in_words(self, tmp_path):
        """Wherever bytes are changed: the file is refused, or read all the same."""
        whole, dice = (SHIPPED / "fcn-1.npz").read_bytes(), np.random.default_rng(0)
        refused = 0
        for at in range(150):
            broken = bytearray(whole)
            places = (slice(0, 200), slice(-700, None), slice(None))[at % 3]
            part = np.frombuffer(broken[places], np.uint8).copy()
            part[dice.integers(len(part), size=4)] = dice.integers(256, size=4)
            broken[places] = part.tobytes()
            (tmp_path / "w.npz").write_bytes(broken)
            try:
                read_weights(tmp_path / "w.npz")
            except ConfigError:
                refused += 1
        assert refused > 100

    def test_a_file_is_read_anew(self, tmp_path):
        leaf = np.linspace(0, 1, 5, dtype=np.float32)
        said = []
        for seed in range(2):
            write_weights(tmp_path / "w.npz", "fcn-1", random_weights("fcn-1", seed))
            said.append(from_file(tmp_path / "w.npz").numbers(leaf, leaf, 1.0, 0.0))
        assert not np.array_equal(*said)

    def test_pickles_are_not_opened(self, tmp_path):
        np.savez(tmp_path / "w.npz", network=np.array([object()], dtype=object))
        with pytest.raises(ConfigError, match="weights"):
            read_weights(tmp_path / "w.npz")

    def test_other_networks_are_not_known(self):
        with pytest.raises(ConfigError, match="cnn-4"):
            Neural(network="cnn-4")


HOP_TREE = paper_hop_tree(Metric.PAPER)
WINDOWS = list(stream(HOP_TREE, 7_000_000, 60))[20:]


def total(placer, seed=0):
    """What the windows of a stream that nobody practised on cost altogether."""
    sets = (
        placer.place_jobs(HOP_TREE, window.idle, window.sizes, np.random.default_rng((seed, i)))
        for i, window in enumerate(WINDOWS)
    )
    return sum(HOP_TREE.costs(each).sum() for each in sets)


def ignorant(placer):
    """The same with a network that gives every node the same chance."""
    zero = [np.zeros_like(array) for array in random_weights(placer.network, 0)]
    made = dataclasses.replace(placer, wander=0.0)
    object.__setattr__(made, "_network", network_of(placer.network, zero))
    return made


@pytest.mark.parametrize("network", NETWORKS)
def test_what_was_learnt_helps(network):
    """At equal moves it beats places drawn at random, and a network that knows nothing."""
    placer = Neural(effort=150, network=network, since=0.0)
    learnt = np.mean([total(placer, seed) for seed in range(2)])
    assert learnt < np.mean([total(Annealing(effort=150), seed) for seed in range(2)])
    assert learnt < np.mean([total(ignorant(placer), seed) for seed in range(2)])


def test_a_network_that_knows_nothing_is_plain_annealing():
    """All chances are equal, so over many windows costs are alike."""
    blank = ignorant(Neural(effort=300, since=0.0))
    ratios = [total(blank, seed) / total(Annealing(effort=300), seed) for seed in range(3)]
    assert 0.98 < np.mean(ratios) < 1.02


def test_states_that_come_again_are_remembered():
    idle, sizes = WINDOWS[-1].idle, WINDOWS[-1].sizes
    network = shipped("fcn-1")
    _, requested, remembered = network.anneal(HOP_TREE.tree, HOP_TREE.metric, idle, sizes, 400, 1)
    assert 400 <= requested <= 800
    assert requested / 3 < remembered < requested


@pytest.mark.parametrize(("first", "found"), [(False, True), (True, False)])
def test_where_more_are_idle_than_it_sees_all_can_be_chosen(first, found):
    """Three idle nodes on each of 99 switches, and at the end, beyond the view, one whole."""
    idle = np.concatenate([np.arange(990).reshape(99, 10)[:, :3].ravel(), np.arange(990, 1000)])
    sizes = np.array([10], np.int32)
    placer = Neural(effort=300, first=first, wander=0.0, since=0.0, warmth=50.0)
    _, nodes = placer.place_jobs(HOP_TREE, idle.astype(np.int32), sizes, np.random.default_rng(0))
    assert (nodes.tolist() == list(range(990, 1000))) is found


def test_deep_flat_and_single_trees_are_placed_on():
    for topology in (
        regular(200, 200),
        regular(64, 2, 4, 8, 16, 32),
        Topology(("a",), np.array([-1], np.int32), np.zeros(120, np.int32)),
    ):
        hop_tree = HopTree.of(topology)
        n = len(topology.leaf_of_node)
        sizes = np.array([n // 2, n // 4], np.int32)
        indptr, nodes = Neural(effort=50).place_jobs(
            hop_tree, np.arange(n, dtype=np.int32), sizes, np.random.default_rng(0)
        )
        assert np.diff(indptr).tolist() == sizes.tolist()
        assert len(set(nodes.tolist())) == len(nodes)


def test_what_is_remembered_is_bounded():
    """Of three hundred thousand states; by itself, since peaks of memory are a process's."""
    code = """
import resource
import numpy as np
from bridge.model.topology import regular
from bridge.model.hop_tree import HopTree
from bridge.papers.placement.neural import Neural
hop_tree, idle = HopTree.of(regular(1000, 10, 100)), np.arange(1000, dtype=np.int32)
sizes = np.arange(5, 15, dtype=np.int32)
peaks = []
for moves in (100, 200_000):
    placer = Neural(effort=moves, since=0.0, wander=0.0)
    placer.place_jobs(hop_tree, idle, sizes, np.random.default_rng(0))
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(peaks[1] - peaks[0])
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(said.stdout) < 64 << 10  # KiB


def test_a_file_of_weights_and_a_network_are_not_both_named(tmp_path):
    file = tmp_path / "w.npz"
    write_weights(file, "cnn-1", random_weights("cnn-1", 0))
    assert Neural(weights=str(file)).network == "fcn-1"
    with pytest.raises(ConfigError, match="network"):
        Neural(weights=str(file), network="cnn-3")
