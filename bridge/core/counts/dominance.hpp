// SPDX-License-Identifier: Apache-2.0
// A lower bound for starts within one plan.
//
// While jobs are booked, free amounts only fall. So a job can start no earlier than any job placed
// before it that needed no more, took no longer, and was delayed by nothing else. The latest such
// start is a prefix maximum over (count, length): a two-dimensional Fenwick tree. Its axes are the
// values that occur, or an even selection if there are too many: recorded values are rounded up and
// queries down, so the bound remains a bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bridge {

class Dominance {
  public:
    // The values that will be recorded and queried.
    Dominance(const int64_t *counts, const int64_t *lengths, size_t n);

    // Drops all records. O(records).
    void clear();

    // A job of `count` and `length` was placed at `start`, which must be positive.
    void record(int64_t count, int64_t length, int64_t start);

    // No job of `count` and `length` can start before this; 0 if nothing is known.
    int64_t bound(int64_t count, int64_t length) const;

  private:
    class Axis {
      public:
        explicit Axis(std::vector<int64_t> values);
        size_t size() const { return marks_.size(); }
        // The number of marks below `value`, or not above it.
        size_t below(int64_t value) const;
        size_t not_above(int64_t value) const;

      private:
        std::vector<int64_t> marks_;
        std::vector<uint16_t> direct_; // not_above(v) for small v
    };

    Axis counts_;
    Axis lengths_;
    size_t stride_;
    std::vector<int64_t> best_;     // (counts_.size() + 1) x stride_, 1-based
    std::vector<uint32_t> touched_; // cells to clear; full: all
};

} // namespace bridge
