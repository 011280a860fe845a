// SPDX-License-Identifier: Apache-2.0
// Prices of scarce quantities, with which every job chooses its width alone (Lagrangian
// relaxation).
#pragma once

#include <vector>

#include "corridor/jobs.hpp"

namespace bridge {

// The weights of the goal plus those of the cuts times their prices. The weighted sum of a choice
// that satisfies the cuts is at most its goal plus `limit`; hence the sum of all jobs' least costs,
// minus `limit`, is a lower bound on the goal.
struct Priced {
    Weights weights;
    double limit = 0; // the limits of the cuts times their prices
    double bound = 0; // no choice that satisfies the cuts has less of the goal
    // By job: its mean width while the prices approached their last values. The means nearly
    // satisfy the cuts; the cheapest widths at any one set of prices do not (the volume algorithm).
    std::vector<double> mean;
};

// The greatest weight of one node or one change: the unit of these weights.
double scale_of(const WidthJobs &jobs, const Weights &weights);

// Args: goal: to be minimised. cuts: to be satisfied. best: the goal of the best known choice; the
// iteration ends when no choice can be better by 1.
Priced priced(const WidthJobs &jobs, const Weights &goal, const std::vector<Cut> &cuts,
              double best);

} // namespace bridge
