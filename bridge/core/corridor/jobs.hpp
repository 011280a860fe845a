// SPDX-License-Identifier: Apache-2.0
// Jobs that could run on several numbers of nodes, and what a choice of these adds up to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bridge {

// Job i may have widths[indptr[i]:indptr[i + 1]], ascending, at least one.
struct WidthJobs {
    size_t n = 0;
    const int64_t *indptr = nullptr;
    const int64_t *widths = nullptr;
    const int64_t *now = nullptr;     // its present width, one of them; 0: it has none
    const int64_t *least_w = nullptr; // of each of its nodes, beyond the power of an idle one
    const int64_t *most_w = nullptr;
};

// Numbers that belong to a choice of widths, weighted. With another width than now a job counts as
// one change, and the difference as changed nodes; a job without a present width counts as neither.
struct Weights {
    double nodes = 0;
    double most_w = 0;
    double least_w = 0;
    double changes = 0;
    double changed_nodes = 0;
};

// No wanted choice has more than `limit` of these.
struct Cut {
    Weights weights;
    double limit = 0;
};

// What one job adds, as a function of its width: linear on both sides of its present one.
struct JobCost {
    double slope;
    double change;
    double each;
    int64_t now;

    JobCost() : slope(0), change(0), each(0), now(0) {}
    JobCost(const WidthJobs &jobs, size_t job, const Weights &weights)
        : slope(weights.nodes + weights.most_w * static_cast<double>(jobs.most_w[job]) +
                weights.least_w * static_cast<double>(jobs.least_w[job])),
          change(jobs.now[job] > 0 ? weights.changes : 0),
          each(jobs.now[job] > 0 ? weights.changed_nodes : 0), now(jobs.now[job]) {}

    double at(int64_t width) const {
        const double nodes = slope * static_cast<double>(width);
        if (width == now || now == 0) {
            return nodes;
        }
        return nodes + change + each * static_cast<double>(width > now ? width - now : now - width);
    }
};

// The widths of a job, cheapest first: those below and those above its present one are in order
// already, from one of their ends.
class CheapestFirst {
  public:
    CheapestFirst() = default;
    CheapestFirst(const WidthJobs &jobs, size_t job, const Weights &weights);

    // The next width, or 0: there is none left. `cost`: what it costs.
    int64_t next(double *cost);

  private:
    struct Side {
        const int64_t *at = nullptr;
        int64_t left = 0;
        int step = 1;
    };
    JobCost cost_;
    Side sides_[2];
    bool present_ = false; // the present width is still to come
};

// Its cheapest width. O(log widths)
int64_t cheapest(const WidthJobs &jobs, size_t job, const Weights &weights, double *cost);

// The allowed width that is nearest.
int64_t nearest(const WidthJobs &jobs, size_t job, double width);

// What a choice adds up to.
double total(const WidthJobs &jobs, const std::vector<int64_t> &chosen, const Weights &weights);

} // namespace bridge
