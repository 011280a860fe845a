// SPDX-License-Identifier: Apache-2.0
#include "single_pass/node_classes.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "common/times.hpp"

namespace bridge {

NodeClasses::NodeClasses(const NodeProblem &problem)
    : n_res_(problem.n_res), rank_(problem.node_rank) {
    find_types(problem);
    std::vector<int32_t> order(problem.n_nodes);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        return problem.node_rank[a] < problem.node_rank[b];
    });
    classes_.resize(problem.n_class);
    for (size_t cls = 0; cls < problem.n_class; ++cls) {
        const uint64_t *words = problem.class_nodes + cls * problem.n_words;
        Class &made = classes_[cls];
        made.type_count.assign(n_types(), 0);
        for (const int32_t node : order) {
            if ((words[node / 64] >> (node % 64) & 1) != 0) {
                made.nodes.push_back(node);
                ++made.type_count[type(node)];
            }
        }
    }
    find_blackouts(problem);
}

void NodeClasses::find_types(const NodeProblem &problem) {
    const auto capacity_of = [&](size_t node) { return problem.capacity + node * n_res_; };
    std::map<std::vector<int64_t>, uint32_t> known;
    std::vector<int64_t> greatest(n_res_, 0);
    for (size_t node = 0; node < problem.n_nodes; ++node) {
        const int64_t *capacity = capacity_of(node);
        if (node > 0 && std::equal(capacity, capacity + n_res_, capacity_of(node - 1))) {
            node_type_.push_back(node_type_.back()); // neighbours are mostly alike
            continue;
        }
        const auto [at, is_new] = known.try_emplace(
            std::vector<int64_t>(capacity, capacity + n_res_), static_cast<uint32_t>(known.size()));
        if (is_new) {
            type_capacity_.push_back(capacity);
        }
        node_type_.push_back(at->second);
        for (size_t r = 0; r < n_res_; ++r) {
            greatest[r] = std::max(greatest[r], capacity[r]);
        }
    }
    for (const int64_t *capacity : type_capacity_) {
        int64_t score = 0;
        for (size_t r = 0; r < n_res_; ++r) {
            score += greatest[r] > 0 ? (capacity[r] << 20) / greatest[r] : 0;
        }
        type_score_.push_back(score);
    }
}

void NodeClasses::find_blackouts(const NodeProblem &problem) {
    for (size_t b = 0; b < problem.n_blackouts; ++b) {
        if (problem.blackout_end[b] <= problem.now) {
            continue;
        }
        Class &cls = classes_[static_cast<size_t>(problem.blackout_class[b])];
        cls.closed.resize(problem.n_nodes);
        for_each_node(problem.blackout_nodes + b * problem.n_words, problem.n_words,
                      [&](int32_t node) {
                          cls.closed[static_cast<size_t>(node)].emplace_back(
                              problem.blackout_start[b], problem.blackout_end[b]);
                      });
    }
    for (Class &cls : classes_) {
        for (std::vector<Interval> &closed : cls.closed) {
            std::sort(closed.begin(), closed.end());
            size_t kept = 0;
            for (const Interval &interval : closed) {
                if (kept > 0 && interval.first <= closed[kept - 1].second) {
                    closed[kept - 1].second = std::max(closed[kept - 1].second, interval.second);
                } else {
                    closed[kept++] = interval;
                }
            }
            closed.resize(kept);
        }
    }
}

int64_t NodeClasses::left_score(int32_t node, const int64_t *left) const {
    const int64_t *capacity = type_capacity_[type(node)];
    int64_t score = 0;
    for (size_t r = 0; r < n_res_; ++r) {
        score += capacity[r] > 0 ? (left[r] << 20) / capacity[r] : 0;
    }
    return score;
}

int64_t NodeClasses::next_open(size_t cls, int32_t node, int64_t from, int64_t length) const {
    if (classes_[cls].closed.empty()) {
        return from;
    }
    int64_t start = from;
    for (const auto &[begin, end] : classes_[cls].closed[static_cast<size_t>(node)]) {
        if (begin >= end_of(start, length)) {
            break;
        }
        start = std::max(start, end);
    }
    return start;
}

} // namespace bridge
