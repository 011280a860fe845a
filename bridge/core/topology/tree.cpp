// SPDX-License-Identifier: Apache-2.0
#include "topology/tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <unordered_map>

namespace bridge {
namespace {

// Switches, children before parents.
std::vector<int32_t> upwards(const std::vector<int32_t> &parent) {
    const size_t n = parent.size();
    std::vector<int32_t> open(n, 0), order;
    for (size_t v = 0; v < n; ++v) {
        if (parent[v] < -1 || parent[v] >= static_cast<int32_t>(n)) {
            throw std::invalid_argument("parent: switch " + std::to_string(v) +
                                        " hangs on a switch that does not exist");
        }
        if (parent[v] >= 0) {
            ++open[parent[v]];
        }
    }
    for (size_t v = 0; v < n; ++v) {
        if (open[v] == 0) {
            order.push_back(static_cast<int32_t>(v));
        }
    }
    for (size_t i = 0; i < order.size(); ++i) {
        const int32_t above = parent[order[i]];
        if (above >= 0 && --open[above] == 0) {
            order.push_back(above);
        }
    }
    if (order.size() != n) {
        throw std::invalid_argument("parent: some switches hang on each other in a circle");
    }
    return order;
}

} // namespace

LeafCounts leaf_counts(std::vector<int32_t> leaves) {
    std::sort(leaves.begin(), leaves.end());
    LeafCounts counts;
    for (const int32_t leaf : leaves) {
        if (counts.empty() || counts.back().first != leaf) {
            counts.emplace_back(leaf, 0);
        }
        ++counts.back().second;
    }
    return counts;
}

Tree::Tree(std::vector<int32_t> parent, std::vector<int32_t> leaf_of_node)
    : parent_(std::move(parent)), leaf_of_node_(std::move(leaf_of_node)) {
    const size_t n = parent_.size();
    const std::vector<int32_t> order = upwards(parent_);
    level_.assign(n, 0);
    root_.resize(n);
    vertex_of_.resize(n);
    std::vector<std::vector<int32_t>> children(n);
    for (const int32_t v : order) {
        if (parent_[v] >= 0) {
            level_[parent_[v]] = std::max(level_[parent_[v]], level_[v] + 1);
        }
        highest_level_ = std::max(highest_level_, level_[v]);
    }
    for (size_t i = order.size(); i-- > 0;) {
        const int32_t v = order[i];
        root_[v] = parent_[v] < 0 ? v : root_[parent_[v]];
    }
    for (size_t v = 0; v < n; ++v) { // in numeric order, whatever the order upwards
        if (parent_[v] >= 0) {
            children[parent_[v]].push_back(static_cast<int32_t>(v));
        }
    }
    for (size_t i = 0; i < leaf_of_node_.size(); ++i) {
        const int32_t leaf = leaf_of_node_[i];
        if (leaf < -1 || leaf >= static_cast<int32_t>(n)) {
            throw std::invalid_argument("leaf_of_node: node " + std::to_string(i) +
                                        " hangs on a switch that does not exist");
        }
        if (leaf >= 0 && level_[leaf] != 0) {
            throw std::invalid_argument("leaf_of_node: node " + std::to_string(i) +
                                        " hangs on a switch that has switches below it");
        }
    }
    for (const int32_t v : order) {
        std::vector<int32_t> parts;
        for (const int32_t child : children[v]) {
            parts.push_back(vertex_of_[child]);
        }
        if (parts.size() == 1) { // a switch above a single one: a vertex of its own, too
            vertices_.push_back({-1, parts[0], -1, -1});
            parts[0] = static_cast<int32_t>(vertices_.size()) - 1;
            vertices_[vertices_.back().left].parent = parts[0];
        }
        if (parts.empty()) {
            vertices_.push_back({});
            parts.push_back(static_cast<int32_t>(vertices_.size()) - 1);
        }
        vertex_of_[v] = join(std::move(parts));
        vertices_[vertex_of_[v]].switch_of = v;
        if (parent_[v] < 0) {
            tops_.push_back(vertex_of_[v]);
        }
    }
}

// Joins vertices in pairs until one is left.
int32_t Tree::join(std::vector<int32_t> parts) {
    while (parts.size() > 1) {
        std::vector<int32_t> joined;
        for (size_t i = 0; i + 1 < parts.size(); i += 2) {
            const auto vertex = static_cast<int32_t>(vertices_.size());
            vertices_.push_back({-1, parts[i], parts[i + 1], -1});
            vertices_[parts[i]].parent = vertices_[parts[i + 1]].parent = vertex;
            joined.push_back(vertex);
        }
        if (parts.size() % 2 == 1) {
            joined.push_back(parts.back());
        }
        parts = std::move(joined);
    }
    return parts[0];
}

double Tree::cost(const HopMetric &metric, const LeafCounts &held) const {
    const std::vector<int64_t> &hops = metric.hops;
    int64_t n = 0, saved = 0;
    std::unordered_map<int32_t, int64_t> below; // nodes by switch of the current level
    int32_t root = -1;
    for (const auto &[leaf, count] : held) {
        if (root >= 0 && root_[leaf] != root) {
            return std::numeric_limits<double>::infinity();
        }
        root = root_[leaf];
        n += count;
        for (int32_t v = leaf; v >= 0; v = parent_[v]) {
            below[v] += count;
        }
    }
    if (n == 0) {
        return 0;
    }
    for (const auto &[v, count] : below) {
        if (parent_[v] >= 0) {
            saved += (hops[level_[parent_[v]]] - hops[level_[v]]) * count * count;
        }
    }
    const int64_t pairs = hops[level_[root]] * n * n - hops[0] * n - saved; // each pair twice
    const double paid = static_cast<double>(metric.unit) *
                        static_cast<double>(metric.ordered ? pairs : pairs / 2) /
                        static_cast<double>(n);
    return metric.floored ? std::floor(paid) : paid;
}

std::vector<int64_t> switch_weights(const Tree &tree, const HopMetric &metric) {
    std::vector<int64_t> weights(tree.n_switches());
    for (size_t v = 0; v < weights.size(); ++v) {
        const int32_t above = tree.parent()[v];
        const int32_t level = above < 0 ? tree.highest_level() : tree.level()[above];
        weights[v] = metric.hops[level] - metric.hops[tree.level()[v]];
    }
    return weights;
}

} // namespace bridge
