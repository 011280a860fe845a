// SPDX-License-Identifier: Apache-2.0
// Node sets for all jobs of a window together: `compact`.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/packing.hpp"
#include "topology/tree.hpp"

namespace bridge {

struct WindowEffort {
    int64_t steps = 0;      // of about a nanosecond, counted; 0: no bound
    int64_t iterations = 0; // of the neighbourhood search; 0: no bound
    uint64_t seed = 0;
    int32_t all_orders_up_to = 5; // jobs; beyond that only largest first and the given order
};

struct WindowPlacement {
    std::vector<LeafCounts> held; // by job; empty: does not fit
    double gain = 0;              // sum over jobs of gain / nodes
    int64_t orders = 0, iterations = 0;
};

// Places jobs of the given sizes on idle nodes (by leaf switch). Every job is placed by the exact
// program for one job. The search is over the order, then over neighbourhoods: a few jobs are
// removed and put back in another order, half of the time under random prices of pods, and the
// result is kept if it is no worse. `initial`: node sets to start with, by job; empty: none.
WindowPlacement compact(const Tree &tree, const HopMetric &metric, const std::vector<int32_t> &idle,
                        const std::vector<int32_t> &sizes, const WindowEffort &effort,
                        const std::vector<LeafCounts> &initial = {});

// An upper bound of that gain by Lagrangian relaxation of the switches' capacities: no node sets of
// these jobs save more. Infinite sums of unplaceable jobs count as 0.
double compact_bound(const Tree &tree, const HopMetric &metric, const std::vector<int32_t> &idle,
                     const std::vector<int32_t> &sizes, int32_t rounds, double initial);

} // namespace bridge
