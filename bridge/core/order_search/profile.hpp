// SPDX-License-Identifier: Apache-2.0
// The number of free nodes of a pool, from now on: short, flat, and with undo.
//
// CountProfile is for queues of many thousand jobs that are planned once; this one is for a window
// of a few hundred that is planned thousands of times. Bookings must be undone in reverse order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/times.hpp"

namespace bridge {

class OrderProfile {
  public:
    struct Booking {
        uint32_t first; // its slots are [first, last)
        uint32_t last;
        bool cut_first; // the slot was made for it
        bool cut_last;
        int64_t width;
    };

    // `until`: when each member becomes free, at most `now` for a free one.
    void reset(int64_t now, std::vector<int64_t> until) {
        std::sort(until.begin(), until.end());
        const auto total = static_cast<int64_t>(until.size());
        begin_.assign(1, now);
        free_.assign(1, 0);
        for (const int64_t time : until) {
            if (time == NEVER) {
                break;
            }
            if (time > begin_.back()) {
                begin_.push_back(time);
                free_.push_back(free_.back());
            }
            ++free_.back();
        }
        total_ = total;
    }

    int64_t total() const { return total_; }
    // Slots visited so far.
    int64_t steps() const { return steps_; }

    // The least free amount in [start, end).
    int64_t minimum(int64_t start, int64_t end) const {
        const size_t first = slot_at(start);
        size_t i = first;
        int64_t minimum = free_[i];
        for (++i; i < begin_.size() && begin_[i] < end; ++i) {
            minimum = std::min(minimum, free_[i]);
        }
        steps_ += static_cast<int64_t>(i - first);
        return minimum;
    }

    // The earliest start in [from, latest] at which `width` is free for `length`, or NEVER.
    int64_t earliest(int64_t from, int64_t width, int64_t length, int64_t latest) const {
        const size_t n = begin_.size();
        int64_t start = from;
        if (start > latest) {
            return NEVER;
        }
        const size_t first = slot_at(from);
        for (size_t i = first;;) {
            while (free_[i] < width) {
                if (++i == n || begin_[i] > latest) {
                    steps_ += static_cast<int64_t>(i - first);
                    return NEVER;
                }
                start = begin_[i];
            }
            const int64_t end = end_of(start, length);
            size_t j = i + 1;
            while (j < n && begin_[j] < end && free_[j] >= width) {
                ++j;
            }
            if (j == n || begin_[j] >= end) {
                steps_ += static_cast<int64_t>(j - first);
                return start;
            }
            i = j;
        }
    }

    Booking book(int64_t start, int64_t end, int64_t width) {
        size_t first = slot_at(start);
        const bool cut_first = begin_[first] != start;
        if (cut_first) {
            insert(++first, start);
        }
        size_t last = first + 1;
        while (last < begin_.size() && begin_[last] < end) {
            ++last;
        }
        const bool cut_last = end != NEVER && (last == begin_.size() || begin_[last] != end);
        if (cut_last) {
            insert(last, end);
        }
        for (size_t i = first; i < last; ++i) {
            free_[i] -= width;
        }
        steps_ += static_cast<int64_t>(last - first) + OF_A_BOOKING;
        return {static_cast<uint32_t>(first), static_cast<uint32_t>(last), cut_first, cut_last,
                width};
    }

    void undo(const Booking &booking) {
        for (size_t i = booking.first; i < booking.last; ++i) {
            free_[i] += booking.width;
        }
        steps_ += static_cast<int64_t>(booking.last - booking.first) + OF_A_BOOKING;
        if (booking.cut_last) {
            erase(booking.last);
        }
        if (booking.cut_first) {
            erase(booking.first);
        }
    }

  private:
    std::vector<int64_t> begin_;
    std::vector<int64_t> free_;
    int64_t total_ = 0;
    static constexpr int64_t OF_A_BOOKING = 20;
    mutable int64_t steps_ = 0;

    size_t slot_at(int64_t time) const {
        const int64_t *begins = begin_.data();
        size_t base = 0;
        for (size_t n = begin_.size(); n > 1;) {
            const size_t half = n / 2;
            base += begins[base + half] <= time ? half : 0;
            n -= half;
        }
        return base;
    }
    // Inserts a slot at `time`, equal to the one before it.
    void insert(size_t at, int64_t time) {
        begin_.insert(begin_.begin() + static_cast<std::ptrdiff_t>(at), time);
        const int64_t same = free_[at - 1];
        free_.insert(free_.begin() + static_cast<std::ptrdiff_t>(at), same);
    }
    void erase(size_t at) {
        begin_.erase(begin_.begin() + static_cast<std::ptrdiff_t>(at));
        free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(at));
    }
};

} // namespace bridge
