// SPDX-License-Identifier: Apache-2.0
// Replays a whole trace: an event loop around the rules of plan_counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bridge {

struct Trace {
    size_t n;
    const int64_t *submit;
    const int64_t *runtime;
    const int64_t *time_limit;
    const int64_t *count;
    const int64_t *order; // or null: first come, first served
};

// The promises made to a job while it waited, as in bridge.state.accuracy.PROMISE.
struct Promise {
    int64_t first_start, first_said, last_start, last_said, changes, later, earlier;
};

struct ReplayResult {
    std::vector<int64_t> start;
    std::vector<int64_t> decision_ns;
    std::vector<Promise> promises; // of each job; all 0: none
};

ReplayResult replay_counts(const Trace &trace, int64_t capacity, int64_t depth);

} // namespace bridge
