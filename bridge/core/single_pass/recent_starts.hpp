// SPDX-License-Identifier: Apache-2.0
// A lower bound for starts among jobs with different demands.
//
// As in dominance.hpp: while jobs are booked, free amounts only fall, so a job starts no earlier
// than any job placed before that needed no more of anything on a node, no more nodes, and took no
// longer. There are too many axes for a tree, so the last few hundred starts are kept and scanned:
// that takes 0.1 to 0.2 microseconds, where a search takes tens.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/times.hpp"

namespace bridge {

class RecentStarts {
  public:
    // `axes`: the number of amounts that describe a job.
    explicit RecentStarts(size_t axes) : axes_(axes), amounts_(axes * KEPT, INT64_MAX) {}

    // A job with these amounts was placed at `start` and delayed by nothing else.
    void record(const int64_t *amounts, int64_t start) {
        for (size_t axis = 0; axis < axes_; ++axis) {
            amounts_[axis * KEPT + next_] = amounts[axis];
        }
        starts_[next_] = start;
        next_ = (next_ + 1) % KEPT;
    }

    // No job with these amounts can start before this; 0 if nothing is known.
    int64_t bound(const int64_t *amounts) const;

  private:
    static constexpr size_t KEPT = 256;
    size_t axes_;
    size_t next_ = 0;
    std::vector<int64_t> amounts_; // axes x KEPT
    int64_t starts_[KEPT] = {};
};

} // namespace bridge
