// SPDX-License-Identifier: Apache-2.0
#include "common/timelines.hpp"

#include <algorithm>

namespace bridge {

void Timelines::open(size_t node, int64_t now, const int64_t *amounts,
                     std::vector<Holder> &holders) {
    std::sort(holders.begin(), holders.end(),
              [](const Holder &a, const Holder &b) { return a.end < b.end; });
    Segments &line = nodes_[node];
    line.begin.assign(1, now);
    for (const Holder &holder : holders) {
        if (holder.end != NEVER && holder.end != line.begin.back()) {
            line.begin.push_back(holder.end);
        }
    }
    line.free.resize(line.begin.size() * columns_);
    std::vector<int64_t> free(amounts, amounts + columns_);
    size_t segment = line.begin.size();
    const auto close_segment = [&] {
        --segment;
        std::copy(free.begin(), free.end(),
                  line.free.begin() + static_cast<std::ptrdiff_t>(segment * columns_));
    };
    for (auto holder = holders.rbegin(); holder != holders.rend(); ++holder) {
        while (holder->end != NEVER && line.begin[segment - 1] == holder->end) {
            close_segment();
        }
        for (size_t c = 0; c < columns_; ++c) {
            free[c] -= holder->taken[c];
        }
    }
    close_segment();
}

int64_t Timelines::next_fit(size_t node, Need need, int64_t from, int64_t length,
                            int64_t latest) const {
    const Segments &line = nodes_[node];
    const size_t n = line.begin.size();
    const auto holds = [&](size_t segment) {
        const int64_t *free = line.free.data() + segment * columns_;
        for (size_t c = 0; c < need.columns; ++c) {
            if (free[c] < need.amounts[c]) {
                return false;
            }
        }
        return true;
    };
    int64_t start = from;
    if (start > latest) {
        return NEVER;
    }
    for (size_t i = line.at(from);;) {
        while (!holds(i)) {
            if (++i == n || line.begin[i] > latest) {
                return NEVER;
            }
            start = line.begin[i];
        }
        const int64_t end = end_of(start, length);
        size_t j = i + 1;
        while (j < n && line.begin[j] < end && holds(j)) {
            ++j;
        }
        if (j == n || line.begin[j] >= end) {
            return start;
        }
        i = j;
    }
}

int64_t Timelines::busy_from(size_t node, int64_t time) const {
    const Segments &line = nodes_[node];
    for (size_t i = line.at(time); i < line.begin.size(); ++i) {
        if (line.free[i * columns_] < WHOLE) {
            return std::max(time, line.begin[i]);
        }
    }
    return NEVER;
}

void Timelines::minimum(size_t node, int64_t start, int64_t end, int64_t *amounts) const {
    nodes_[node].minimum(columns_, start, end, amounts);
}

void Timelines::book(size_t node, int64_t start, int64_t end, const int64_t *amounts) {
    nodes_[node].add(columns_, start, end, amounts, -1);
}

} // namespace bridge
