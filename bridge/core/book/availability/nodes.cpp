// SPDX-License-Identifier: Apache-2.0
#include "book/availability/nodes.hpp"

#include <algorithm>
#include <numeric>

namespace bridge {
namespace {

constexpr int64_t NOTHING_KEPT = int64_t{1} << 56;

} // namespace

BookNodes::BookNodes(size_t n_nodes, size_t n_res, const int64_t *capacity,
                     const int32_t *node_rank, const std::vector<Protection> &protections)
    : n_res_(n_res), rank_(n_nodes), index_(n_nodes), position_(n_nodes), type_(n_nodes) {
    std::iota(index_.begin(), index_.end(), 0);
    std::stable_sort(index_.begin(), index_.end(),
                     [&](int32_t a, int32_t b) { return node_rank[a] < node_rank[b]; });
    for (size_t p = 0; p < n_nodes; ++p) {
        rank_[p] = node_rank[index_[p]];
        position_[static_cast<size_t>(index_[p])] = static_cast<int32_t>(p);
    }
    for (const Protection &protection : protections) {
        for (size_t r = 0; r < n_res; ++r) {
            Protected one{protection.resource, r, std::vector<int64_t>(n_nodes)};
            for (size_t p = 0; p < n_nodes; ++p) {
                one.keep[p] = protection.keep[static_cast<size_t>(index_[p]) * n_res + r];
            }
            if (r != protection.resource &&
                std::any_of(one.keep.begin(), one.keep.end(), [](int64_t k) { return k > 0; })) {
                protected_.push_back(std::move(one));
            }
        }
    }
    capacity_.resize(n_nodes * columns());
    for (size_t p = 0; p < n_nodes; ++p) {
        set_capacity(p, capacity + static_cast<size_t>(index_[p]) * n_res);
    }
}

void BookNodes::set_capacity(size_t position, const int64_t *resources) {
    std::vector<int64_t> row(columns(), 0);
    std::copy_n(resources, n_res_, row.begin());
    if (std::any_of(row.begin(), row.end(), [](int64_t amount) { return amount > 0; })) {
        for (size_t k = 0; k < protected_.size(); ++k) {
            const int64_t keep = protected_[k].keep[position];
            row[n_res_ + k] = keep > 0
                                  ? std::max<int64_t>(0, resources[protected_[k].resource] - keep)
                                  : NOTHING_KEPT;
        }
        row[occupancy()] = WHOLE;
    }
    std::copy(row.begin(), row.end(),
              capacity_.begin() + static_cast<std::ptrdiff_t>(position * columns()));
    const auto [at, is_new] =
        type_ids_.try_emplace(std::move(row), static_cast<uint32_t>(types_.size()));
    if (is_new) {
        types_.push_back(at->first.data());
    }
    type_[position] = at->second;
}

void BookNodes::extend(const int64_t *resources, int64_t *amounts) const {
    std::copy_n(resources, n_res_, amounts);
    for (size_t k = 0; k < protected_.size(); ++k) {
        const bool requested = resources[protected_[k].protected_resource] > 0;
        amounts[n_res_ + k] = requested ? 0 : resources[protected_[k].resource];
    }
    amounts[occupancy()] = 1;
}

bool BookNodes::keeps_from(const int64_t *capacity, const int64_t *amounts) const {
    for (size_t k = 0; k < protected_.size(); ++k) {
        if (capacity[n_res_ + k] != NOTHING_KEPT &&
            amounts[protected_[k].protected_resource] == 0) {
            return true;
        }
    }
    return false;
}

int64_t BookNodes::protected_in(const int64_t *amounts) const {
    int64_t bits = 0;
    for (const Protected &one : protected_) {
        if (amounts[one.protected_resource] > 0) {
            bits |= int64_t{1} << std::min<size_t>(one.protected_resource, 62);
        }
    }
    return bits;
}

BookClass::BookClass(std::vector<int32_t> positions, size_t n_nodes)
    : positions_(std::move(positions)), member_(n_nodes, false) {
    for (const int32_t p : positions_) {
        member_[static_cast<size_t>(p)] = true;
    }
}

void BookClass::set_closed(const std::vector<std::pair<int32_t, Interval>> &closed) {
    closed_.clear();
    if (closed.empty()) {
        return;
    }
    closed_.resize(member_.size());
    for (const auto &[position, interval] : closed) {
        closed_[static_cast<size_t>(position)].push_back(interval);
    }
    for (std::vector<Interval> &intervals : closed_) {
        std::sort(intervals.begin(), intervals.end(),
                  [](const Interval &a, const Interval &b) { return a.start < b.start; });
        std::vector<Interval> apart;
        for (const Interval &next : intervals) {
            if (!apart.empty() && next.start <= apart.back().end) {
                apart.back().end = std::max(apart.back().end, next.end);
            } else {
                apart.push_back(next);
            }
        }
        intervals = std::move(apart);
    }
}

int64_t BookClass::next_open(size_t position, int64_t start, int64_t length) const {
    if (closed_.empty()) {
        return start;
    }
    for (const Interval &closed : closed_[position]) {
        if (closed.start >= end_of(start, length)) {
            break;
        }
        start = std::max(start, closed.end);
    }
    return start;
}

int64_t BookClass::last_open(size_t position, int64_t start, int64_t length) const {
    if (closed_.empty()) {
        return start;
    }
    const std::vector<Interval> &intervals = closed_[position];
    for (auto closed = intervals.rbegin(); closed != intervals.rend(); ++closed) {
        if (closed->end <= start) {
            break;
        }
        if (closed->start < end_of(start, length)) {
            start = closed->start - length;
        }
    }
    return std::max<int64_t>(start, -1);
}

int64_t BookClass::change_after(size_t position, int64_t time) const {
    int64_t change = NEVER;
    if (!closed_.empty()) {
        for (const Interval &closed : closed_[position]) {
            for (const int64_t at : {closed.start, closed.end}) {
                change = at > time ? std::min(change, at) : change;
            }
        }
    }
    return change;
}

int64_t BookClass::change_before(size_t position, int64_t time) const {
    int64_t change = -1;
    if (!closed_.empty()) {
        for (const Interval &closed : closed_[position]) {
            for (const int64_t at : {closed.start, closed.end}) {
                change = at < time ? std::max(change, at) : change;
            }
        }
    }
    return change;
}

} // namespace bridge
