// SPDX-License-Identifier: Apache-2.0
// Python binding of trees of switches: checks arguments, maps counts per switch to nodes.
#include "python/module.hpp"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/columns.hpp"
#include "topology/anneal.hpp"
#include "topology/arguments.hpp"
#include "topology/contiguous.hpp"
#include "topology/exchange.hpp"
#include "topology/packing.hpp"
#include "topology/tree.hpp"
#include "topology/warm_start.hpp"
#include "topology/window.hpp"

namespace bridge {
namespace {

nb::ndarray<nb::numpy, double, nb::ndim<1>> doubles(std::vector<double> values) {
    return to_numpy(std::move(values));
}

HopMetric make_metric(nb::handle hops, int64_t unit, bool ordered, bool floored) {
    const Column<int64_t> column("hops", hops);
    column.within(1, 1 << 20);
    for (size_t level = 1; level < column.rows(); ++level) {
        if (column[level] <= column[level - 1]) {
            refuse("hops: must rise with the level, but fall or stay at level " +
                   std::to_string(level));
        }
    }
    scalar("unit", unit, 1, 1 << 20);
    return {{column.data(), column.data() + column.rows()}, unit, ordered, floored};
}

std::vector<int32_t> idle_by_leaf(const Tree &tree, const std::vector<int32_t> &idle) {
    std::vector<int32_t> counts(tree.n_switches(), 0);
    for (const int32_t node : idle) {
        ++counts[tree.leaf_of_node()[node]];
    }
    return counts;
}

// The first idle nodes on each switch, in the order given, job by job.
nb::tuple as_nodes(const Tree &tree, const std::vector<int32_t> &idle,
                   const std::vector<LeafCounts> &held) {
    std::vector<std::vector<int32_t>> on(tree.n_switches());
    for (size_t i = idle.size(); i-- > 0;) {
        on[tree.leaf_of_node()[idle[i]]].push_back(idle[i]);
    }
    std::vector<std::vector<int32_t>> sets(held.size());
    for (size_t j = 0; j < held.size(); ++j) {
        for (const auto &[leaf, count] : held[j]) {
            for (int32_t i = 0; i < count; ++i) {
                sets[j].push_back(on[leaf].back());
                on[leaf].pop_back();
            }
        }
    }
    return as_csr(sets);
}

nb::object costs_py(const Tree &tree, const HopMetric &metric, nb::handle indptr,
                    nb::handle nodes) {
    expect_levels(tree, metric);
    const Column<int64_t> offsets("indptr", indptr);
    const Column<int32_t> held("nodes", nodes);
    offsets.expect_offsets(held.rows(), "nodes");
    held.within(0, static_cast<int32_t>(tree.n_nodes()) - 1);
    std::vector<double> costs;
    for (size_t j = 0; j + 1 < offsets.rows(); ++j) {
        std::vector<int32_t> leaves;
        bool apart = false;
        for (int64_t i = offsets[j]; i < offsets[j + 1]; ++i) {
            leaves.push_back(tree.leaf_of_node()[held[i]]);
            apart = apart || leaves.back() < 0;
        }
        if (apart) {
            costs.push_back(leaves.size() == 1 ? 0 : std::numeric_limits<double>::infinity());
            continue;
        }
        costs.push_back(tree.cost(metric, leaf_counts(std::move(leaves))));
    }
    return nb::cast(doubles(std::move(costs)));
}

nb::tuple sequential_py(const Tree &tree, nb::handle idle, nb::handle sizes) {
    const IdleSequence sequence = sequence_of(tree, idle);
    return from_positions(tree, sequence, contiguous_sequential(sequence, job_sizes(sizes)));
}

nb::tuple contiguous_py(const Tree &tree, const HopMetric &metric, nb::handle idle,
                        nb::handle sizes) {
    expect_levels(tree, metric);
    const IdleSequence sequence = sequence_of(tree, idle);
    const std::vector<int32_t> wanted = job_sizes(sizes);
    ContiguousPlacement placed;
    {
        nb::gil_scoped_release release;
        placed = contiguous_exact(tree, metric, sequence, wanted);
    }
    return from_positions(tree, sequence, placed);
}

nb::tuple anneal_py(const Tree &tree, const HopMetric &metric, nb::handle idle, nb::handle sizes,
                    int64_t iterations, int64_t seed, bool restore, double hottest, double coldest,
                    int64_t most_removed) {
    expect_levels(tree, metric);
    const IdleSequence sequence = sequence_of(tree, idle);
    const std::vector<int32_t> wanted = job_sizes(sizes);
    const AnnealEffort effort =
        anneal_effort(iterations, seed, restore, hottest, coldest, most_removed);
    ContiguousPlacement placed;
    {
        nb::gil_scoped_release release;
        AnywhereChooser anywhere;
        placed = contiguous_anneal(tree, metric, sequence, wanted, effort, anywhere);
    }
    return from_positions(tree, sequence, placed);
}

nb::tuple compact_py(const Tree &tree, const HopMetric &metric, nb::handle idle, nb::handle sizes,
                     int64_t steps, int64_t iterations, int64_t seed) {
    expect_levels(tree, metric);
    const std::vector<int32_t> nodes = idle_nodes(tree, idle);
    const std::vector<int32_t> wanted = job_sizes(sizes);
    scalar("iterations", iterations, 0);
    scalar("seed", seed, 0);
    scalar("steps", steps, 0, int64_t{1} << 50);
    WindowEffort effort;
    effort.iterations = iterations;
    effort.seed = static_cast<uint64_t>(seed);
    WindowPlacement placed;
    {
        nb::gil_scoped_release release;
        std::vector<int32_t> ascending = nodes;
        std::sort(ascending.begin(), ascending.end());
        // At most half of it, to leave some for the search.
        int64_t summed = 0;
        const std::vector<LeafCounts> initial =
            warm_start(tree, metric, ascending, wanted, steps / 2, summed);
        if (steps > 0) {
            effort.steps = std::max(steps - summed, int64_t{1});
        }
        placed = compact(tree, metric, idle_by_leaf(tree, nodes), wanted, effort, initial);
    }
    return as_nodes(tree, nodes, placed.held);
}

// Holders in the order given, after the exchange.
nb::object exchange_py(const Tree &tree, const HopMetric &metric, nb::handle nodes, nb::handle kind,
                       nb::handle holder, nb::handle most, int64_t moves, int64_t seed) {
    expect_levels(tree, metric);
    const Column<int32_t> held("nodes", nodes), kinds("kind", kind), holders("holder", holder),
        bounds("most", most);
    held.within(0, static_cast<int32_t>(tree.n_nodes()) - 1);
    kinds.expect_rows(held.rows(), "nodes");
    holders.expect_rows(held.rows(), "nodes");
    kinds.within(-1, MOST_NODES);
    holders.within(-1, static_cast<int32_t>(bounds.rows()) - 1);
    bounds.within(0, MOST_NODES);
    scalar("moves", moves, 0);
    scalar("seed", seed, 0);
    constexpr size_t most_counts = 1U << 26;
    if (bounds.rows() * tree.n_switches() > most_counts) {
        refuse("most: too many jobs for a tree of " + std::to_string(tree.n_switches()) +
               " switches");
    }
    std::vector<Seat> seats(held.rows());
    for (size_t i = 0; i < seats.size(); ++i) {
        seats[i] = {tree.leaf_of_node()[held[i]], kinds[i], holders[i]};
        if (seats[i].leaf < 0) {
            refuse("nodes: node " + std::to_string(held[i]) + " hangs on no switch");
        }
    }
    std::vector<int32_t> found;
    {
        nb::gil_scoped_release release;
        found =
            exchange(tree, metric, seats, as_vector(bounds), {moves, static_cast<uint64_t>(seed)});
    }
    return nb::cast(to_numpy(std::move(found)));
}

double bound_py(const Tree &tree, const HopMetric &metric, nb::handle idle, nb::handle sizes,
                int64_t rounds, double cost) {
    expect_levels(tree, metric);
    const std::vector<int32_t> nodes = idle_nodes(tree, idle);
    const std::vector<int32_t> wanted = job_sizes(sizes);
    scalar("rounds", rounds, 1, 1 << 20);
    // cost = unit * factor * (sum of hop(top) n - hop(leaf) - gain / n): the part that no job can
    // avoid.
    const double factor = static_cast<double>(metric.unit) * (metric.ordered ? 1.0 : 0.5);
    double unavoidable = 0;
    for (const int32_t n : wanted) {
        unavoidable += static_cast<double>(metric.hops[tree.highest_level()]) * n -
                       static_cast<double>(metric.hops[0]);
    }
    const double known = unavoidable - cost / factor;
    const double gain = compact_bound(tree, metric, idle_by_leaf(tree, nodes), wanted,
                                      static_cast<int32_t>(rounds), known);
    const double rounding = metric.floored ? static_cast<double>(wanted.size()) : 0;
    return std::max(0.0, (unavoidable - gain) * factor - rounding);
}

} // namespace

void define_tree(nb::module_ &m) {
    using namespace nb::literals;
    nb::class_<HopMetric>(m, "HopMetric")
        .def(
            "__init__",
            [](HopMetric *self, nb::handle hops, int64_t unit, bool ordered, bool floored) {
                new (self) HopMetric(make_metric(hops, unit, ordered, floored));
            },
            "hops"_a, "unit"_a = 1000, "ordered"_a = true, "floored"_a = false);
    nb::class_<Tree>(m, "Tree")
        .def(
            "__init__",
            [](Tree *self, nb::handle parent, nb::handle leaf_of_node) {
                new (self) Tree(as_vector(Column<int32_t>("parent", parent)),
                                as_vector(Column<int32_t>("leaf_of_node", leaf_of_node)));
            },
            "parent"_a, "leaf_of_node"_a)
        .def_prop_ro("n_switches", &Tree::n_switches)
        .def_prop_ro("n_nodes", &Tree::n_nodes)
        .def_prop_ro(
            "level",
            [](const Tree &tree) { return nb::cast(to_numpy(std::vector<int32_t>(tree.level()))); })
        .def_prop_ro(
            "root",
            [](const Tree &tree) { return nb::cast(to_numpy(std::vector<int32_t>(tree.root()))); })
        .def("costs", &costs_py, "metric"_a, "indptr"_a, "nodes"_a)
        .def("sequential", &sequential_py, "idle"_a, "sizes"_a)
        .def("contiguous", &contiguous_py, "metric"_a, "idle"_a, "sizes"_a)
        .def("anneal", &anneal_py, "metric"_a, "idle"_a, "sizes"_a, "iterations"_a, "seed"_a,
             "restore"_a = true, "hottest"_a = 2500.0, "coldest"_a = 2.5, "most_removed"_a = 2)
        .def("compact", &compact_py, "metric"_a, "idle"_a, "sizes"_a, "steps"_a = 5'000'000,
             "iterations"_a = 0, "seed"_a = 0)
        .def("exchange", &exchange_py, "metric"_a, "nodes"_a, "kind"_a, "holder"_a, "most"_a,
             "moves"_a = 20000, "seed"_a = 0)
        .def("bound", &bound_py, "metric"_a, "idle"_a, "sizes"_a, "rounds"_a = 200, "cost"_a = 0.0);
}

} // namespace bridge
