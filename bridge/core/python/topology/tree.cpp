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

HopMetric make_metric(Array<int64_t> hops, int64_t unit, bool ordered, bool floored) {
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
NodeSets as_nodes(const Tree &tree, const std::vector<int32_t> &idle,
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

Array<double> costs_py(const Tree &tree, const HopMetric &metric, Array<int64_t> indptr,
                       Array<int32_t> nodes) {
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
    return to_numpy(std::move(costs));
}

NodeSets sequential_py(const Tree &tree, Array<int32_t> idle, Array<int32_t> sizes) {
    const IdleSequence sequence = sequence_of(tree, idle);
    return from_positions(tree, sequence, contiguous_sequential(sequence, job_sizes(sizes)));
}

NodeSets contiguous_py(const Tree &tree, const HopMetric &metric, Array<int32_t> idle,
                       Array<int32_t> sizes) {
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

NodeSets anneal_py(const Tree &tree, const HopMetric &metric, Array<int32_t> idle,
                   Array<int32_t> sizes, int64_t iterations, int64_t seed, bool restore,
                   double hottest, double coldest, int64_t most_removed) {
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

NodeSets compact_py(const Tree &tree, const HopMetric &metric, Array<int32_t> idle,
                    Array<int32_t> sizes, int64_t steps, int64_t iterations, int64_t seed) {
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
Array<int32_t> exchange_py(const Tree &tree, const HopMetric &metric, Array<int32_t> nodes,
                           Array<int32_t> kind, Array<int32_t> holder, Array<int32_t> maximum,
                           int64_t moves, int64_t seed) {
    expect_levels(tree, metric);
    const Column<int32_t> held("nodes", nodes), kinds("kind", kind), holders("holder", holder),
        bounds("maximum", maximum);
    held.within(0, static_cast<int32_t>(tree.n_nodes()) - 1);
    kinds.expect_rows(held.rows(), "nodes");
    holders.expect_rows(held.rows(), "nodes");
    kinds.within(-1, MAX_NODES);
    holders.within(-1, static_cast<int32_t>(bounds.rows()) - 1);
    bounds.within(0, MAX_NODES);
    scalar("moves", moves, 0);
    scalar("seed", seed, 0);
    constexpr size_t max_counts = 1U << 26;
    if (bounds.rows() * tree.n_switches() > max_counts) {
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
    return to_numpy(std::move(found));
}

double bound_py(const Tree &tree, const HopMetric &metric, Array<int32_t> idle,
                Array<int32_t> sizes, int64_t rounds, double cost) {
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
    nb::class_<HopMetric>(m, "HopMetric", R"(The communication cost of a job.

The hops between two nodes depend on the level of their lowest common switch. A job of n nodes
costs ``unit / n`` times the sum of hops over its ordered pairs (``ordered``), or its unordered
ones; ``floored``: rounded down.)")
        .def(
            "__init__",
            [](HopMetric *self, Array<int64_t> hops, int64_t unit, bool ordered, bool floored) {
                new (self) HopMetric(make_metric(hops, unit, ordered, floored));
            },
            "hops"_a, "unit"_a = 1000, "ordered"_a = true, "floored"_a = false, R"(Makes a metric.

Args:
    hops: (n_levels,) hops by level of switch; level 0: the switch the nodes hang on. At
        least 1 and rising.
    unit: the cost of a hop, 1 or more.
    ordered: count each pair twice.
    floored: round each job's cost down.

Raises:
    ValueError: the hops do not rise, or something is out of range.)");
    nb::class_<Tree>(
        m, "Tree",
        R"(Switches, and the nodes attached to them. Nodes under different roots cannot communicate.

A switch without switches below it is at level 0; any other is one above its highest child.
All methods take idle nodes as indices of attached nodes, each once, and job sizes in nodes, at
least 1; a job that cannot be placed gets no nodes, and the others are placed all the same. For
anything else, and for a metric with fewer levels than the tree, they raise ``ValueError``,
whose text begins with the argument's name.)")
        .def(
            "__init__",
            [](Tree *self, Array<int32_t> parent, Array<int32_t> leaf_of_node) {
                new (self) Tree(as_vector(Column<int32_t>("parent", parent)),
                                as_vector(Column<int32_t>("leaf_of_node", leaf_of_node)));
            },
            "parent"_a, "leaf_of_node"_a, R"(Makes a tree.

Args:
    parent: (n_switches,) the switch above each; -1: a root. Unequal depths and several
        roots are allowed.
    leaf_of_node: (n_nodes,) the level-0 switch of each node; -1: none.

Raises:
    ValueError: switches form a cycle or name switches that do not exist; or a node is
        attached to a switch that has others below it.)")
        .def_prop_ro("n_switches", &Tree::n_switches, "Number of switches.")
        .def_prop_ro("n_nodes", &Tree::n_nodes, "Number of nodes.")
        .def_prop_ro(
            "level", [](const Tree &tree) { return to_numpy(std::vector<int32_t>(tree.level())); },
            "(n_switches,) levels.")
        .def_prop_ro(
            "root", [](const Tree &tree) { return to_numpy(std::vector<int32_t>(tree.root())); },
            "(n_switches,) the root above each switch.")
        .def("costs", &costs_py, "metric"_a, "indptr"_a, "nodes"_a,
             R"(The cost of each job, from its counts per switch.

Returns:
    (n_jobs,) costs; infinite for a job under several roots, 0 for one without nodes.)")
        .def("sequential", &sequential_py, "idle"_a, "sizes"_a,
             R"(One job after the other takes the first idle nodes left.

Args:
    idle: ascending.
    sizes: (n_jobs,) nodes wanted.)")
        .def("contiguous", &contiguous_py, "metric"_a, "idle"_a, "sizes"_a,
             R"(The best disjoint runs on the sequence of idle nodes (SCAS), exactly.

The sequence is cyclic. A dynamic program over the sequence and the multiset of jobs placed
so far.

Args:
    metric: the cost.
    idle: ascending.
    sizes: (n_jobs,) nodes requested.

Returns:
    Sets of least total cost; no sets at all if the jobs do not fit together.

Raises:
    ValueError: the jobs make more than 4,096 multisets.)")
        .def("anneal", &anneal_py, "metric"_a, "idle"_a, "sizes"_a, "iterations"_a, "seed"_a,
             "restore"_a = true, "hottest"_a = 2500.0, "coldest"_a = 2.5, "most_removed"_a = 2,
             R"(Simulated annealing over runs on the sequence of idle nodes (DCAS).

Args:
    metric: the cost.
    idle: ascending.
    sizes: (n_jobs,) nodes requested.
    iterations: moves tried: 1 to ``most_removed`` jobs are removed and put back, largest
        first, each at a random place.
    seed: random seed.
    restore: undo rejected moves; False: as in the published code, which does not, and so
        performs a random walk and keeps the best state.
    hottest: initial temperature.
    coldest: final temperature, > 0.
    most_removed: most jobs removed at once.)")
        .def("compact", &compact_py, "metric"_a, "idle"_a, "sizes"_a, "steps"_a = 5'000'000,
             "iterations"_a = 0, "seed"_a = 0,
             R"(Node sets for all jobs together, contiguous or not.

One job's best set is found exactly, by max-plus programs over counts per switch; ties leave
the largest holes. All orders are tried for up to five jobs, then neighbourhoods until a
bound is reached. Never worse than ``sequential``, nor, for up to eight jobs, than
``contiguous`` where that is quick (some hundred idle nodes).

Args:
    metric: the cost.
    idle: in the order in which the nodes of one switch are to be taken.
    sizes: (n_jobs,) nodes requested.
    steps: most steps, of about a nanosecond each; 0: no bound.
    iterations: of the neighbourhood search; 0: no bound. Both 0: orders only.
    seed: random seed.)")
        .def("exchange", &exchange_py, "metric"_a, "nodes"_a, "kind"_a, "holder"_a, "maximum"_a,
             "moves"_a = 20000, "seed"_a = 0,
             R"(Exchanges equal nodes between jobs, two at a time, until there is no gain.

Every job keeps its number of nodes of every kind, so its constraints still hold. Annealing
over exchanges, then exchanges that gain until there are none.

Args:
    metric: the cost.
    nodes: on switches; a fixed one (kind -1) may occur several times.
    kind: of each; nodes of one kind are interchangeable; -1: fixed.
    holder: of each, a row of ``most``; -1: none.
    maximum: (n_jobs,) leaf switches that a job may use; 0: any number. A job that already uses
        more keeps at most that many.
    moves: random exchanges tried.
    seed: random seed.

Returns:
    The holders, at no higher total cost.)")
        .def("bound", &bound_py, "metric"_a, "idle"_a, "sizes"_a, "rounds"_a = 200, "cost"_a = 0.0,
             R"(A lower bound on the total cost of disjoint node sets of these jobs.

By Lagrangian relaxation of the idle nodes of each switch, with subgradient steps.

Args:
    metric: the cost.
    idle: any order.
    sizes: (n_jobs,) nodes requested; each job must be placeable.
    rounds: most steps.
    cost: of the best placement known; it scales the steps, which end when it is met.)");
}

} // namespace bridge
