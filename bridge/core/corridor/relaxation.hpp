// SPDX-License-Identifier: Apache-2.0
// Prices of what is scarce, so that every job can choose its width alone (Lagrangian relaxation).
#pragma once

#include <vector>

#include "corridor/jobs.hpp"

namespace bridge {

// The weights of the goal plus those of the cuts times their prices. Of these, every choice that
// keeps the cuts has at most its own goal plus `limit`; the sum of all jobs' least is a bound.
struct Priced {
    Weights weights;
    double limit = 0; // the limits of the cuts times their prices
    double bound = 0; // no choice that keeps the cuts has less of the goal
    // By job: its mean width as the prices approached their last values. The means nearly keep the
    // cuts, where the cheapest widths at any one set of prices do not (the volume algorithm).
    std::vector<double> mean;
};

// The most that one node, or one change, is of these weights: their unit, so to speak.
double scale_of(const WidthJobs &jobs, const Weights &weights);

// Args: goal: to be made small. cuts: to be kept. best: what the best known choice has of the goal;
// prices are improved no further once no choice can have 1 less.
Priced priced(const WidthJobs &jobs, const Weights &goal, const std::vector<Cut> &cuts,
              double best);

} // namespace bridge
