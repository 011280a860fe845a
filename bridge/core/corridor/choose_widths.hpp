// SPDX-License-Identifier: Apache-2.0
// Chooses the widths of jobs so that their power lies within a corridor and few nodes are idle.
//
// One goal after the other, each exactly as long as `effort` lasts, without giving up what those
// before have reached: the upper bound of power, the lower one, few idle nodes, few changed jobs,
// few changed nodes. Each is a search (search.hpp) with the prices of its own relaxation
// (relaxation.hpp); the prices of earlier goals prune later searches, too.
#pragma once

#include <cstdint>
#include <vector>

#include "corridor/jobs.hpp"

namespace bridge {

struct WidthRoom {
    int64_t nodes;   // for all jobs together
    int64_t lower_w; // what they should draw at least; 0 or less: no bound
    int64_t upper_w; // at most
};

struct WidthsFound {
    std::vector<int64_t> width; // by job; empty: there are too few nodes for the least widths
    int64_t over_w = 0;         // above the upper bound
    int64_t under_w = 0;        // below the lower bound
    int64_t steps = 0;
    // Whether nothing is better in power and idle nodes, and whether in changes either; false:
    // effort ended before all was tried.
    bool proven = true;
    bool settled = true;
};

WidthsFound choose_widths(const WidthJobs &jobs, const WidthRoom &room, int64_t effort);

} // namespace bridge
