// SPDX-License-Identifier: Apache-2.0
// What earlier searches of a book save later ones.
//
// While jobs are booked, what is free only falls: what did not fit before some time still does not.
// Where something is given back within [from, ...) (a *rise*), a start can become possible only if
// the job then reaches into it: starts up to `from - length` stay impossible. So answers outlive
// revokes, weakened by the rises since.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "book/lines.hpp"
#include "common/times.hpp"

namespace bridge {

class Rises {
  public:
    struct Rise {
        int32_t position;
        int64_t from;
        int64_t until;
    };

    size_t count() const { return log_.size(); }
    const Rise &operator[](size_t i) const { return log_[i]; }

    // More is free on a node within [from, until).
    void push(int32_t position, int64_t from, int64_t until) {
        log_.push_back({position, from, until});
        const auto p = static_cast<size_t>(position);
        if (p >= last_.size()) {
            last_.resize(p + 1, 0);
        }
        last_[p] = log_.size();
    }
    // How many there were when the last one of a node had come; 0: it had none.
    size_t since(int32_t position) const {
        const auto p = static_cast<size_t>(position);
        return p < last_.size() ? last_[p] : 0;
    }

    // Forgets all; who holds answers of an earlier epoch must drop them.
    void clear() {
        log_.clear();
        last_.clear();
        ++epoch_;
    }
    uint64_t epoch() const { return epoch_; }

  private:
    std::vector<Rise> log_;
    std::vector<size_t> last_; // by position
    uint64_t epoch_ = 0;
};

// What starts a rise of something at `from` may allow, for a job of this length.
inline int64_t first_reaching(int64_t from, int64_t length) {
    return from == NEVER ? NEVER : from - length + 1;
}

// "So many chunks of this want, for so long, cannot start before": about jobs that are alike but in
// these amounts. A job that wants as much or more of everything is bound by it too.
class SearchCache {
  public:
    explicit SearchCache(size_t columns) : columns_(columns) {}

    // What is known, as a time before which only starts within `open` may be possible.
    struct Answer {
        int64_t bound;
        std::vector<std::pair<int64_t, int64_t>> open; // [first, second), apart, ascending

        // The earliest start >= `time` that may be possible.
        int64_t next_open(int64_t time) const;
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
        free_rows_.clear();
        oldest_ = 0;
    }

  private:
    static constexpr size_t KEPT = 2048;
    struct Entry {
        int64_t bound;
        size_t rises; // when it was learnt
        size_t taken; // how many of them are in `open`
        int64_t length;
        int64_t count;
        size_t row; // of amounts_
        uint64_t used;
        std::vector<std::pair<int64_t, int64_t>> open; // as Answer::open, for all times
    };
    size_t columns_;
    size_t oldest_ = 0; // no entry that is used has taken in fewer rises
    uint64_t uses_ = 0;
    std::vector<Entry> entries_;   // latest bound first
    std::vector<int64_t> amounts_; // rows of (columns,)
    std::vector<size_t> free_rows_;

    void drop_old(const Rises &rises);
};

// For shapes that are near and any length, by position: when a node does not hold even one chunk of
// any of them. Most nodes of a full system are passed over by this alone.
struct Lacks {
    std::vector<Lack> at; // empty: not kept yet
    size_t rises = 0;     // how many are taken in
    bool sought = false;

    void take_in(const Rises &all) {
        for (; rises < all.count(); ++rises) {
            at[static_cast<size_t>(all[rises].position)].rise(all[rises].from, all[rises].until);
        }
    }
};

// When a start may be possible: a few windows [from, until), apart and ascending. What does not fit
// into so few is told less exactly: a window may be too wide.
class Windows {
  public:
    explicit Windows(int64_t from = NEVER) {
        from_.fill(NEVER);
        until_.fill(NEVER);
        from_[0] = from;
    }

    // The earliest such time >= `time`, or NEVER.
    int64_t next(int64_t time) const {
        for (size_t i = 0; i < MOST; ++i) {
            if (time < until_[i]) {
                return time > from_[i] ? time : from_[i];
            }
        }
        return NEVER;
    }
    // Until when it goes on.
    int64_t end(int64_t time) const {
        for (size_t i = 0; i < MOST; ++i) {
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
    static constexpr size_t MOST = 4;
    std::array<int64_t, MOST> from_; // NEVER: unused, as all that follow
    std::array<int64_t, MOST> until_;
};

// For one shape and length, by position: when one chunk may start.
struct NodeBounds {
    std::vector<Windows> at; // empty: not kept yet
    size_t rises = 0;        // how many are taken in
};

} // namespace bridge
