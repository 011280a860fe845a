// SPDX-License-Identifier: Apache-2.0
// A capacity constraint: a step function of time, and the sum of the amounts that count against it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/times.hpp"

namespace bridge {

constexpr int64_t UNBOUNDED = NEVER; // an amount that is never exceeded

class CapacityConstraint {
  public:
    // `amounts[i]` holds from `starts[i]` (ascending) to the next start, the last one without end
    // and the first one also before its start.
    CapacityConstraint(int64_t now, const std::vector<int64_t> &starts,
                       const std::vector<int64_t> &amounts);

    // Replaces the step function and keeps the use.
    void set(const std::vector<int64_t> &starts, const std::vector<int64_t> &amounts);

    void add(int64_t start, int64_t end, int64_t amount);

    // The earliest start in [from, latest] at which it can hold `amount` for `length`, or NEVER;
    // the latest one in [earliest, from], or -1.
    int64_t next_fit(int64_t amount, int64_t from, int64_t length, int64_t latest) const;
    int64_t last_fit(int64_t amount, int64_t from, int64_t length, int64_t earliest) const;

    // The greatest amount from `now` on that it leaves when nothing is used.
    bool ever_holds(int64_t amount) const;

    void trim(int64_t now);

    // Whether it is exceeded in any slot within [start, end); the search stops at the first.
    bool exceeded(int64_t start, int64_t end) const;

    struct Slot {
        int64_t begin;
        int64_t amount;
        int64_t used;

        bool holds(int64_t more) const { return amount == UNBOUNDED || used <= amount - more; }
        bool same(const Slot &other) const { return amount == other.amount && used == other.used; }
    };
    const std::vector<Slot> &slots() const { return slots_; }

  private:
    std::vector<Slot> slots_;

    size_t slot_at(int64_t time) const;
    size_t cut(int64_t time);
    void merge(size_t slot);
};

} // namespace bridge
