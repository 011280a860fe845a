// SPDX-License-Identifier: Apache-2.0
// A plan of nodes under construction: one job after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/timelines.hpp"
#include "counts/count_profile.hpp"
#include "single_pass/node_choice.hpp"
#include "single_pass/node_classes.hpp"
#include "single_pass/node_demand.hpp"
#include "single_pass/node_pool.hpp"
#include "single_pass/node_problem.hpp"
#include "single_pass/recent_starts.hpp"

namespace bridge {

class NodePlanner {
  public:
    explicit NodePlanner(const NodeProblem &problem);

    NodePlanResult run();

  protected: // for planners that plan the same jobs in many orders
    // The state of an alternative's nodes at this second.
    struct Look {
        int64_t fit = 0;    // eligible nodes that are free from now for its whole length
        int64_t width = -1; // number of nodes to start with now; -1: it does not fit
        Blocked why = Blocked::STARTS_NOW;
        std::vector<Candidate> candidates; // the eligible nodes (not for a pool)
    };
    struct Option {
        size_t alternative;
        int32_t pool; // FIXED: individual nodes
    };

    const NodeProblem &problem_;
    NodeClasses classes_;
    NodeDemands demands_;
    Timelines timelines_; // empty until opened
    bool timelines_open_ = false;
    NodeChoice choice_;
    std::vector<CountProfile> counters_;
    NodePlanResult result_;
    std::vector<std::vector<Chosen>> chosen_; // by job
    int64_t reserved_ = 0;

    // The free amounts at this second: a dense copy of the timelines' first segments. They only
    // fall.
    std::vector<int64_t> free_now_;
    std::vector<uint8_t> planned_later_; // by node: whether anything is booked after this second
    // For each class, the nodes not held exclusively now, and the idle ones.
    std::vector<NowList> open_;
    std::vector<NowList> idle_;

    std::vector<RecentStarts> recent_; // by class, of jobs planned on individual nodes
    std::vector<int64_t> first_start_; // of one search, by place in the class

    std::vector<size_t> possible_; // scratch: alternatives of a job
    std::vector<Look> looks_;      // scratch, by option

    std::vector<int64_t> held_until_;              // by node: when its last holder ends
    std::vector<std::unique_ptr<NodePool>> pools_; // null: dissolved
    std::vector<int32_t> node_pool_;               // by node: its pool, FREE, or FIXED
    std::vector<int64_t> pool_widths_;
    std::vector<int64_t> pool_limits_;

    void take_running();
    void open_timelines(); // before the first job on individual nodes
    void take_counters();

    void write_sets();
    void plan_job(size_t job);
    void start_now(size_t job, const Option &option, const Look &look);
    bool book_later(size_t job, const std::vector<Option> &options, size_t *reported);
    void commit(size_t job, const Option &option, int64_t start, int64_t width,
                std::vector<Candidate> candidates);
    void book_nodes(const NodeDemand &demand, int64_t start, int64_t end,
                    const std::vector<Chosen> &chosen);
    void explain(size_t job, const Look &look);
    size_t first_in_time(size_t job, const std::vector<Option> &options) const;
    void miss(size_t job, const std::vector<Option> &options, const std::vector<Look> &looks);

    // Counters.
    int64_t counters_free(size_t job, int64_t from, int64_t length, int64_t latest) const;
    int32_t counter_lacking_now(size_t job) const;

    // Pools.
    std::vector<Option> pooled_before(const std::vector<size_t> &possible);
    std::vector<Option> options_of(const std::vector<size_t> &possible);
    bool may_pool(size_t alternative);
    int64_t pool_width(size_t alternative);
    std::vector<int32_t> large_enough(const NodeDemand &demand) const;
    int32_t pool_of(const std::vector<int32_t> &nodes) const;
    int32_t make_pool(std::vector<int32_t> nodes);
    void fix(const std::vector<int32_t> &nodes);
    void dissolve(size_t pool);
    std::vector<Chosen> spread_in_pool(const NodePool::Booking &booking, const int32_t *nodes);
    void write_pool(const NodePool &pool);

    // Nodes.
    Look look(size_t job, const Option &option);
    void look_at_pool(const NodePool &pool, size_t alternative, Look &look);
    void look_at_nodes(size_t alternative, Look &look);
    NowList &list_now(NodeDemand &demand);
    int64_t earliest(size_t job, const Option &option, int64_t from, int64_t latest);
    int64_t next_fit(const NodeDemand &demand, Need need, int32_t node, int64_t from,
                     int64_t length, int64_t latest) const;
    int64_t next_with_width(const NodeDemand &demand, size_t alternative, int64_t from,
                            int64_t latest);
    int64_t next_with_tasks(const NodeDemand &demand, size_t alternative, int64_t from,
                            int64_t latest);
    std::vector<Candidate> candidates_at(const NodeDemand &demand, int64_t start, int64_t length,
                                         size_t enough) const;
    int32_t room_in(const NodeDemand &demand, int32_t node, int64_t start, int64_t length) const;
};

} // namespace bridge
