// SPDX-License-Identifier: Apache-2.0
#include "counts/dominance.hpp"

#include <algorithm>

namespace bridge {
namespace {

// Marks per axis: more make the bound tighter, but each query costs log^2 cache misses. 100,000
// jobs with distinct sizes and lengths take equally long with 256 to 512, and longer with fewer or
// more.
constexpr size_t MAX_MARKS = 256;
constexpr int64_t DIRECT_UP_TO = 1 << 14;
constexpr size_t MAX_TOUCHED = 1 << 14;

std::vector<int64_t> copy_of(const int64_t *values, size_t n) {
    return n == 0 ? std::vector<int64_t>{} : std::vector<int64_t>(values, values + n);
}

// The distinct values, ascending. Small ones (widths, time limits in seconds) are marked in a
// bitset, because few values usually occur many times each.
std::vector<int64_t> distinct_of(const std::vector<int64_t> &values) {
    constexpr int64_t MARKED_UP_TO = 1 << 20;
    std::vector<int64_t> distinct;
    const auto [minimum, greatest] = std::minmax_element(values.begin(), values.end());
    if (values.empty() || *minimum < 0 || *greatest >= MARKED_UP_TO) {
        distinct = values;
        std::sort(distinct.begin(), distinct.end());
        distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
        return distinct;
    }
    std::vector<uint64_t> marks(static_cast<size_t>(*greatest) / 64 + 1, 0);
    for (const int64_t value : values) {
        marks[static_cast<size_t>(value) / 64] |= uint64_t{1} << (value % 64);
    }
    for (size_t word = 0; word < marks.size(); ++word) {
        for (uint64_t bits = marks[word]; bits != 0; bits &= bits - 1) {
            distinct.push_back(static_cast<int64_t>(word * 64) + __builtin_ctzll(bits));
        }
    }
    return distinct;
}

} // namespace

Dominance::Axis::Axis(std::vector<int64_t> values) {
    std::vector<int64_t> distinct = distinct_of(values);
    if (distinct.size() <= MAX_MARKS) {
        marks_ = std::move(distinct);
    } else {
        std::sort(values.begin(), values.end());
        for (size_t i = 1; i <= MAX_MARKS; ++i) { // by frequency, including the greatest value
            const int64_t mark = values[i * values.size() / MAX_MARKS - 1];
            if (marks_.empty() || mark != marks_.back()) {
                marks_.push_back(mark);
            }
        }
    }
    if (!marks_.empty() && marks_.back() < DIRECT_UP_TO) {
        direct_.resize(static_cast<size_t>(marks_.back()) + 1);
        size_t rank = 0;
        for (size_t value = 0; value < direct_.size(); ++value) {
            while (rank < marks_.size() && marks_[rank] <= static_cast<int64_t>(value)) {
                ++rank;
            }
            direct_[value] = static_cast<uint16_t>(rank);
        }
    }
}

size_t Dominance::Axis::not_above(int64_t value) const {
    if (static_cast<size_t>(value) < direct_.size()) {
        return direct_[static_cast<size_t>(value)];
    }
    return static_cast<size_t>(std::upper_bound(marks_.begin(), marks_.end(), value) -
                               marks_.begin());
}

size_t Dominance::Axis::below(int64_t value) const {
    return value > 0 ? not_above(value - 1) : 0;
}

Dominance::Dominance(const int64_t *counts, const int64_t *lengths, size_t n)
    : counts_(copy_of(counts, n)), lengths_(copy_of(lengths, n)), stride_(lengths_.size() + 1),
      best_((counts_.size() + 1) * stride_, 0) {}

void Dominance::clear() {
    if (touched_.size() > MAX_TOUCHED) {
        std::fill(best_.begin(), best_.end(), 0);
    } else {
        for (const uint32_t cell : touched_) {
            best_[cell] = 0;
        }
    }
    touched_.clear();
}

void Dominance::record(int64_t count, int64_t length, int64_t start) {
    const size_t first_column = lengths_.below(length) + 1;
    for (size_t row = counts_.below(count) + 1; row <= counts_.size(); row += row & (~row + 1)) {
        for (size_t column = first_column; column <= lengths_.size();
             column += column & (~column + 1)) {
            const size_t cell = row * stride_ + column;
            if (best_[cell] < start) {
                if (best_[cell] == 0 && touched_.size() <= MAX_TOUCHED) {
                    touched_.push_back(static_cast<uint32_t>(cell));
                }
                best_[cell] = start;
            }
        }
    }
}

int64_t Dominance::bound(int64_t count, int64_t length) const {
    const size_t last_column = lengths_.not_above(length);
    int64_t best = 0;
    for (size_t row = counts_.not_above(count); row > 0; row &= row - 1) {
        for (size_t column = last_column; column > 0; column &= column - 1) {
            best = std::max(best, best_[row * stride_ + column]);
        }
    }
    return best;
}

} // namespace bridge
