// SPDX-License-Identifier: Apache-2.0
#include "topology/warm_start.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "topology/contiguous.hpp"

namespace bridge {
namespace {

// Sums that the program may take whatever the bound (nearly all cuts are skipped, so it takes a
// small part of them), and for one cut.
constexpr int64_t SMALL = int64_t{1} << 25, OF_A_CUT = int64_t{1} << 19;

using Sets = std::vector<std::vector<int32_t>>; // nodes by job

LeafCounts counted(const Tree &tree, const std::vector<int32_t> &nodes) {
    std::vector<int32_t> leaves;
    for (const int32_t node : nodes) {
        leaves.push_back(tree.leaf_of_node()[node]);
    }
    return leaf_counts(std::move(leaves));
}

// Counts of a placement and its cost; infinite: a job is not placed, or in two trees.
double judged(const Tree &tree, const HopMetric &metric, const Sets &sets,
              std::vector<LeafCounts> &held) {
    double cost = 0;
    held.clear();
    for (const auto &nodes : sets) {
        const int32_t root = nodes.empty() ? -1 : tree.root()[tree.leaf_of_node()[nodes.front()]];
        for (const int32_t node : nodes) {
            if (tree.root()[tree.leaf_of_node()[node]] != root) {
                return std::numeric_limits<double>::infinity();
            }
        }
        if (nodes.empty()) {
            return std::numeric_limits<double>::infinity();
        }
        held.push_back(counted(tree, nodes));
        cost += tree.cost(metric, held.back());
    }
    return cost;
}

// Sums of the program for some sizes on m idle nodes, for one cut.
int64_t sums(std::vector<int32_t> sizes, int64_t m) {
    std::sort(sizes.begin(), sizes.end());
    int64_t states = 1, kinds = 0;
    for (size_t i = 0; i < sizes.size();) {
        size_t end = i;
        while (end < sizes.size() && sizes[end] == sizes[i]) {
            ++end;
        }
        states *= static_cast<int64_t>(end - i) + 1;
        ++kinds;
        i = end;
    }
    return states * kinds * m;
}

// The best runs, `maximum` jobs at a time; fewer sets than jobs: it would take too long.
Sets runs(const Tree &tree, const HopMetric &metric, std::vector<int32_t> idle,
          const std::vector<int32_t> &sizes, size_t maximum, int64_t bound, int64_t &summed) {
    std::vector<int32_t> order(sizes.size());
    std::iota(order.begin(), order.end(), 0);
    if (sizes.size() > maximum) {
        std::stable_sort(order.begin(), order.end(),
                         [&](int32_t a, int32_t b) { return sizes[a] > sizes[b]; });
    }
    Sets sets(sizes.size());
    for (size_t first = 0; first < order.size(); first += maximum) {
        const size_t end = std::min(first + maximum, order.size());
        std::vector<int32_t> group;
        for (size_t i = first; i < end; ++i) {
            group.push_back(sizes[order[i]]);
        }
        const int64_t of_a_cut = sums(group, static_cast<int64_t>(idle.size()));
        const bool small = of_a_cut * *std::max_element(group.begin(), group.end()) <= SMALL;
        const int64_t more = bound - summed;
        const bool late = bound > 0 && more <= 0;
        if (!small && (bound <= 0 || of_a_cut > OF_A_CUT)) {
            return {};
        }
        const IdleSequence sequence{idle};
        const ContiguousPlacement placed =
            late ? contiguous_sequential(sequence, group)
                 : contiguous_exact(tree, metric, sequence, group, int64_t{1} << 12,
                                    (small && sizes.size() <= maximum) || bound <= 0 ? 0 : more,
                                    &summed);
        std::vector<uint8_t> taken(idle.size(), 0);
        for (size_t i = first; i < end; ++i) {
            for (const int32_t position : placed[i - first]) {
                sets[order[i]].push_back(idle[position]);
                taken[position] = 1;
            }
        }
        std::vector<int32_t> left;
        for (size_t i = 0; i < idle.size(); ++i) {
            if (!taken[i]) {
                left.push_back(idle[i]);
            }
        }
        idle = std::move(left);
    }
    return sets;
}

} // namespace

std::vector<LeafCounts> warm_start(const Tree &tree, const HopMetric &metric,
                                   const std::vector<int32_t> &idle,
                                   const std::vector<int32_t> &sizes, int64_t sums,
                                   int64_t &summed) {
    if (sizes.size() < 2) {
        return {}; // the best set of one job is found exactly
    }
    Sets sequential;
    for (const auto &positions : contiguous_sequential({idle}, sizes)) {
        sequential.emplace_back();
        for (const int32_t position : positions) {
            sequential.back().push_back(idle[position]);
        }
    }
    std::vector<LeafCounts> best, held;
    double minimum = std::numeric_limits<double>::infinity();
    const auto offer = [&](const Sets &sets) {
        if (sets.size() == sizes.size()) {
            const double cost = judged(tree, metric, sets, held);
            if (cost < minimum) {
                minimum = cost;
                best = held;
            }
        }
    };
    offer(sequential);
    offer(runs(tree, metric, idle, sizes, sizes.size() <= 8 ? 8 : 4, sums, summed));
    return best;
}

} // namespace bridge
