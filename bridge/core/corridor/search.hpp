// SPDX-License-Identifier: Apache-2.0
// Depth-first branch and bound over the widths of jobs.
//
// Jobs are decided one after the other, those first whose second-best width is by far worse at the
// prices of the relaxation: they are seldom changed, and the search takes place among the rest. A
// branch ends where one of the cuts cannot be kept by any widths of the jobs below. Of equal jobs
// the later one has no fewer nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "corridor/jobs.hpp"
#include "corridor/relaxation.hpp"

namespace bridge {

enum class Outcome {
    FOUND,
    NONE,   // no choice keeps the cuts and has so little of the goal
    EFFORT, // not all was tried
};

// Looks for a choice that has at most so much of the goal; ends with the first one.
//
// Args: goal: a whole number for every choice. aim: how much of it. cuts: to be kept. proofs:
// further cuts, which follow from these. steps: widths looked at so far. until: the most that these
// may come to. found: the choice, one width for each job; unchanged if there is none.
Outcome look_for(const WidthJobs &jobs, const Weights &goal, double aim, const Priced &prices,
                 const std::vector<Cut> &cuts, const std::vector<Cut> &proofs, int64_t &steps,
                 int64_t until, std::vector<int64_t> &found);

} // namespace bridge
