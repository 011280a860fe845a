// SPDX-License-Identifier: Apache-2.0
#include "corridor/jobs.hpp"

#include <algorithm>
#include <limits>

namespace bridge {

CheapestFirst::CheapestFirst(const WidthJobs &jobs, size_t job, const Weights &weights)
    : cost_(jobs, job, weights) {
    const int64_t *first = jobs.widths + jobs.indptr[job];
    const int64_t *end = jobs.widths + jobs.indptr[job + 1];
    const int64_t *at = std::lower_bound(first, end, cost_.now);
    present_ = at != end && *at == cost_.now;
    const int64_t *above = at + (present_ ? 1 : 0);
    // At equal cost, those next to the present width come first.
    const bool narrow = cost_.slope - cost_.each > 0;
    const bool wide = cost_.slope + cost_.each < 0;
    sides_[0] = {narrow || at == first ? first : at - 1, at - first, narrow ? 1 : -1};
    sides_[1] = {wide ? end - 1 : above, end - above, wide ? -1 : 1};
}

int64_t CheapestFirst::next(double *cost) {
    Side *best = nullptr;
    double minimum = std::numeric_limits<double>::infinity();
    if (present_) {
        minimum = cost_.at(cost_.now);
    }
    for (Side &side : sides_) {
        if (side.left > 0 && cost_.at(*side.at) < minimum) {
            minimum = cost_.at(*side.at);
            best = &side;
        }
    }
    *cost = minimum;
    if (best != nullptr) {
        const int64_t width = *best->at;
        if (--best->left > 0) {
            best->at += best->step;
        }
        return width;
    }
    if (present_) {
        present_ = false;
        return cost_.now;
    }
    return 0;
}

int64_t cheapest(const WidthJobs &jobs, size_t job, const Weights &weights, double *cost) {
    return CheapestFirst(jobs, job, weights).next(cost);
}

int64_t nearest(const WidthJobs &jobs, size_t job, double width) {
    const int64_t *first = jobs.widths + jobs.indptr[job];
    const int64_t *last = jobs.widths + jobs.indptr[job + 1] - 1;
    const int64_t *above = std::lower_bound(first, last, static_cast<int64_t>(width));
    while (above < last && static_cast<double>(*above) < width) {
        ++above;
    }
    const bool below = above > first && width - static_cast<double>(*(above - 1)) <
                                            static_cast<double>(*above) - width;
    return below ? *(above - 1) : *above;
}

double total(const WidthJobs &jobs, const std::vector<int64_t> &chosen, const Weights &weights) {
    double sum = 0;
    for (size_t job = 0; job < jobs.n; ++job) {
        sum += JobCost(jobs, job, weights).at(chosen[job]);
    }
    return sum;
}

} // namespace bridge
