// SPDX-License-Identifier: Apache-2.0
// Jobs that can run on several numbers of nodes, and sums over a choice of widths.
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
    const int64_t *now = nullptr;   // its present width, one of these; 0: it has none
    const int64_t *min_w = nullptr; // least power of each node, beyond that of an idle one
    const int64_t *max_w = nullptr; // greatest power, likewise
};

// Weights of the quantities of a choice of widths. A job with another width than now counts as one
// change, and the difference as changed nodes; a job without a present width counts as neither.
struct Weights {
    double nodes = 0;
    double max_w = 0;
    double min_w = 0;
    double changes = 0;
    double changed_nodes = 0;
};

// A constraint: the weighted sum of a choice is at most `limit`.
struct Cut {
    Weights weights;
    double limit = 0;
};

// One job's part of a weighted sum as a function of its width: linear on both sides of the present
// one.
struct JobCost {
    double slope;
    double change;
    double each;
    int64_t now;

    JobCost() : slope(0), change(0), each(0), now(0) {}
    JobCost(const WidthJobs &jobs, size_t job, const Weights &weights)
        : slope(weights.nodes + weights.max_w * static_cast<double>(jobs.max_w[job]) +
                weights.min_w * static_cast<double>(jobs.min_w[job])),
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

// The widths of a job, cheapest first. Those below and those above its present one are each in
// order, from one end or the other; the two sequences are merged.
class CheapestFirst {
  public:
    CheapestFirst() = default;
    CheapestFirst(const WidthJobs &jobs, size_t job, const Weights &weights);

    // The next width, or 0 if none is left. `cost`: its cost.
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

// The nearest allowed width.
int64_t nearest(const WidthJobs &jobs, size_t job, double width);

// The weighted sum of a choice.
double total(const WidthJobs &jobs, const std::vector<int64_t> &chosen, const Weights &weights);

} // namespace bridge
