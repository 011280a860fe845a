// SPDX-License-Identifier: Apache-2.0
#include "book/search/free_nodes.hpp"

#include <algorithm>

#include "book/search/search_cache.hpp"

namespace bridge {
namespace {

// Rises and results kept; beyond, all are dropped.
constexpr size_t MAX_RISES = 8192;
constexpr size_t MAX_RESULTS = 8192;
// Rises that are examined for one result; by more, it is weakened.
constexpr int MAX_EXAMINED = 16;

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

void FreeStarts::rise(const CountProfile &free, int64_t from, int64_t until) {
    from = std::max(from, free.begin());
    if (none_.empty() || from >= until) {
        return;
    }
    if (rises_.size() == MAX_RISES) {
        rises_.clear();
        none_.clear();
        return;
    }
    rises_.push_back({from, until, free.greatest(from, until)});
}

// A start that has become possible lies on a rise with enough free nodes.
void FreeStarts::take_in(None &none, const CountProfile &free, const Key &key) const {
    int examined = 0;
    for (; none.rises < rises_.size(); ++none.rises) {
        const Rise &rise = rises_[none.rises];
        const int64_t from =
            std::max({first_reaching(rise.from, key.length), none.since, free.begin()});
        const int64_t until = std::min(rise.until, none.until);
        if (rise.greatest < key.nodes || from >= until) {
            continue;
        }
        const int64_t start = ++examined > MAX_EXAMINED
                                  ? from
                                  : free.earliest(from, key.nodes, key.length, until - 1).start;
        none.until = std::min(none.until, start);
    }
}

bool FreeStarts::any(const CountProfile &free, int64_t nodes, int64_t length, int64_t from,
                     int64_t until, int64_t end) {
    const int64_t cut = std::max(first_reaching(end, length), from); // from here on, `end` matters
    const int64_t whole = std::min(until, cut);
    if (from < whole) {
        if (none_.size() == MAX_RESULTS) {
            rises_.clear();
            none_.clear();
        }
        const Key key{nodes, length};
        const auto [at, is_new] = none_.try_emplace(key, None{from, from, rises_.size()});
        None &none = at->second;
        take_in(none, free, key);
        // Nothing is known from `none.until` to a later `from`: it may have just been moved down.
        if (from < none.since || from > none.until) {
            none = {from, from, rises_.size()};
        }
        if (none.until < whole) {
            none.until = std::min(
                free.earliest(std::max(from, none.until), nodes, length, whole - 1).start, whole);
            if (none.until < whole) {
                return true;
            }
        }
    }
    return cut < until && free.earliest(cut, nodes, length, until - 1, end).start != NEVER;
}

FreeNodes::Kept *FreeNodes::of(int32_t cls, const BookRequests &requests, const NodeLines &lines) {
    for (Kept &kept : kept_) {
        if (kept.cls == cls) {
            return &kept;
        }
    }
    const std::vector<int32_t> &positions = requests.cls(cls).positions();
    if (kept_.size() == MAX || positions.empty()) {
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
    kept_.push_back({cls, {}, {}, 0});
    kept_.back().profile.reset(steps);
    return &kept_.back();
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

void FreeNodes::rise(int64_t from, int64_t until) {
    for (Kept &kept : kept_) {
        kept.starts.rise(kept.profile, from, until);
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
