// SPDX-License-Identifier: Apache-2.0
// Contiguous node sets on the sequence of idle nodes: the TJAP paper's two strategies.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/tree.hpp"

namespace bridge {

// Idle nodes in the order of their numbers. A job takes consecutive ones; the sequence is cyclic.
struct IdleSequence {
    std::vector<int32_t> nodes;
};

// Positions in the sequence, by job; empty: there is no such placement. Runs across two fabrics may
// be included where they cannot be avoided.
using ContiguousPlacement = std::vector<std::vector<int32_t>>;

// One job after the other takes the first nodes left.
ContiguousPlacement contiguous_sequential(const IdleSequence &sequence,
                                          const std::vector<int32_t> &sizes);

// The static strategy (SCAS), exactly: disjoint starts on the sequence with the least total cost. A
// dynamic program over the sequence and the multiset of jobs placed so far. At most one job wraps
// around, so the sequence is cut at each place where one could. Throws std::invalid_argument if the
// jobs' kinds make more than `max_states` multisets. `sums`: the most sums of the program after
// the first cut; the answer is the best of the cuts tried; 0: no bound. `summed`: the work done is
// added to it.
ContiguousPlacement contiguous_exact(const Tree &tree, const HopMetric &metric,
                                     const IdleSequence &sequence,
                                     const std::vector<int32_t> &sizes,
                                     int64_t max_states = int64_t{1} << 12, int64_t sums = 0,
                                     int64_t *summed = nullptr);

} // namespace bridge
