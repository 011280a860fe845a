// SPDX-License-Identifier: Apache-2.0
#include "topology/arguments.hpp"

#include <algorithm>

namespace bridge {

std::vector<int32_t> as_vector(const Column<int32_t> &column) {
    return {column.data(), column.data() + column.rows()};
}

void expect_levels(const Tree &tree, const HopMetric &metric) {
    if (static_cast<int32_t>(metric.hops.size()) <= tree.highest_level()) {
        refuse("metric: has hops for " + std::to_string(metric.hops.size()) +
               " levels, but the tree has " + std::to_string(tree.highest_level() + 1));
    }
}

std::vector<int32_t> idle_nodes(const Tree &tree, nb::handle idle) {
    const Column<int32_t> column("idle", idle);
    column.within(0, static_cast<int32_t>(tree.n_nodes()) - 1);
    std::vector<uint8_t> seen(tree.n_nodes(), 0);
    for (size_t i = 0; i < column.rows(); ++i) {
        if (tree.leaf_of_node()[column[i]] < 0) {
            refuse("idle: node " + std::to_string(column[i]) + " hangs on no switch");
        }
        if (seen[column[i]]++) {
            refuse("idle: node " + std::to_string(column[i]) + " stands listed twice");
        }
    }
    return as_vector(column);
}

std::vector<int32_t> job_sizes(nb::handle sizes) {
    const Column<int32_t> column("sizes", sizes);
    column.within(1, MAX_NODES);
    return as_vector(column);
}

IdleSequence sequence_of(const Tree &tree, nb::handle idle) {
    IdleSequence sequence{idle_nodes(tree, idle)};
    if (!std::is_sorted(sequence.nodes.begin(), sequence.nodes.end())) {
        refuse("idle: must ascend");
    }
    return sequence;
}

AnnealEffort anneal_effort(int64_t iterations, int64_t seed, bool restore, double hottest,
                           double coldest, int64_t most_removed) {
    scalar("iterations", iterations, 0);
    scalar("seed", seed, 0);
    if (!(coldest > 0 && hottest >= coldest)) {
        refuse("coldest: must be more than 0 and no more than hottest");
    }
    return {iterations, static_cast<int32_t>(scalar("most_removed", most_removed, 1, 1 << 20)),
            hottest,    coldest,
            restore,    static_cast<uint64_t>(seed)};
}

NodeSets as_csr(const std::vector<std::vector<int32_t>> &sets) {
    std::vector<int64_t> indptr(1, 0);
    std::vector<int32_t> nodes;
    for (const auto &set : sets) {
        nodes.insert(nodes.end(), set.begin(), set.end());
        std::sort(nodes.begin() + indptr.back(), nodes.end());
        indptr.push_back(static_cast<int64_t>(nodes.size()));
    }
    return nb::make_tuple(to_numpy(std::move(indptr)), to_numpy(std::move(nodes)));
}

NodeSets from_positions(const Tree &tree, const IdleSequence &sequence,
                        const ContiguousPlacement &placed) {
    std::vector<std::vector<int32_t>> sets;
    for (const auto &positions : placed) {
        sets.emplace_back();
        bool together = true;
        for (const int32_t i : positions) {
            sets.back().push_back(sequence.nodes[i]);
            together = together && tree.root()[tree.leaf_of_node()[sequence.nodes[i]]] ==
                                       tree.root()[tree.leaf_of_node()[sets.back()[0]]];
        }
        if (!together) {
            sets.back().clear();
        }
    }
    return as_csr(sets);
}

} // namespace bridge
