// SPDX-License-Identifier: Apache-2.0
// Mends a choice that breaks cuts: job by job, each gets the width that helps most.
#pragma once

#include <cstdint>
#include <vector>

#include "corridor/jobs.hpp"

namespace bridge {

// Whether `chosen` keeps all cuts in the end.
//
// Args: first: jobs whose nodes have least of these come first. steps: widths looked at so far.
bool mend(const WidthJobs &jobs, const std::vector<Cut> &cuts, const Weights &first, int64_t &steps,
          std::vector<int64_t> &chosen);

} // namespace bridge
