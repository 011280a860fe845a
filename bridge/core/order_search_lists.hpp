// SPDX-License-Identifier: Apache-2.0
// The decoder that books on flat lists: a profile for each pool, a timeline for each other node.
#pragma once

#include <cstdint>
#include <vector>

#include "node_planner.hpp"
#include "order_search_decoder.hpp"
#include "order_search_profile.hpp"

namespace bridge {

class ListsDecoder : public OrderDecoder, private NodePlanner {
  public:
    explicit ListsDecoder(const NodeProblem &problem);

    // Whether the planner would plan the same nodes as counts in any order of the jobs.
    bool exact() const { return exact_; }

    Decoding kind() const override { return Decoding::LISTS; }
    int64_t place(size_t job) override;
    bool as_kept(size_t job) const override;
    void keep(size_t job) override;
    void put_back(size_t job) override;
    void undo() override;
    void settle() override;

  private:
    struct Place {
        int64_t start = NEVER;
        int64_t end = NEVER;
        int32_t pool = FIXED;
        int64_t width = 0;
        size_t alternative = 0;
        std::vector<Chosen> chosen; // not in a pool
    };
    struct Booked {
        size_t job;
        bool kept;                     // it lies where kept_ says, else where tried_ says
        OrderProfile::Booking booking; // in a pool
    };

    bool exact_ = true;
    std::vector<OrderProfile> profiles_;        // by pool
    std::vector<std::vector<size_t>> possible_; // by job: its alternatives
    std::vector<int32_t> pool_;                 // by alternative: FIXED is by name
    std::vector<int64_t> pool_need_;            // by alternative: its least width in the pool
    std::vector<int64_t> floor_; // by alternative: no start comes before it, now or not_before
    std::vector<Place> tried_;   // by job
    std::vector<Place> kept_;    // by job
    std::vector<Booked> booked_;
    std::vector<size_t> at_;     // by job: where in booked_
    std::vector<int64_t> taken_; // one row of amounts

    void find_pools();
    int64_t first_second(size_t job) const;
    int64_t earliest_of(size_t alternative, int64_t from, int64_t latest);
    bool start_at_once(size_t job, size_t alternative, Place &place);
    void book(size_t job, const Place &place, bool kept);
    void take(const Place &place, int64_t sign);
};

} // namespace bridge
