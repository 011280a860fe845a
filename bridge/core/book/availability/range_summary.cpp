// SPDX-License-Identifier: Apache-2.0
#include "book/availability/range_summary.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "book/availability/lines.hpp"

namespace bridge {
namespace {

constexpr int64_t GRADES = 255;
constexpr int64_t FARTHEST = int64_t{1} << 40; // s; later changes are not distinguished
constexpr size_t MAX_SPANS = 1024;
constexpr size_t MAX_BYTES = size_t{24} << 20;            // with one length
constexpr size_t MAX_BYTES_OF_LENGTHS = size_t{32} << 20; // with more
constexpr int64_t SHORT = 64;                             // s; few jobs are shorter
constexpr size_t LENGTHS = 6;                             // at most
constexpr size_t LANES = 32;                              // bytes that are compared at once
constexpr size_t SUMMED = 100;                            // blocks whose marks a byte can count

using Lanes __attribute__((vector_size(LANES))) = uint8_t;

bool any(const uint8_t *marks) {
    std::array<uint64_t, RangeSummary::BLOCK / sizeof(uint64_t)> words;
    std::memcpy(words.data(), marks, sizeof words);
    uint64_t all = 0;
    for (const uint64_t word : words) {
        all |= word;
    }
    return all != 0;
}

struct Needed {
    size_t at; // of its column
    uint8_t grade;
};

// Keeps the marks of nodes whose grades are high enough in all columns. Returns how many are left.
// `grades`: those of the first block; the next one's come `apart` bytes later.
BRIDGE_WIDE_VECTORS size_t keep_from(const uint8_t *grades, size_t apart, const Needed *needed,
                                     size_t n_needed, uint8_t *marks, size_t blocks) {
    size_t left = 0;
    for (size_t b = 0; b < blocks;) {
        Lanes sums{};
        for (const size_t past = std::min(blocks, b + SUMMED); b < past; ++b, grades += apart) {
            uint8_t *own = marks + b * RangeSummary::BLOCK;
            if (!any(own)) {
                continue;
            }
            for (size_t lane = 0; lane < RangeSummary::BLOCK; lane += LANES) {
                Lanes kept;
                std::memcpy(&kept, own + lane, LANES);
                for (size_t i = 0; i < n_needed; ++i) {
                    Lanes here;
                    std::memcpy(&here, grades + needed[i].at + lane, LANES);
                    kept &= reinterpret_cast<Lanes>(here >= needed[i].grade);
                }
                std::memcpy(own + lane, &kept, LANES);
                sums += kept;
            }
        }
        for (size_t lane = 0; lane < LANES; ++lane) {
            left += sums[lane];
        }
    }
    return left;
}

} // namespace

void RangeSummary::drop() {
    maximum_ = {};
    minimum_ = {};
}

void RangeSummary::begin(size_t n_nodes, int64_t now, int64_t horizon,
                         const std::vector<int64_t> &greatest) {
    n_nodes_ = n_nodes;
    blocks_ = (n_nodes + BLOCK - 1) / BLOCK;
    columns_ = greatest.size();
    base_ = now;
    for (ranges_ = MAX_SPANS;
         ranges_ > 64 && 2 * ranges_ * columns_ * blocks_ * BLOCK > MAX_BYTES;) {
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
    // One line more, as blocks that are apart by powers of two would share few lines of a cache.
    apart_ = (ranges_ * columns_ + columns_ + 1) * BLOCK;
    const size_t bytes = blocks_ * apart_;
    lengths_ = 1;
    while (lengths_ < LENGTHS && (width() >> (lengths_ - 1)) >= SHORT &&
           (lengths_ + 2) * bytes <= MAX_BYTES_OF_LENGTHS) {
        ++lengths_;
    }
    maximum_.assign(lengths_ * bytes, 0);
    minimum_.assign(bytes, 0);
    lowest_.assign(columns_, GRADES);
    min_here_.resize(columns_);
    max_here_.resize(lengths_ * columns_);
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
    // A job that begins in the range before may extend into the changed time.
    const int64_t beyond = lengths_ > 1 ? width() : 0;
    if (from - beyond >= end_ || until <= base_) {
        return;
    }
    const size_t last = until >= end_ ? ranges_ - 1 : range_at(until - 1);
    size_t range = range_at(from - beyond);
    size_t i = static_cast<size_t>(std::upper_bound(begin, begin + n, begin_of(range)) - begin);
    i = i == 0 ? 0 : i - 1;
    for (bool seen = false; range <= last; ++range) {
        const int64_t time = begin_of(range);
        for (; i + 1 < n && begin[i + 1] <= time; ++i) {
            seen = false;
        }
        size_t past = i + 1;
        while (past < n && begin[past] < time + width() + beyond) {
            ++past;
        }
        if (past > i + 1 || !seen) {
            see(time, begin + i, free + i * columns_, past - i);
            seen = past == i + 1;
        }
        put(node, range);
    }
}

// Finds the bounds of the range at `time` from the `n` segments that matter to it.
void RangeSummary::see(int64_t time, const int64_t *begin, const int64_t *free, size_t n) {
    grades_.resize(n * columns_);
    for (size_t s = 0, at = 0; s < n; ++s) {
        for (size_t c = 0; c < columns_; ++c, ++at) {
            grades_[at] = grade(c, free[at]);
        }
    }
    std::copy_n(grades_.begin(), columns_, min_here_.begin());
    if (n == 1) {
        for (size_t k = 0; k < lengths_; ++k) {
            std::copy_n(grades_.begin(), columns_, max_here_.data() + k * columns_);
        }
        return;
    }
    std::fill(max_here_.begin(), max_here_.end(), 0);
    for (size_t s = 0; s < n && (s == 0 || begin[s] < time + width()); ++s) {
        for (size_t c = 0; c < columns_; ++c) {
            min_here_[c] = std::min(min_here_[c], grades_[s * columns_ + c]);
        }
        begin_at(std::max(time, begin[s]), begin + s, n - s, grades_.data() + s * columns_);
    }
}

// Records what is free for each length from `time` on, which is in the first of `n` segments. A job
// that begins later in that segment overlaps at least the same ones.
void RangeSummary::begin_at(int64_t time, const int64_t *begin, size_t n, uint8_t *grades) {
    size_t past = 1;
    for (size_t k = lengths_; k-- > 0;) { // the first segment becomes the least of those up to here
        for (; past < n && begin[past] < time + length(k); ++past) {
            for (size_t c = 0; c < columns_; ++c) {
                grades[c] = std::min(grades[c], grades[past * columns_ + c]);
            }
        }
        uint8_t *maximum = max_here_.data() + k * columns_;
        for (size_t c = 0; c < columns_; ++c) {
            maximum[c] = std::max(maximum[c], grades[c]);
        }
    }
}

void RangeSummary::put(size_t node, size_t range) {
    for (size_t c = 0; c < columns_; ++c) {
        lowest_[c] = std::min(lowest_[c], min_here_[c]);
    }
    const size_t at = node / BLOCK * apart_ + range * columns_ * BLOCK + node % BLOCK;
    const auto write = [&](uint8_t *to, const uint8_t *grades) {
        for (size_t c = 0; c < columns_; ++c) {
            to[c * BLOCK] = grades[c];
        }
    };
    write(minimum_.data() + at, min_here_.data());
    for (size_t k = 0; k < lengths_; ++k) {
        write(maximum_.data() + k * blocks_ * apart_ + at, max_here_.data() + k * columns_);
    }
}

size_t RangeSummary::narrow(LineNeed need, const uint8_t *bound, size_t range,
                            std::vector<uint8_t> &marks) const {
    std::array<Needed, 8> needed;
    size_t left = 0;
    for (size_t done = 0; done < need.n;) {
        size_t n = 0;
        for (; n < needed.size() && done < need.n; ++done) {
            const size_t c = need.columns[done];
            const uint8_t wanted = grade(c, need.amounts[done]);
            if (wanted > lowest_[c]) { // else all nodes have it
                needed[n++] = {c * BLOCK, wanted};
            }
        }
        left = keep_from(bound + range * columns_ * BLOCK, apart_, needed.data(), n, marks.data(),
                         blocks_);
    }
    return left;
}

size_t RangeSummary::mark(LineNeed need, int64_t length, int64_t from, int64_t until, size_t enough,
                          std::vector<uint8_t> &marks) const {
    marks.assign(n_nodes_, 1);
    marks.resize(blocks_ * BLOCK, 0);
    const size_t range = range_at(from);
    // Whatever its start there, it runs throughout [until - 1, end).
    const int64_t end = std::min(end_, end_of(from, length));
    const size_t last = end <= until ? range : range_at(end - 1);
    const bool whole = begin_of(last + 1) <= end;
    const size_t past = last + (whole ? 1 : 0);
    size_t left = narrow(need, max_within(length), range, marks);
    size_t step = 1;
    for (size_t s = range + 1; left > enough && s < past; s += step) {
        left = narrow(need, minimum_.data(), s, marks);
        step *= s > range + 1 ? 2 : 1;
    }
    if (left > enough && !whole && last > range) {
        left = narrow(need, max_within(end - begin_of(last)), last, marks);
    }
    return left;
}

void RangeSummary::list(const std::vector<uint8_t> &marks, std::vector<int32_t> &nodes) {
    nodes.clear();
    for (size_t i = 0; i < marks.size(); i += sizeof(uint64_t)) {
        uint64_t some;
        std::memcpy(&some, marks.data() + i, sizeof some);
        for (size_t node = i; some != 0 && node < i + sizeof some; ++node) {
            if (marks[node] != 0) {
                nodes.push_back(static_cast<int32_t>(node));
            }
        }
    }
}

} // namespace bridge
