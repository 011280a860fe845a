// SPDX-License-Identifier: Apache-2.0
// A lower bound on the cost of every order.
//
// One resource at a time is considered, summed over all nodes. Every second of it has a price, and
// each job takes the start that is cheapest for it alone, counting delay and resource. The sum of
// these costs, minus the price of the whole capacity, is a lower bound on the cost of any plan, at
// any prices (Lagrangian relaxation of the capacity). The first prices are those of fluid jobs
// served by cost per work; a few steps then adjust them to over- and undersubscription. The
// greatest bound over the resources is used.
#pragma once

#include <cstdint>
#include <vector>

#include "single_pass/node_problem.hpp"

namespace bridge {

struct OrderJobs;
using Cost = __int128;

// Args: min_start: by job, its earliest possible start; NEVER: it costs nothing. min_cost:
// there. start: of a good plan, whose cost is `cost`; the lead starts there in any case.
double order_bound(const NodeProblem &problem, const OrderJobs &jobs,
                   const std::vector<int64_t> &min_start, const std::vector<Cost> &min_cost,
                   const std::vector<int64_t> &start, double cost);

} // namespace bridge
