// SPDX-License-Identifier: Apache-2.0
// Nodes that every job so far wanted whole and indifferently: planned as a count.
//
// Which node a job gets is decided by a sweep over time when the plan is complete, or when a job
// comes that treats the nodes differently.
#pragma once

#include <cstdint>
#include <vector>

#include "common/times.hpp"
#include "counts/count_profile.hpp"
#include "counts/dominance.hpp"

namespace bridge {

class NodePool {
  public:
    struct Booking {
        size_t job;
        size_t alternative;
        int64_t start;
        int64_t end;
        int64_t width;
    };

    // `members` in the order in which they are given out; `held_until` by node index, at most `now`
    // for a node nobody holds. `widths` and `limits` are what the dominance table is for.
    NodePool(int64_t now, std::vector<int32_t> members, const std::vector<int64_t> &held_until,
             const std::vector<int64_t> &widths, const std::vector<int64_t> &limits);

    const std::vector<int32_t> &members() const { return members_; } // ascending
    const std::vector<Booking> &bookings() const { return bookings_; }

    // How many nodes are free at this second; throughout [start, end).
    int64_t free_at(int64_t time) const { return profile_.least(time, end_of(time, 1)); }
    int64_t free_in(int64_t start, int64_t end) const { return profile_.least(start, end, 0); }

    int64_t earliest(int64_t from, int64_t width, int64_t length, int64_t latest) const {
        return profile_.earliest(from, width, length, latest).start;
    }
    // Bounds for jobs that want nothing but nodes of this pool.
    Dominance &dominance() { return dominance_; }
    void book(const Booking &booking);

    // Writes the nodes of each booking, in the order in which they are given out.
    void map(const std::vector<int32_t *> &into) const;

  private:
    std::vector<int32_t> given_order_;
    std::vector<int32_t> members_;
    std::vector<std::pair<int64_t, int32_t>> held_; // until when, place in given_order_
    CountProfile profile_;
    Dominance dominance_;
    std::vector<Booking> bookings_;
};

} // namespace bridge
