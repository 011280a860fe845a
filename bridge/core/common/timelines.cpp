// SPDX-License-Identifier: Apache-2.0
#include "common/timelines.hpp"

#include <algorithm>

namespace bridge {

void Timelines::open(size_t node, int64_t now, const int64_t *amounts,
                     std::vector<Holder> &holders) {
    std::sort(holders.begin(), holders.end(),
              [](const Holder &a, const Holder &b) { return a.end < b.end; });
    Timeline &line = nodes_[node];
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

size_t Timelines::segment_at(const Timeline &line, int64_t time) {
    const int64_t *begins = line.begin.data();
    size_t base = 0;
    for (size_t n = line.begin.size(); n > 1;) { // branch-free: the outcome is random
        const size_t half = n / 2;
        base += begins[base + half] <= time ? half : 0;
        n -= half;
    }
    return base;
}

int64_t Timelines::next_fit(size_t node, Need need, int64_t from, int64_t length,
                            int64_t latest) const {
    const Timeline &line = nodes_[node];
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
    for (size_t i = segment_at(line, from);;) {
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

void Timelines::least(size_t node, int64_t start, int64_t end, int64_t *amounts) const {
    const Timeline &line = nodes_[node];
    size_t i = segment_at(line, start);
    std::copy_n(line.free.data() + i * columns_, columns_, amounts);
    for (++i; i < line.begin.size() && line.begin[i] < end; ++i) {
        const int64_t *free = line.free.data() + i * columns_;
        for (size_t c = 0; c < columns_; ++c) {
            amounts[c] = std::min(amounts[c], free[c]);
        }
    }
}

int64_t Timelines::busy_from(size_t node, int64_t time) const {
    const Timeline &line = nodes_[node];
    for (size_t i = segment_at(line, time); i < line.begin.size(); ++i) {
        if (line.free[i * columns_] < WHOLE) {
            return std::max(time, line.begin[i]);
        }
    }
    return NEVER;
}

// The segment that begins at `time`, made if need be.
size_t Timelines::cut(Timeline &line, int64_t time) {
    const size_t i = segment_at(line, time);
    if (line.begin[i] == time) {
        return i;
    }
    const auto next = static_cast<std::ptrdiff_t>(i) + 1;
    line.begin.insert(line.begin.begin() + next, time);
    line.free.insert(line.free.begin() + next * static_cast<std::ptrdiff_t>(columns_), columns_, 0);
    std::copy_n(line.free.data() + i * columns_, columns_, line.free.data() + (i + 1) * columns_);
    return i + 1;
}

void Timelines::merge(Timeline &line, size_t segment) {
    if (segment == 0 || segment >= line.begin.size()) {
        return;
    }
    const auto at = static_cast<std::ptrdiff_t>(segment * columns_);
    const auto width = static_cast<std::ptrdiff_t>(columns_);
    const auto free = line.free.begin() + at;
    if (std::equal(free, free + width, free - width)) {
        line.begin.erase(line.begin.begin() + static_cast<std::ptrdiff_t>(segment));
        line.free.erase(free, free + width);
    }
}

void Timelines::book(size_t node, int64_t start, int64_t end, const int64_t *amounts) {
    Timeline &line = nodes_[node];
    const size_t first = cut(line, start);
    const size_t last = end == NEVER ? line.begin.size() : cut(line, end);
    for (size_t i = first; i < last; ++i) {
        for (size_t c = 0; c < columns_; ++c) {
            line.free[i * columns_ + c] -= amounts[c];
        }
    }
    merge(line, last);
    merge(line, first);
}

} // namespace bridge
