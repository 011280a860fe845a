// SPDX-License-Identifier: Apache-2.0
// The decoder that books on flat lists: a profile for each pool, timelines of groups of equal
// nodes.
//
// It decides as NodePlanner does, but for groups: a group counts as many times as it has nodes.
// Each start found bounds later ones: a job that needs at least as much for at least as long starts
// no earlier.
#pragma once

#include <cstdint>
#include <vector>

#include "order_search/decoder.hpp"
#include "order_search/groups.hpp"
#include "order_search/profile.hpp"
#include "single_pass/node_planner.hpp"

namespace bridge {

class ListsDecoder : public OrderDecoder, private NodePlanner {
  public:
    explicit ListsDecoder(const NodeProblem &problem);

    // Whether the planner would plan the same nodes as counts in any order of the jobs.
    bool exact() const { return exact_; }

    Decoding kind() const override { return Decoding::LISTS; }
    int64_t steps() const override;
    int64_t place(size_t job) override;
    int64_t minimum(size_t job) override;
    bool as_kept(size_t job) const override;
    void keep(size_t job) override;
    void put_back(size_t job) override;
    void undo() override;
    void settle() override;

  private:
    // Alternatives with equal requests.
    struct Shape {
        size_t job;         // one that has it
        size_t alternative; // of that job
        int32_t pool;
        int64_t width; // in a pool the only possible one; else the smallest
        int64_t length;
        std::vector<uint32_t> smaller; // shapes that need at most as much and as long; itself, too
    };
    struct Placement {
        int64_t start = NEVER;
        int64_t end = NEVER;
        size_t alternative = 0;
        int64_t width = 0;                     // in a pool
        std::vector<NodeGroups::Piece> pieces; // else
    };
    struct Booked {
        size_t job;
        bool kept; // it is at kept_, else at tried_
        OrderProfile::Booking booking;
        size_t groups;  // their number before
        uint32_t shape; // the one whose bound was `bound` before
        int64_t bound;
    };
    struct GroupCandidate {
        uint32_t group;
        int32_t room;          // tasks that fit on each of its nodes; 1 if tasks are not counted
        bool required = false; // these go first
        int32_t rank = 0;      // then by these
        int64_t first = 0;
        int64_t second = 0;
    };

    bool exact_ = true;
    std::vector<OrderProfile> profiles_;        // by pool
    std::vector<std::vector<size_t>> possible_; // by job: its alternatives
    std::vector<int32_t> pool_;                 // by alternative: FIXED is by name
    std::vector<uint32_t> shape_;               // by alternative
    std::vector<Shape> shapes_;
    std::vector<int64_t> floor_; // by shape: no start precedes it
    std::vector<int64_t> bound_; // by shape: with what is booked
    std::unique_ptr<NodeGroups> groups_;
    std::vector<Placement> tried_; // by job
    std::vector<Placement> kept_;  // by job
    std::vector<Booked> booked_;
    std::vector<size_t> at_; // by job: where in booked_
    std::vector<int64_t> taken_;
    std::vector<int64_t> free_;
    std::vector<GroupCandidate> group_candidates_;
    int64_t steps_ = 0;
    std::vector<std::pair<int64_t, int64_t>> starts_; // when, how many nodes or tasks

    void find_pools();
    void find_shapes();
    bool no_larger(const Shape &a, const Shape &b);
    int64_t bound_of(uint32_t shape) const;
    int64_t earliest_of(size_t alternative, int64_t from, int64_t latest);
    bool start_at_once(size_t job, size_t alternative, Placement &place);
    void book(size_t job, const Placement &place, bool kept);

    // On groups.
    void find_candidates(const NodeDemand &demand, int64_t start, int64_t length);
    int64_t width_of_candidates(const NodeDemand &demand, const Widths &widths, bool widest);
    int64_t next_with_groups(size_t alternative, int64_t from, int64_t latest);
    int64_t next_with_candidates(size_t alternative, int64_t from, int64_t latest);
    int64_t next_fit_in(const NodeDemand &demand, Need need, size_t group, int64_t from,
                        int64_t length, int64_t latest) const;
    void choose_candidates(const NodeDemand &demand, int64_t width, Placement &place);
    void sort_candidates(const NodeDemand &demand, const Placement &place);
};

} // namespace bridge
