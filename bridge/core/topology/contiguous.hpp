// SPDX-License-Identifier: Apache-2.0
// Contiguous node sets on the sequence of idle nodes: the TJAP paper's two strategies.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/tree.hpp"

namespace bridge {

// Idle nodes in the order of their numbers. A job takes consecutive ones, at the end of the
// sequence it goes on at its head.
struct IdleSequence {
    std::vector<int32_t> nodes;
};

// Positions in the sequence, by job; empty: there is no such placement. Where runs across two
// fabrics cannot be avoided they may be among them.
using ContiguousPlacement = std::vector<std::vector<int32_t>>;

// One job after the other takes the first nodes left.
ContiguousPlacement contiguous_sequential(const IdleSequence &sequence,
                                          const std::vector<int32_t> &sizes);

// The static strategy (SCAS), exactly: job starts on the sequence as it is, without overlap, of
// least total cost. A dynamic programme over the sequence and the multiset of jobs placed so far;
// at most one job goes on at the head, so the sequence is cut open at each place where one could.
// Throws std::invalid_argument if the jobs' kinds make more than `most_states` multisets. `sums`:
// of the programme at most, but for the first cut, and the answer is the best of the cuts that were
// tried; 0: no bound. `summed`: where what was done is added.
ContiguousPlacement contiguous_exact(const Tree &tree, const HopMetric &metric,
                                     const IdleSequence &sequence,
                                     const std::vector<int32_t> &sizes,
                                     int64_t most_states = int64_t{1} << 12, int64_t sums = 0,
                                     int64_t *summed = nullptr);

} // namespace bridge
