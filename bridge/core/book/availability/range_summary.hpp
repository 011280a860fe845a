// SPDX-License-Identifier: Apache-2.0
// Rough bounds on the free amounts of a book's nodes in each range of time.
//
// One byte per node, column, range and bound, contiguous for a block of nodes: a single pass over
// the bytes excludes the nodes on which nothing can start within a range, without reading their
// lines. The bytes of a node in successive ranges are close together: a booking changes many of
// them.
//
// An amount is rounded up to a *grade*, which preserves order. A node whose grade is too low lacks
// the amount; one whose grade is high enough may have it.
//
// Where ranges are longer than short jobs, the amount that is free at some second of a range says
// little about such jobs. There the greatest amount is kept for several *lengths*: the amount that
// is free throughout that length from some second of the range on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/times.hpp"

namespace bridge {

struct LineNeed;

class RangeSummary {
  public:
    static constexpr size_t BLOCK = 64; // nodes; a line of a cache

    // Whether a summary is kept; everything else requires that.
    bool kept() const { return !maximum_.empty(); }
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

    // The nodes that are marked, ascending.
    static void list(const std::vector<uint8_t> &marks, std::vector<int32_t> &nodes);

  private:
    size_t ranges_ = 0;
    size_t n_nodes_ = 0;
    size_t blocks_ = 0; // of nodes
    size_t apart_ = 0;  // bytes from a block to the next one
    size_t columns_ = 0;
    int64_t base_ = 0;
    int64_t end_ = 0;
    unsigned shift_ = 0;
    size_t lengths_ = 1;
    bool outgrown_ = false;
    std::vector<unsigned> shifts_; // by column: the grade is the amount shifted right by this
    std::vector<uint8_t> maximum_; // (length, block, range, column, node of the block)
    std::vector<uint8_t> minimum_; // (block, range, column, node of the block)
    std::vector<uint8_t> lowest_;  // by column: no node has less

    // Scratch: grades of segments; of a range the least, and the most by length.
    std::vector<uint8_t> grades_;
    std::vector<uint8_t> min_here_;
    std::vector<uint8_t> max_here_;

    int64_t width() const { return int64_t{1} << shift_; } // of a range
    size_t range_at(int64_t time) const {
        return time <= base_ ? 0 : static_cast<size_t>(time - base_) >> shift_;
    }
    int64_t begin_of(size_t range) const { return base_ + static_cast<int64_t>(range << shift_); }

    // The lengths: that of a range, its half, quarter and so on; the last one is a second.
    int64_t length(size_t k) const { return k + 1 == lengths_ ? 1 : width() >> k; }
    // The bounds for the longest one that is not longer; for a second if there is none.
    const uint8_t *max_within(int64_t length) const {
        size_t k = 0;
        while (k + 1 < lengths_ && this->length(k) > length) {
            ++k;
        }
        return maximum_.data() + k * blocks_ * apart_;
    }

    uint8_t grade(size_t column, int64_t amount) const;
    void put(size_t node, size_t range);
    void see(int64_t time, const int64_t *begin, const int64_t *free, size_t n);
    void begin_at(int64_t time, const int64_t *begin, size_t n, uint8_t *grades);
    size_t narrow(LineNeed need, const uint8_t *bound, size_t range,
                  std::vector<uint8_t> &marks) const;
};

} // namespace bridge
