// SPDX-License-Identifier: Apache-2.0
// What no order can go below.
//
// Of one resource at a time, summed over all nodes: a second of it has a price, and every job takes
// the start that is cheapest for it alone, delay and resource together. Less what all there is
// would fetch, that is no more than any plan costs, whatever the prices (Lagrangian relaxation of
// the capacity). The prices begin as those of fluid jobs, which are served by cost per work, and
// follow for a few steps what is over- and undersubscribed. The greatest bound over the resources
// counts.
#pragma once

#include <cstdint>
#include <vector>

#include "single_pass/node_problem.hpp"

namespace bridge {

struct OrderJobs;

// Args: least_start: by job, before which it cannot start; NEVER: it costs nothing. start: of a
// good plan, whose cost is `cost`; the lead starts there in any case.
double order_bound(const NodeProblem &problem, const OrderJobs &jobs,
                   const std::vector<int64_t> &least_start, const std::vector<int64_t> &start,
                   double cost);

} // namespace bridge
