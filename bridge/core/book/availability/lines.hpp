// SPDX-License-Identifier: Apache-2.0
// The free amounts on each node of a book, from its present on.
//
// A node's line is `Segments`, and bookings can be revoked. The last column is *occupancy*: a node
// has WHOLE of it, a shared chunk takes 1, an exclusive holder takes WHOLE. Amounts may be negative
// where a node lost what was booked on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "book/availability/range_summary.hpp"
#include "common/segments.hpp"
#include "common/times.hpp"

namespace bridge {

// Amounts needed at each second: `amounts[i]` of column `columns[i]`.
struct LineNeed {
    const int64_t *amounts;
    const uint32_t *columns;
    size_t n;

    bool held_by(const int64_t *free) const {
        for (size_t i = 0; i < n; ++i) {
            if (free[columns[i]] < amounts[i]) {
                return false;
            }
        }
        return true;
    }
    // How many times the need fits, at most `maximum`.
    int64_t times_in(const int64_t *free, int64_t maximum) const;
};

// A time in which the need fits at no second: [from, until).
struct Lack {
    int64_t from = 0;
    int64_t until = 0;

    // The earliest second >= `time` outside.
    int64_t after(int64_t time) const { return from <= time && time < until ? until : time; }

    // Merges in another such time; if they do not touch, the longer one is kept.
    void learn(int64_t since, int64_t till) {
        if (since <= until && from <= till) {
            from = from < since ? from : since;
            until = until > till ? until : till;
        } else if (till - since > until - from) {
            from = since;
            until = till;
        }
    }
    // More is free within [since, till).
    void rise(int64_t since, int64_t till) {
        if (since < until && from < till) {
            until = since > from ? since : from;
        }
    }
};

class NodeLines {
  public:
    NodeLines(size_t n_nodes, size_t columns) : columns_(columns), lines_(n_nodes) {}

    size_t columns() const { return columns_; }

    void open(size_t node, int64_t now, const int64_t *amounts);

    // Adds `sign` times the amounts (one per column) within [start, end). The part before the
    // line's first second has been discarded.
    void add(size_t node, int64_t start, int64_t end, const int64_t *amounts, int64_t sign);

    // The earliest start >= `from` at which the need is free for `length`. A start after `latest`
    // may be too early (NEVER is exact).
    int64_t next_fit(size_t node, LineNeed need, int64_t from, int64_t length,
                     int64_t latest) const {
        return next_fit(node, need, from, length, latest, need, nullptr);
    }
    // The same; the first times in which not even `rough` (at most the need) fits are stored in
    // `lack`, if given.
    int64_t next_fit(size_t node, LineNeed need, int64_t from, int64_t length, int64_t latest,
                     LineNeed rough, Lack *lack) const;

    // The latest such start in [earliest, from], or -1.
    int64_t last_fit(size_t node, LineNeed need, int64_t from, int64_t length,
                     int64_t earliest) const;

    // The least free amount in [start, end), per column.
    void minimum(size_t node, int64_t start, int64_t end, int64_t *amounts) const {
        lines_[node].minimum(columns_, start, end, amounts);
    }

    // How many times the need is free during [start, start + length), at most `maximum`. The answer
    // is the same for starts before `same_until`, and no greater for starts before `rise`.
    struct Room {
        int64_t times;
        int64_t same_until;
        int64_t rise;
    };
    Room room(size_t node, LineNeed need, int64_t start, int64_t length, int64_t maximum) const;

    // The first change after `time`, or NEVER; the last one before it, or -1.
    int64_t change_after(size_t node, int64_t time) const;
    int64_t change_before(size_t node, int64_t time) const;

    // Since when the need is held up to `time`, which is after the first second; `time`: not held.
    int64_t held_since(size_t node, LineNeed need, int64_t time) const;

    // Until when it is held from `time` on; NEVER: without end.
    int64_t held_until(size_t node, LineNeed need, int64_t time) const;

    // Discards everything before `now`.
    void trim(size_t node, int64_t now);

    // The segment that contains `time`.
    size_t segment_at(size_t node, int64_t time) const { return lines_[node].at(time); }
    size_t segments(size_t node) const { return lines_[node].begin.size(); }
    int64_t begin(size_t node, size_t segment) const { return lines_[node].begin[segment]; }
    const int64_t *free(size_t node, size_t segment) const {
        return lines_[node].free.data() + segment * columns_;
    }
    const int64_t *free_at(size_t node, int64_t time) const {
        return free(node, lines_[node].at(time));
    }
    // Prefetches the lines of these nodes around a time, many at once: searches would otherwise
    // wait for memory one after the other.
    void warm(const std::vector<int32_t> &nodes, int64_t time) const;

    size_t bytes() const;

    // A summary of the lines by spans of time; kept up to date from `summarize` on.
    const RangeSummary &range_summary() const { return range_summary_; }
    void summarize(int64_t now);
    void drop_spans() { range_summary_.drop(); }

  private:
    size_t columns_;
    std::vector<Segments> lines_;
    RangeSummary range_summary_;
};

} // namespace bridge
