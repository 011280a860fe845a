// SPDX-License-Identifier: Apache-2.0
// Contiguous placements to start a search with: an upper bound on the cost of its result.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/packing.hpp"
#include "topology/tree.hpp"

namespace bridge {

// The cheaper of two: one job after the other on the first idle nodes, and the best runs of up to
// eight jobs together; more in fours, the largest jobs first. Up to eight are placed exactly where
// the dynamic program is small, whatever the bound; a large one is limited by the bound, or skipped
// without one. Empty: neither places all jobs, each within one tree.
//
// idle: ascending. sums: the most sums of the program; 0: no bound. summed: the work done is added
// to it.
std::vector<LeafCounts> warm_start(const Tree &tree, const HopMetric &metric,
                                   const std::vector<int32_t> &idle,
                                   const std::vector<int32_t> &sizes, int64_t sums,
                                   int64_t &summed);

} // namespace bridge
