// SPDX-License-Identifier: Apache-2.0
// Plans jobs that need an amount of one interchangeable resource, and assigns whole nodes to such
// plans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "counts/count_profile.hpp"
#include "counts/dominance.hpp"

namespace bridge {

// A plan under construction: a profile, and bounds on the starts of later jobs.
class CountPlan {
  public:
    // The counts and time limits that will be placed.
    CountPlan(int64_t capacity, const int64_t *counts, const int64_t *limits, size_t n)
        : capacity_(capacity), dominance_(counts, limits, n) {}

    // Starts over. `now` must be at least 0.
    void begin(int64_t now, const std::vector<CountProfile::Holder> &by_end) {
        profile_.reset(now, capacity_, by_end);
        dominance_.clear();
        now_ = now;
    }

    // Advances the time. Nothing was freed other than expected.
    void advance(int64_t now) { now_ = now; }

    // Books the job at its earliest start, or, unless it `may_wait`, now or not at all. Returns the
    // start, UNPLANNED if it may not wait and cannot start now, or NEVER.
    int64_t place(int64_t count, int64_t limit, int64_t not_before, bool may_wait);

  private:
    int64_t capacity_;
    int64_t now_ = 0;
    CountProfile profile_;
    Dominance dominance_;
};

struct CountJobs {
    size_t n;
    const int64_t *count;
    const int64_t *time_limit;
    const int64_t *not_before;
};

// `running` in any order.
void plan_counts(int64_t now, int64_t capacity, std::vector<CountProfile::Holder> running,
                 const CountJobs &jobs, int64_t depth, int64_t *start);

// A holder of particular nodes from the beginning of time to `end`.
struct NodeHolder {
    int64_t end;
    const int32_t *nodes;
    size_t n;
};

// Sweeps over time and writes the nodes of job j to into[j], ascending, for every job with a start.
// Throws std::invalid_argument if the jobs need more nodes than exist.
void map_counts(size_t n_nodes, size_t n_jobs, const int64_t *start, const int64_t *end,
                const int64_t *count, const std::vector<NodeHolder> &running, int32_t *const *into);

} // namespace bridge
