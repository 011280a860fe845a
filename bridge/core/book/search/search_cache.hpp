// SPDX-License-Identifier: Apache-2.0
// Results of earlier searches of a book that save later ones.
//
// While jobs are booked, free amounts only fall: what did not fit before some time still does not.
// If something is given back within [from, ...) (a *rise*), a start can become possible only if the
// job extends into it: starts up to `from - length` stay impossible. Results therefore survive
// revokes, weakened by the rises since.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "book/availability/lines.hpp"
#include "common/times.hpp"

namespace bridge {

// Times: [first, second) each.
using Spans = std::vector<std::pair<int64_t, int64_t>>;

class Rises {
  public:
    struct Rise {
        int32_t position;
        int64_t from;
        int64_t until;
        size_t before; // value of since() before this rise: the node's previous rise
    };

    size_t count() const { return log_.size(); }
    const Rise &operator[](size_t i) const { return log_[i]; }

    // More is free on a node within [from, until).
    void push(int32_t position, int64_t from, int64_t until) {
        const auto p = static_cast<size_t>(position);
        if (p >= last_.size()) {
            last_.resize(p + 1, 0);
        }
        while (!first_.empty() && first_.back().second >= from) {
            first_.pop_back();
        }
        first_.emplace_back(log_.size(), from);
        while (!last_until_.empty() && last_until_.back().second <= until) {
            last_until_.pop_back();
        }
        last_until_.emplace_back(log_.size(), until);
        log_.push_back({position, from, until, last_[p]});
        last_[p] = log_.size();
    }
    // The earliest begin and the latest end of all rises but the first `known`; there must be one.
    std::pair<int64_t, int64_t> reach(size_t known) const {
        const auto before = [](const auto &entry, size_t count) { return entry.first < count; };
        return {std::lower_bound(first_.begin(), first_.end(), known, before)->second,
                std::lower_bound(last_until_.begin(), last_until_.end(), known, before)->second};
    }
    // The total number of rises after the last one of a node; 0: it had none.
    size_t since(int32_t position) const {
        const auto p = static_cast<size_t>(position);
        return p < last_.size() ? last_[p] : 0;
    }

    // Whether a node has a rise that overlaps [from, until), not counting the first `known` of all.
    bool any(int32_t position, size_t known, int64_t from, int64_t until) const {
        for (size_t at = since(position); at > known; at = log_[at - 1].before) {
            if (log_[at - 1].from < until && from < log_[at - 1].until) {
                return true;
            }
        }
        return false;
    }

    // Drops all rises. Results of an earlier epoch are invalid.
    void clear() {
        log_.clear();
        last_.clear();
        first_.clear();
        last_until_.clear();
        ++epoch_;
    }
    uint64_t epoch() const { return epoch_; }

  private:
    std::vector<Rise> log_;
    std::vector<size_t> last_; // by position
    // Rises that begin before every later one; and those that end after every later one.
    std::vector<std::pair<size_t, int64_t>> first_;
    std::vector<std::pair<size_t, int64_t>> last_until_;
    uint64_t epoch_ = 0;
};

// The first start that a rise at `from` may make possible for a job of this length.
inline int64_t first_reaching(int64_t from, int64_t length) {
    return from == NEVER ? NEVER : from - length + 1;
}

// "This many chunks, for this long, cannot start before": for jobs that differ only in these
// amounts. A job that needs at least as much of everything has the same bound.
class SearchCache {
  public:
    explicit SearchCache(size_t columns) : columns_(columns) {}

    // A bound: before this time only starts within `open` may be possible.
    struct Answer {
        int64_t bound;
        Spans open; // disjoint, ascending

        // The earliest start >= `time` that may be possible.
        int64_t next_open(int64_t time) const;
        // Starts up to `latest` are possible within these spans only (ascending).
        void only_within(const Spans &spans, int64_t latest);

      private:
        Spans within_; // scratch
    };
    // `lifted_from`, `lifted_until`: a rise that is not in the log. Starts after `latest` do not
    // matter.
    void look_up(const int64_t *want, int64_t count, int64_t length, const Rises &rises,
                 int64_t lifted_from, int64_t lifted_until, int64_t now, int64_t latest,
                 Answer &answer);

    void learn(const int64_t *want, int64_t count, int64_t length, int64_t bound,
               const Rises &rises);

    void clear() {
        entries_.clear();
        amounts_.clear();
        since_.clear();
        free_rows_.clear();
        oldest_ = 0;
    }

  private:
    static constexpr size_t KEPT = 2048;
    struct Entry {
        int64_t bound;
        int64_t length;
        int64_t count;
        uint64_t used;
        uint32_t row; // of amounts_ and since_
    };
    // What was given back since an entry was found. Stored separately, as entries are moved often.
    struct Since {
        size_t rises; // when it was found
        size_t taken; // how many of them are in `open`
        Spans open;   // as Answer::open, for all times
    };
    size_t columns_;
    size_t oldest_ = 0; // no entry in use has applied fewer rises
    uint64_t uses_ = 0;
    std::vector<Entry> entries_;   // latest bound first
    std::vector<int64_t> amounts_; // rows of (columns,)
    std::vector<Since> since_;     // by row
    std::vector<uint32_t> free_rows_;

    void drop_old(const Rises &rises);
};

// For similar shapes and any length, by position: when a node cannot hold even one chunk of any of
// them. Most nodes of a full system are skipped by this alone.
struct Lacks {
    std::vector<Lack> at; // empty: not kept yet
    size_t rises = 0;     // how many are applied
    bool sought = false;

    void take_in(const Rises &all) {
        for (; rises < all.count(); ++rises) {
            at[static_cast<size_t>(all[rises].position)].rise(all[rises].from, all[rises].until);
        }
    }
};

// When a start may be possible: a few windows [from, until), disjoint and ascending. What does not
// fit into so few windows is approximated by a wider one.
class Windows {
  public:
    explicit Windows(int64_t from = NEVER) {
        from_.fill(NEVER);
        until_.fill(NEVER);
        from_[0] = from;
    }

    // The earliest such time >= `time`, or NEVER.
    int64_t next(int64_t time) const {
        for (size_t i = 0; i < MAX; ++i) {
            if (time < until_[i]) {
                return time > from_[i] ? time : from_[i];
            }
        }
        return NEVER;
    }
    // The end of the window that contains it.
    int64_t end(int64_t time) const {
        for (size_t i = 0; i < MAX; ++i) {
            if (time < until_[i]) {
                return until_[i];
            }
        }
        return NEVER;
    }
    // No start is possible within [since, till).
    void close(int64_t since, int64_t till);
    // A start may be possible there.
    void open(int64_t since, int64_t till);

  private:
    static constexpr size_t MAX = 4;
    std::array<int64_t, MAX> from_; // NEVER: unused, as are all after it
    std::array<int64_t, MAX> until_;
};

// For one shape and length, by position: when one chunk may start.
struct NodeBounds {
    std::vector<Windows> at; // empty: not kept yet
    size_t rises = 0;        // how many are applied
};

} // namespace bridge
