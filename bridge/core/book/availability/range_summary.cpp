// SPDX-License-Identifier: Apache-2.0
#include "book/availability/range_summary.hpp"

#include <algorithm>

#include "book/availability/lines.hpp"

namespace bridge {
namespace {

constexpr int64_t GRADES = 255;
constexpr int64_t FARTHEST = int64_t{1} << 40; // s; later changes are not told apart
constexpr size_t MOST_SPANS = 1024;
constexpr size_t MOST_BYTES = size_t{24} << 20;

BRIDGE_WIDE_VECTORS void keep_from(const uint8_t *grades, uint8_t wanted, uint8_t *marks,
                                   size_t n) {
    for (size_t i = 0; i < n; ++i) {
        marks[i] = grades[i] >= wanted ? marks[i] : 0;
    }
}

BRIDGE_WIDE_VECTORS size_t count_of(const uint8_t *marks, size_t n) {
    uint32_t sum = 0;
    for (size_t i = 0; i < n; ++i) {
        sum += marks[i];
    }
    return sum;
}

} // namespace

void RangeSummary::drop() {
    most_ = {};
    least_ = {};
}

void RangeSummary::begin(size_t n_nodes, int64_t now, int64_t horizon,
                         const std::vector<int64_t> &greatest) {
    n_nodes_ = n_nodes;
    columns_ = greatest.size();
    base_ = now;
    for (ranges_ = MOST_SPANS; ranges_ > 64 && ranges_ * columns_ * n_nodes > MOST_BYTES / 2;) {
        ranges_ /= 2;
    }
    const int64_t far = std::min(horizon - now, FARTHEST);
    const int64_t reach = far + far / 4 + 1;
    for (shift_ = 4; (static_cast<int64_t>(ranges_) << shift_) < reach; ++shift_) {
    }
    end_ = end_of(base_, static_cast<int64_t>(ranges_) << shift_);
    outgrown_ = false;
    shifts_.assign(columns_, 0);
    for (size_t c = 0; c < columns_; ++c) {
        while ((greatest[c] >> shifts_[c]) >= GRADES) {
            ++shifts_[c];
        }
    }
    most_.assign(ranges_ * columns_ * n_nodes, 0);
    least_.assign(ranges_ * columns_ * n_nodes, 0);
    grades_.resize(3 * columns_);
}

uint8_t RangeSummary::grade(size_t column, int64_t amount) const {
    if (amount <= 0) {
        return 0;
    }
    if (column + 1 == columns_) { // idle, in use, or exclusive
        return amount < WHOLE ? 1 : 2;
    }
    return static_cast<uint8_t>(std::min(GRADES, ((amount - 1) >> shifts_[column]) + 1));
}

void RangeSummary::take_in(size_t node, const int64_t *begin, const int64_t *free, size_t n,
                           int64_t from, int64_t until) {
    outgrown_ = outgrown_ || (begin[n - 1] > end_ && end_ - base_ < FARTHEST);
    if (from >= end_ || until <= base_) {
        return;
    }
    const size_t last = until >= end_ ? ranges_ - 1 : range_at(until - 1);
    uint8_t *here = grades_.data();
    uint8_t *most = here + columns_;
    uint8_t *least = most + columns_;
    size_t range = range_at(from);
    int64_t time = base_ + static_cast<int64_t>(range << shift_);
    size_t i = static_cast<size_t>(std::upper_bound(begin, begin + n, time) - begin);
    i = i == 0 ? 0 : i - 1;
    const auto read = [&] {
        for (size_t c = 0; c < columns_; ++c) {
            here[c] = grade(c, free[i * columns_ + c]);
        }
    };
    read();
    for (; range <= last; ++range) {
        const int64_t next = time + (int64_t{1} << shift_);
        if (i + 1 < n && begin[i + 1] <= time) {
            ++i;
            read();
        }
        std::copy_n(here, columns_, most);
        std::copy_n(here, columns_, least);
        while (i + 1 < n && begin[i + 1] < next) {
            ++i;
            read();
            for (size_t c = 0; c < columns_; ++c) {
                most[c] = std::max(most[c], here[c]);
                least[c] = std::min(least[c], here[c]);
            }
        }
        size_t at = range * columns_ * n_nodes_ + node;
        for (size_t c = 0; c < columns_; ++c, at += n_nodes_) {
            most_[at] = most[c];
            least_[at] = least[c];
        }
        time = next;
    }
}

size_t RangeSummary::narrow(LineNeed need, const std::vector<uint8_t> &bound, size_t range,
                            std::vector<uint8_t> &marks) const {
    for (size_t i = 0; i < need.n; ++i) {
        const size_t c = need.columns[i];
        keep_from(bound.data() + (range * columns_ + c) * n_nodes_, grade(c, need.amounts[i]),
                  marks.data(), n_nodes_);
    }
    return count_of(marks.data(), n_nodes_);
}

size_t RangeSummary::mark(LineNeed need, int64_t length, int64_t from, int64_t until, size_t enough,
                          std::vector<uint8_t> &marks) const {
    marks.assign(n_nodes_, 1);
    const size_t range = range_at(from);
    size_t left = narrow(need, most_, range, marks);
    // Whatever its start there, it runs throughout [until - 1, end).
    const int64_t end = std::min(end_, end_of(from, length));
    if (end <= until) {
        return left;
    }
    const size_t last = range_at(end - 1);
    const bool whole = base_ + static_cast<int64_t>((last + 1) << shift_) <= end;
    size_t step = 1;
    for (size_t s = range + 1; left > enough && s < last + (whole ? 1 : 0); s += step) {
        left = narrow(need, least_, s, marks);
        step *= s > range + 4 ? 2 : 1;
    }
    if (left > enough && !whole && last > range) {
        left = narrow(need, most_, last, marks);
    }
    return left;
}

} // namespace bridge
