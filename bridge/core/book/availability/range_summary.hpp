// SPDX-License-Identifier: Apache-2.0
// Rough bounds on the free amounts of a book's nodes in each range of time.
//
// One byte per node, column, range and bound, contiguous for all nodes: a single pass over the
// bytes excludes the nodes on which nothing can start within a range, without reading their lines.
// An amount is rounded up to a *grade*, which preserves order. A node whose grade is too low lacks
// the amount; one whose grade is high enough may have it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/times.hpp"

namespace bridge {

struct LineNeed;

class RangeSummary {
  public:
    // Whether a summary is kept; everything else requires that.
    bool kept() const { return !most_.empty(); }
    void drop();

    // Starts again with `now` in the first range, for lines that change until `horizon`.
    // `greatest`: the largest amount of each column anywhere; the last column is occupancy.
    void begin(size_t n_nodes, int64_t now, int64_t horizon, const std::vector<int64_t> &greatest);

    // Enters a node's line within [from, until): `n` segments, (n, columns) amounts.
    void take_in(size_t node, const int64_t *begin, const int64_t *free, size_t n, int64_t from,
                 int64_t until);

    int64_t end() const { return end_; }        // of the last range
    bool outgrown() const { return outgrown_; } // something changes after it
    bool is_late(int64_t now) const { return now - base_ > (end_ - base_) / 2; }
    int64_t range_end(int64_t time) const { // the end of the range that contains it
        return base_ + static_cast<int64_t>((range_at(time) + 1) << shift_);
    }

    // Marks (1, else 0) the nodes on which a job with this need and length may start within [from,
    // until), which lies in one range; stops once `enough` are left. Returns their number.
    size_t mark(LineNeed need, int64_t length, int64_t from, int64_t until, size_t enough,
                std::vector<uint8_t> &marks) const;

  private:
    size_t ranges_ = 0;
    size_t n_nodes_ = 0;
    size_t columns_ = 0;
    int64_t base_ = 0;
    int64_t end_ = 0;
    unsigned shift_ = 0;
    bool outgrown_ = false;
    std::vector<unsigned> shifts_; // by column: the grade is the amount shifted right by this
    std::vector<uint8_t> most_;    // (range, column, node)
    std::vector<uint8_t> least_;
    std::vector<uint8_t> grades_; // scratch: of a segment, upper and lower bound

    size_t range_at(int64_t time) const {
        return time <= base_ ? 0 : static_cast<size_t>(time - base_) >> shift_;
    }
    uint8_t grade(size_t column, int64_t amount) const;
    size_t narrow(LineNeed need, const std::vector<uint8_t> &bound, size_t range,
                  std::vector<uint8_t> &marks) const;
};

} // namespace bridge
