// SPDX-License-Identifier: Apache-2.0
// Repairs a choice that violates cuts: job by job, each gets the width that helps most.
#pragma once

#include <cstdint>
#include <vector>

#include "corridor/jobs.hpp"

namespace bridge {

// Whether `chosen` satisfies all cuts in the end.
//
// Args: first: jobs with the least weight per node come first. steps: widths tried so far.
bool mend(const WidthJobs &jobs, const std::vector<Cut> &cuts, const Weights &first, int64_t &steps,
          std::vector<int64_t> &chosen);

} // namespace bridge
