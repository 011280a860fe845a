// SPDX-License-Identifier: Apache-2.0
#include "order_search/groups.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace bridge {

NodeGroups::NodeGroups(const NodeProblem &problem, const NodeClasses &classes,
                       const Timelines &timelines, bool apart)
    : n_class_(problem.n_class), owner_(problem.n_nodes), place_(problem.n_nodes),
      lines_(timelines.columns()) {
    lines_.begin(problem.n_nodes);
    std::vector<int32_t> order(problem.n_nodes);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        return problem.node_rank[a] < problem.node_rank[b];
    });
    std::map<std::vector<int64_t>, std::vector<uint32_t>> alike; // indexes in the planner's order
    std::vector<int64_t> key;
    for (size_t place = 0; place < order.size(); ++place) {
        const auto node = static_cast<size_t>(order[place]);
        key.assign(1, classes.type(order[place]));
        key.push_back(apart ? static_cast<int64_t>(place) : 0);
        key.push_back(problem.node_rank[node]);
        for (size_t cls = 0; cls < n_class_; ++cls) {
            const uint64_t word = problem.class_nodes[cls * problem.n_words + node / 64];
            key.push_back(static_cast<int64_t>(word >> (node % 64) & 1));
        }
        timelines.append(node, key);
        alike[key].push_back(static_cast<uint32_t>(place));
    }
    uint32_t position = 0;
    for (const auto &[what, places] : alike) {
        const auto group = static_cast<uint32_t>(groups_.size());
        const int32_t node = order[places.front()];
        groups_.push_back({position, position + static_cast<uint32_t>(places.size()), group, node});
        parent_.push_back(group);
        for (size_t cls = 0; cls < n_class_; ++cls) {
            inside_.push_back(static_cast<uint8_t>(what[3 + cls]));
        }
        lines_.copy(timelines, static_cast<size_t>(node), group);
        for (const uint32_t place : places) {
            owner_[position] = group;
            place_[position++] = place;
        }
    }
}

// Makes the position the first one of a group.
void NodeGroups::split(uint32_t position) {
    const uint32_t from = owner_[position];
    if (groups_[from].begin == position) {
        return;
    }
    const auto made = static_cast<uint32_t>(groups_.size());
    groups_.push_back(groups_[from]);
    groups_.back().begin = position;
    groups_[from].end = position;
    parent_.push_back(from);
    std::fill(owner_.begin() + position, owner_.begin() + groups_.back().end, made);
    lines_.copy(lines_, from, made);
}

void NodeGroups::join(size_t groups) {
    while (groups_.size() > groups) {
        const Group &made = groups_.back();
        const uint32_t into = parent_.back();
        groups_[into].end = made.end;
        std::fill(owner_.begin() + made.begin, owner_.begin() + made.end, into);
        groups_.pop_back();
        parent_.pop_back();
    }
}

void NodeGroups::book(const Piece &piece, int64_t start, int64_t end, const int64_t *amounts) {
    split(piece.begin);
    if (piece.end < owner_.size()) {
        split(piece.end);
    }
    for (uint32_t at = piece.begin; at < piece.end; at = groups_[owner_[at]].end) {
        lines_.book(owner_[at], start, end, amounts);
    }
}

void NodeGroups::unbook(const Piece &piece, int64_t start, int64_t end, int64_t *amounts) {
    for (size_t c = 0; c < lines_.columns(); ++c) {
        amounts[c] = -amounts[c];
    }
    for (uint32_t at = piece.begin; at < piece.end; at = groups_[owner_[at]].end) {
        lines_.book(owner_[at], start, end, amounts);
    }
}

} // namespace bridge
