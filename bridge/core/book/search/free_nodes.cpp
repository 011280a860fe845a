// SPDX-License-Identifier: Apache-2.0
#include "book/search/free_nodes.hpp"

#include <algorithm>

namespace bridge {
namespace {

// Calls `visit(from, until)` for each time in which nobody holds the node whole, within [start,
// end) and from the line's beginning on.
template <typename Visit>
void free_times(const NodeLines &lines, size_t position, int64_t start, int64_t end, Visit visit) {
    const size_t occupancy = lines.columns() - 1;
    int64_t since = -1;
    start = std::max(start, lines.begin(position, 0));
    for (size_t i = lines.segment_at(position, start); i < lines.segments(position); ++i) {
        const int64_t begin = std::max(start, lines.begin(position, i));
        if (begin >= end) {
            break;
        }
        const bool free = lines.free(position, i)[occupancy] > 0;
        if (free && since < 0) {
            since = begin;
        } else if (!free && since >= 0) {
            visit(since, begin);
            since = -1;
        }
    }
    if (since >= 0) {
        visit(since, end);
    }
}

} // namespace

CountProfile *FreeNodes::of(int32_t cls, const BookRequests &requests, const NodeLines &lines) {
    for (Kept &kept : kept_) {
        if (kept.cls == cls) {
            return &kept.profile;
        }
    }
    const std::vector<int32_t> &positions = requests.cls(cls).positions();
    if (kept_.size() == MOST || positions.empty()) {
        return nullptr;
    }
    int64_t begin = 0;
    std::vector<std::pair<int64_t, int64_t>> changes;
    for (const int32_t position : positions) {
        const auto p = static_cast<size_t>(position);
        begin = std::max(begin, lines.begin(p, 0));
        free_times(lines, p, lines.begin(p, 0), NEVER, [&](int64_t from, int64_t until) {
            changes.emplace_back(from, 1);
            changes.emplace_back(until, -1);
        });
    }
    std::sort(changes.begin(), changes.end());
    std::vector<std::pair<int64_t, int64_t>> steps{{begin, 0}};
    int64_t free = 0;
    for (const auto &[time, change] : changes) {
        if (time == NEVER) {
            break;
        }
        free += change;
        if (time > steps.back().first) {
            steps.emplace_back(time, free);
        }
        steps.back().second = free;
    }
    kept_.push_back({cls, {}, 0});
    kept_.back().profile.reset(steps);
    return &kept_.back().profile;
}

void FreeNodes::change(size_t position, int64_t start, int64_t end, int64_t sign,
                       const NodeLines &lines, const BookRequests &requests) {
    if (kept_.empty()) {
        return;
    }
    start = std::max(start, lines.begin(position, 0));
    free_times(lines, position, start, end, [&](int64_t from, int64_t until) {
        for (Kept &kept : kept_) {
            if (!requests.cls(kept.cls).has(position)) {
                continue;
            }
            if (from == start && until == end) { // as nearly always
                ++kept.nodes;
            } else {
                kept.profile.book(from, until, sign);
            }
        }
    });
}

void FreeNodes::apply(int64_t start, int64_t end, int64_t sign) {
    for (Kept &kept : kept_) {
        if (kept.nodes > 0) {
            kept.profile.book(std::max(start, kept.profile.begin()), end, sign * kept.nodes);
            kept.nodes = 0;
        }
    }
}

void FreeNodes::trim(int64_t now) {
    for (Kept &kept : kept_) {
        kept.profile.trim(now);
    }
}

void FreeNodes::drop(int32_t cls) {
    kept_.erase(std::remove_if(kept_.begin(), kept_.end(),
                               [&](const Kept &kept) { return kept.cls == cls; }),
                kept_.end());
}

} // namespace bridge
