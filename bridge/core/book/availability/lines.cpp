// SPDX-License-Identifier: Apache-2.0
#include "book/availability/lines.hpp"

#include <algorithm>

namespace bridge {

int64_t LineNeed::times_in(const int64_t *free, int64_t maximum) const {
    for (size_t i = 0; i < n && maximum > 0; ++i) {
        const int64_t have = free[columns[i]];
        if (have < amounts[i]) {
            return 0;
        }
        if (maximum > 1) {
            maximum = std::min(maximum, have / amounts[i]);
        }
    }
    return maximum;
}

void NodeLines::open(size_t node, int64_t now, const int64_t *amounts) {
    lines_[node].begin.assign(1, now);
    lines_[node].free.assign(amounts, amounts + columns_);
}

int64_t NodeLines::next_fit(size_t node, LineNeed need, int64_t from, int64_t length,
                            int64_t latest, LineNeed rough, Lack *lack) const {
    if (from > latest) {
        return from;
    }
    const Segments &line = lines_[node];
    const size_t n = line.begin.size();
    const int64_t *begin = line.begin.data();
    int64_t start = from;
    size_t i = line.at(from);
    const int64_t *free = line.free.data() + i * columns_;
    if (lack != nullptr && !rough.held_by(free)) {
        const int64_t since = begin[i];
        do {
            free += columns_;
            start = ++i == n ? NEVER : begin[i];
        } while (i < n && start <= latest && !rough.held_by(free));
        lack->learn(since, start);
        if (i == n || start > latest) {
            return start;
        }
    }
    for (;;) {
        while (!need.held_by(free)) {
            start = ++i == n ? NEVER : begin[i];
            if (i == n || start > latest) {
                return start;
            }
            free += columns_;
        }
        const int64_t end = end_of(start, length);
        do {
            if (++i == n || begin[i] >= end) {
                return start;
            }
            free += columns_;
        } while (need.held_by(free));
    }
}

int64_t NodeLines::last_fit(size_t node, LineNeed need, int64_t from, int64_t length,
                            int64_t earliest) const {
    if (from < earliest) {
        return -1;
    }
    const Segments &line = lines_[node];
    const int64_t end = end_of(from, length);
    int64_t start = from;
    for (size_t i = line.at(end == NEVER ? NEVER : end - 1);; --i) {
        if (!need.held_by(free(node, i))) { // then it must end before this segment
            start = std::min(start, line.begin[i] - length);
            if (start < earliest) {
                return -1;
            }
        } else if (line.begin[i] <= start) {
            return start;
        }
        if (i == 0) {
            return -1;
        }
    }
}

NodeLines::Room NodeLines::room(size_t node, LineNeed need, int64_t start, int64_t length,
                                int64_t maximum) const {
    constexpr size_t LOOKED_AHEAD = 16;
    const Segments &line = lines_[node];
    const size_t n = line.begin.size();
    const int64_t end = end_of(start, length);
    size_t i = line.at(start);
    int64_t times = maximum;
    int64_t rise = NEVER;
    for (; i < n && (line.begin[i] < end || line.begin[i] <= start); ++i) {
        const int64_t here = need.times_in(free(node, i), maximum);
        if (here <= times && here < maximum) {
            times = here;
            rise = i + 1 < n ? line.begin[i + 1] : NEVER;
        }
    }
    int64_t same_until = rise;
    for (size_t ahead = 0; i < n; ++i, ++ahead) {
        const int64_t drop = line.begin[i] - length + 1;
        if (drop >= same_until) {
            break;
        }
        if (ahead == LOOKED_AHEAD || need.times_in(free(node, i), maximum) < times) {
            same_until = drop;
            break;
        }
    }
    return {times, same_until, rise};
}

int64_t NodeLines::change_after(size_t node, int64_t time) const {
    const Segments &line = lines_[node];
    const auto next = std::upper_bound(line.begin.begin(), line.begin.end(), time);
    return next == line.begin.end() ? NEVER : *next;
}

int64_t NodeLines::change_before(size_t node, int64_t time) const {
    const Segments &line = lines_[node];
    const auto next = std::lower_bound(line.begin.begin(), line.begin.end(), time);
    return next == line.begin.begin() ? -1 : *(next - 1);
}

void NodeLines::add(size_t node, int64_t start, int64_t end, const int64_t *amounts, int64_t sign) {
    Segments &line = lines_[node];
    start = std::max(start, line.begin.front());
    if (end <= start) {
        return;
    }
    line.add(columns_, start, end, amounts, sign);
    if (range_summary_.kept()) {
        range_summary_.take_in(node, line.begin.data(), line.free.data(), line.begin.size(), start,
                               end);
    }
}

void NodeLines::summarize(int64_t now) {
    std::vector<int64_t> greatest(columns_, 0);
    int64_t horizon = now;
    for (const Segments &line : lines_) {
        horizon = std::max(horizon, line.begin.back());
        for (size_t i = 0; i < line.free.size(); ++i) {
            greatest[i % columns_] = std::max(greatest[i % columns_], line.free[i]);
        }
    }
    range_summary_.begin(lines_.size(), now, horizon, greatest);
    for (size_t node = 0; node < lines_.size(); ++node) {
        const Segments &line = lines_[node];
        range_summary_.take_in(node, line.begin.data(), line.free.data(), line.begin.size(), now,
                               NEVER);
    }
}

int64_t NodeLines::held_since(size_t node, LineNeed need, int64_t time) const {
    const Segments &line = lines_[node];
    int64_t since = time;
    for (size_t i = line.at(time - 1) + 1; i-- > 0 && need.held_by(free(node, i));) {
        since = line.begin[i];
    }
    return since;
}

int64_t NodeLines::held_until(size_t node, LineNeed need, int64_t time) const {
    const Segments &line = lines_[node];
    for (size_t i = line.at(time); i < line.begin.size(); ++i) {
        if (!need.held_by(free(node, i))) {
            return line.begin[i];
        }
    }
    return NEVER;
}

void NodeLines::trim(size_t node, int64_t now) {
    Segments &line = lines_[node];
    const size_t gone = line.at(now);
    if (gone > 0) {
        const auto n = static_cast<std::ptrdiff_t>(gone);
        line.begin.erase(line.begin.begin(), line.begin.begin() + n);
        line.free.erase(line.free.begin(),
                        line.free.begin() + n * static_cast<std::ptrdiff_t>(columns_));
    }
    line.begin.front() = now;
}

void NodeLines::warm(const std::vector<int32_t> &nodes, int64_t time) const {
    constexpr size_t TOGETHER = 16;
    const int64_t *at[TOGETHER];
    size_t left[TOGETHER];
    for (size_t first = 0; first < nodes.size(); first += TOGETHER) {
        const size_t n = std::min(TOGETHER, nodes.size() - first);
        size_t longest = 0;
        for (size_t i = 0; i < n; ++i) {
            const Segments &line = lines_[static_cast<size_t>(nodes[first + i])];
            at[i] = line.begin.data();
            left[i] = line.begin.size();
            longest = std::max(longest, left[i]);
        }
        for (; longest > 1; longest -= longest / 2) { // as in Segments::at
            for (size_t i = 0; i < n; ++i) {
                const size_t half = left[i] / 2;
                at[i] += at[i][half] <= time ? half : 0;
                left[i] -= half;
            }
        }
        for (size_t i = 0; i < n; ++i) {
            const Segments &line = lines_[static_cast<size_t>(nodes[first + i])];
            const auto segment = static_cast<size_t>(at[i] - line.begin.data());
            __builtin_prefetch(line.free.data() + segment * columns_);
        }
    }
}

size_t NodeLines::bytes() const {
    size_t sum = lines_.size() * sizeof(Segments);
    for (const Segments &line : lines_) {
        sum += (line.begin.capacity() + line.free.capacity()) * sizeof(int64_t);
    }
    return sum;
}

} // namespace bridge
