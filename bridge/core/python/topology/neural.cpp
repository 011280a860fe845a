// SPDX-License-Identifier: Apache-2.0
// Python binding of the networks.
#include "python/module.hpp"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>

#include "common/columns.hpp"
#include "topology/arguments.hpp"
#include "topology/neural.hpp"

namespace bridge {
namespace {

using Floats = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;

// Layers of [weights, bias, weights, bias, ...].
RepairNetwork make_network(const std::vector<Floats> &arrays, const std::vector<int64_t> &strides) {
    if (arrays.size() % 2 != 0) {
        refuse("arrays: weights and biases by turns, but their number is odd");
    }
    std::vector<Layer> layers;
    for (size_t i = 0; i < arrays.size(); i += 2) {
        Layer layer;
        for (size_t d = 0; d < arrays[i].ndim(); ++d) {
            layer.shape.push_back(arrays[i].shape(d));
        }
        layer.weights.assign(arrays[i].data(), arrays[i].data() + arrays[i].size());
        layer.bias.assign(arrays[i + 1].data(), arrays[i + 1].data() + arrays[i + 1].size());
        layers.push_back(std::move(layer));
    }
    std::vector<size_t> steps;
    for (const int64_t stride : strides) {
        steps.push_back(static_cast<size_t>(scalar("strides", stride, 1, VIEW)));
    }
    return {layers, steps};
}

Array<float> numbers_py(const RepairNetwork &network, const Floats &leaf, const Floats &pod,
                        double job, double others) {
    if (leaf.ndim() != 1 || pod.ndim() != 1 || leaf.size() != pod.size() || leaf.size() > VIEW) {
        refuse("leaf, pod: must be rows of the same length, " + std::to_string(VIEW) + " at most");
    }
    View view;
    view.n = leaf.size();
    std::copy(leaf.data(), leaf.data() + view.n, view.leaf.begin());
    std::copy(pod.data(), pod.data() + view.n, view.pod.begin());
    view.job = static_cast<float>(job);
    view.others = static_cast<float>(others);
    std::vector<float> scratch(network.scratch()), out(network.outputs());
    network.run(view, scratch.data(), out.data());
    out.resize(view.n);
    return to_numpy(std::move(out));
}

Tuple<Array<float>, Array<float>> view_py(const Tree &tree, Array<int32_t> idle, int64_t first,
                                          double numbers) {
    const IdleSequence sequence = sequence_of(tree, idle);
    std::vector<int32_t> positions(sequence.nodes.size());
    for (size_t i = 0; i < positions.size(); ++i) {
        positions[i] = static_cast<int32_t>(i);
    }
    scalar("first", first, 0, std::max<int64_t>(static_cast<int64_t>(positions.size()) - 1, 0));
    View view;
    look(tree, sequence, positions, static_cast<size_t>(first), numbers, view);
    std::vector<float> leaf(view.leaf.begin(), view.leaf.begin() + static_cast<ptrdiff_t>(view.n));
    std::vector<float> pod(view.pod.begin(), view.pod.begin() + static_cast<ptrdiff_t>(view.n));
    return nb::make_tuple(to_numpy(std::move(leaf)), to_numpy(std::move(pod)));
}

Tuple<NodeSets, int64_t, int64_t>
anneal_py(const RepairNetwork &network, const Tree &tree, const HopMetric &metric,
          Array<int32_t> idle, Array<int32_t> sizes, int64_t iterations, int64_t seed, bool restore,
          double hottest, double coldest, int64_t most_removed, double warmth, double wander,
          double since, bool rotate, double largest, double numbers) {
    expect_levels(tree, metric);
    const IdleSequence sequence = sequence_of(tree, idle);
    const std::vector<int32_t> wanted = job_sizes(sizes);
    const AnnealEffort effort =
        anneal_effort(iterations, seed, restore, hottest, coldest, most_removed);
    if (!(warmth > 0)) {
        refuse("warmth: must be more than 0");
    }
    if (!(wander >= 0 && wander <= 1)) {
        refuse("wander: must be from 0 to 1");
    }
    if (!(since >= 0 && since <= 1)) {
        refuse("since: must be from 0 to 1");
    }
    if (!(largest > 0 && numbers > 0)) {
        refuse("largest, numbers: must be more than 0");
    }
    ContiguousPlacement placed;
    int64_t asked = 0, remembered = 0;
    {
        nb::gil_scoped_release release;
        NeuralChooser chooser(tree, sequence, wanted, network,
                              {warmth, wander, since, rotate, largest, numbers});
        placed = contiguous_anneal(tree, metric, sequence, wanted, effort, chooser);
        asked = chooser.asked();
        remembered = chooser.remembered();
    }
    return nb::make_tuple(from_positions(tree, sequence, placed), asked, remembered);
}

} // namespace

void define_neural(nb::module_ &m) {
    using namespace nb::literals;
    nb::class_<RepairNetwork>(
        m, "RepairNetwork",
        R"(A network for up to 100 consecutive idle nodes and a job to put back on some of them.

Its input has four rows of 100: switch and pod of each node, as numbered by ``view``, and at
    each
node the size of the job and of the jobs still to be put back. Its output are logits: a number
for each node at which the job could begin.

Arithmetic is float32, in the same order on every machine.)")
        .def(
            "__init__",
            [](RepairNetwork *self, const std::vector<Floats> &arrays,
               const std::vector<int64_t> &strides) {
                new (self) RepairNetwork(make_network(arrays, strides));
            },
            "arrays"_a, "strides"_a,
            R"(Makes a network: convolutions over rows, then linear layers, tanh between either kind.

Args:
    arrays: weights and bias of each layer in turn. Convolutions (out, in, width), linear
        layers (out, in); the first of these takes channels by turns, each whole.
    strides: of the convolutions, one each.

Raises:
    ValueError: the layers do not fit each other, or the state, or do not give 100 numbers.)")
        .def("numbers", &numbers_py, "leaf"_a, "pod"_a, "job"_a, "others"_a,
             R"(Runs the network on one state.

Args:
    leaf: (n,) the first row, n at most 100; the rest is 0.
    pod: (n,) the second.
    job: value of the third row at the n nodes.
    others: of the fourth.

Returns:
    (n,) logits.)")
        .def_static("view", &view_py, "tree"_a, "idle"_a, "first"_a, "numbers"_a = 5.0,
                    R"(The network's view of idle nodes.

Args:
    tree: the switches.
    idle: ascending.
    first: where the view begins; the sequence is cyclic.
    numbers: divisor of switch numbers.

Returns:
    Rows divided by ``numbers``: switches counted from 0, one more wherever the sequence
    continues under another one; and the switches above them, likewise.)")
        .def("anneal", &anneal_py, "tree"_a, "metric"_a, "idle"_a, "sizes"_a, "iterations"_a,
             "seed"_a, "restore"_a = true, "hottest"_a = 2500.0, "coldest"_a = 2.5,
             "most_removed"_a = 2, "warmth"_a = 1.0, "wander"_a = 0.0, "since"_a = 0.0,
             "rotate"_a = true, "largest"_a = 40.0, "numbers"_a = 5.0,
             R"(``Tree.anneal``, but jobs are put back by the network's probabilities (NSA).

Args:
    tree: the switches.
    metric: the cost.
    idle: ascending.
    sizes: (n_jobs,) nodes requested.
    iterations: moves tried.
    seed: random seed.
    restore: as in ``Tree.anneal``.
    hottest: initial temperature.
    coldest: final temperature, > 0.
    most_removed: most jobs removed at once.
    warmth: divisor of the logits: below 1 sharpens the distribution.
    wander: share of the jobs that are put back at random.
    since: share of the moves before the network is first used.
    rotate: if more than 100 nodes are idle, begin the view at a random multiple of 50;
        False: only the first 100 are ever chosen, as in the paper.
    largest: nodes of the largest job in training; sizes are divided by it, or by the
        window's largest if that is larger.
    numbers: as in ``view``.

Returns:
    Sets; the number of choices by the network; how many of these came from its cache.)");
}

} // namespace bridge
