// SPDX-License-Identifier: Apache-2.0
// Interchangeable nodes that all jobs so far wanted whole: planned as a count.
//
// The nodes of each job are assigned by a sweep over time, when the plan is complete or when a job
// comes that distinguishes between them.
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

    // `members` in order of assignment; `held_until` by node index, at most `now` for a free node.
    // `widths` and `limits` are the axes of the dominance table.
    NodePool(int64_t now, std::vector<int32_t> members, const std::vector<int64_t> &held_until,
             const std::vector<int64_t> &widths, const std::vector<int64_t> &limits);

    const std::vector<int32_t> &members() const { return members_; } // ascending
    const std::vector<Booking> &bookings() const { return bookings_; }

    // The number of nodes free at this second, and throughout the time until `end`.
    int64_t free_now() const { return free_now_; }
    int64_t free_until(int64_t end) const {
        return free_now_ > 0 ? profile_.minimum(now_, end, 0) : 0;
    }

    int64_t earliest(int64_t from, int64_t width, int64_t length, int64_t latest) const {
        return profile_.earliest(from, width, length, latest).start;
    }
    // Bounds for jobs that need only nodes of this pool.
    Dominance &dominance() { return dominance_; }
    void book(const Booking &booking);

    // Writes the nodes of each booking, in order of assignment.
    void map(const std::vector<int32_t *> &into) const;

  private:
    int64_t now_;
    int64_t free_now_;
    std::vector<int32_t> given_order_;
    std::vector<int32_t> members_;
    std::vector<std::pair<int64_t, int32_t>> held_; // until when, index in given_order_
    CountProfile profile_;
    Dominance dominance_;
    std::vector<Booking> bookings_;
};

} // namespace bridge
