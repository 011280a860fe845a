// SPDX-License-Identifier: Apache-2.0
// Amounts over time: the data structure of the planners' timelines (Timelines) and the book's lines
// (NodeLines).
//
// A sorted sequence of segments with one amount per column, from a first second to the end of time.
// Neighbouring segments always differ, so equal bookings give equal segments whatever their
// history. The owner knows the number of columns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/times.hpp"

namespace bridge {

constexpr int64_t WHOLE = int64_t{1} << 30; // occupancy of an idle node

struct Segments {
    std::vector<int64_t> begin;
    std::vector<int64_t> free; // begin.size() x columns

    // The segment that contains `time`; the first one for earlier times.
    size_t at(int64_t time) const {
        const int64_t *begins = begin.data();
        size_t base = 0;
        for (size_t n = begin.size(); n > 1;) { // branch-free: the outcome is random
            const size_t half = n / 2;
            base += begins[base + half] <= time ? half : 0;
            n -= half;
        }
        return base;
    }

    // Adds `sign` times the amounts (one per column) within [start, end), which is not empty and
    // does not begin before the first segment.
    void add(size_t columns, int64_t start, int64_t end, const int64_t *amounts, int64_t sign);

    // The least free amount in [start, end), per column.
    void minimum(size_t columns, int64_t start, int64_t end, int64_t *amounts) const;

  private:
    size_t cut(size_t columns, int64_t time);
    void merge(size_t columns, size_t segment);
};

inline void Segments::add(size_t columns, int64_t start, int64_t end, const int64_t *amounts,
                          int64_t sign) {
    const size_t first = cut(columns, start);
    const size_t last = end == NEVER ? begin.size() : cut(columns, end);
    for (size_t i = first; i < last; ++i) {
        for (size_t c = 0; c < columns; ++c) {
            free[i * columns + c] += sign * amounts[c];
        }
    }
    merge(columns, last);
    merge(columns, first);
}

inline void Segments::minimum(size_t columns, int64_t start, int64_t end, int64_t *amounts) const {
    size_t i = at(start);
    std::copy_n(free.data() + i * columns, columns, amounts);
    for (++i; i < begin.size() && begin[i] < end; ++i) {
        const int64_t *here = free.data() + i * columns;
        for (size_t c = 0; c < columns; ++c) {
            amounts[c] = std::min(amounts[c], here[c]);
        }
    }
}

} // namespace bridge
