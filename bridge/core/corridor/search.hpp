// SPDX-License-Identifier: Apache-2.0
// Depth-first branch and bound over the widths of jobs.
//
// Jobs are decided one after the other. First come those whose second-best width is much worse at
// the prices of the relaxation: they seldom change, and the search takes place among the others. A
// branch ends where no widths of the remaining jobs satisfy one of the cuts. Of equal jobs, the
// later one has no fewer nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "corridor/jobs.hpp"
#include "corridor/relaxation.hpp"

namespace bridge {

enum class Outcome {
    FOUND,
    NONE,   // no choice satisfies the cuts and reaches the aim
    EFFORT, // the effort ended first
};

// Finds the first choice whose goal is at most `aim`.
//
// Args: goal: a whole number for every choice. cuts: to be satisfied. proofs: further cuts that
// follow from these. steps: widths tried so far. until: the limit of these. found: the choice, one
// width for each job; unchanged if there is none.
Outcome look_for(const WidthJobs &jobs, const Weights &goal, double aim, const Priced &prices,
                 const std::vector<Cut> &cuts, const std::vector<Cut> &proofs, int64_t &steps,
                 int64_t until, std::vector<int64_t> &found);

} // namespace bridge
