// SPDX-License-Identifier: Apache-2.0
// Contiguous placements to begin a search with: nothing that it ends with is worse than these.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/packing.hpp"
#include "topology/tree.hpp"

namespace bridge {

// The cheaper of two: one job after the other on the first idle nodes, and the best runs of up to
// eight jobs together; more in fours, the largest jobs first. Up to eight are placed exactly where
// the dynamic programme is small, whatever the bound; otherwise the bound may end it, and without
// one it is left out where it is large. Empty: neither places all jobs, each within one tree.
//
// idle: ascending. sums: of the programme at most; 0: no bound. summed: where what was done is
// added.
std::vector<LeafCounts> warm_start(const Tree &tree, const HopMetric &metric,
                                   const std::vector<int32_t> &idle,
                                   const std::vector<int32_t> &sizes, int64_t sums,
                                   int64_t &summed);

} // namespace bridge
