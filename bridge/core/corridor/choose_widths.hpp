// SPDX-License-Identifier: Apache-2.0
// Chooses the widths of jobs so that their power lies within a corridor and few nodes are idle.
//
// The goals, in lexicographic order: the upper bound of power, the lower one, few idle nodes, few
// changed jobs, few changed nodes. Each is exact as long as `effort` lasts. Each is a search
// (search.hpp) with the prices of its own relaxation (relaxation.hpp); the prices of earlier goals
// prune later searches, too.
#pragma once

#include <cstdint>
#include <vector>

#include "corridor/jobs.hpp"

namespace bridge {

struct WidthRoom {
    int64_t nodes;   // for all jobs together
    int64_t lower_w; // lower bound of their power; 0 or less: none
    int64_t upper_w; // upper bound
};

struct WidthsFound {
    std::vector<int64_t> width; // by job; empty: there are too few nodes for the least widths
    int64_t over_w = 0;         // above the upper bound
    int64_t under_w = 0;        // below the lower bound
    int64_t steps = 0;
    // Whether the result is optimal in power and idle nodes (`proven`), and in changes as well
    // (`settled`); false: the effort ended first.
    bool proven = true;
    bool settled = true;
};

WidthsFound choose_widths(const WidthJobs &jobs, const WidthRoom &room, int64_t effort);

} // namespace bridge
