// SPDX-License-Identifier: Apache-2.0
#include "corridor/relaxation.hpp"

#include <algorithm>
#include <cmath>

namespace bridge {
namespace {

constexpr int STEPS = 400;
constexpr int PATIENCE = 6; // steps without a much better bound before the aim is lowered
constexpr double MEMORY = 0.1;
constexpr double CLOSE = 2e-3; // a smaller distance to the best bound does not matter

void add(Weights &to, const Weights &what, double times) {
    to.nodes += what.nodes * times;
    to.max_w += what.max_w * times;
    to.min_w += what.min_w * times;
    to.changes += what.changes * times;
    to.changed_nodes += what.changed_nodes * times;
}

// Widths of a job of which one is cheapest at any prices: the present one, and on each side of it
// the nearest and the outermost.
struct Corners {
    int64_t width[5];
    int count = 0;

    Corners(const WidthJobs &jobs, size_t job) {
        const int64_t *first = jobs.widths + jobs.indptr[job];
        const int64_t *last = jobs.widths + jobs.indptr[job + 1] - 1;
        const int64_t *at = std::lower_bound(first, last + 1, jobs.now[job]);
        const bool present = at <= last && *at == jobs.now[job];
        take(present ? jobs.now[job] : *first);
        take(*first);
        take(*last);
        if (at > first) {
            take(*(at - 1));
        }
        if (at + (present ? 1 : 0) <= last) {
            take(*(at + (present ? 1 : 0)));
        }
    }

  private:
    void take(int64_t which) {
        if (std::find(width, width + count, which) == width + count) {
            width[count++] = which;
        }
    }
};

class Prices {
  public:
    Prices(const WidthJobs &jobs, const Weights &goal, const std::vector<Cut> &cuts)
        : jobs_(jobs), goal_(goal), cuts_(cuts), price_(cuts.size(), 0), over_(cuts.size(), 0),
          mean_(jobs.n, 0) {
        for (const Cut &cut : cuts) {
            scale_.push_back(scale_of(jobs, cut.weights));
        }
        for (size_t job = 0; job < jobs.n; ++job) {
            corners_.emplace_back(jobs, job);
        }
    }

    const std::vector<double> &mean() const { return mean_; }
    const std::vector<double> &price() const { return price_; }
    void go_to(const std::vector<double> &price) { price_ = price; }

    // The bound at these prices; records by how much each cut is violated.
    Priced bound() {
        Priced found;
        found.weights = goal_;
        for (size_t k = 0; k < cuts_.size(); ++k) {
            add(found.weights, cuts_[k].weights, price_[k]);
            found.limit += cuts_[k].limit * price_[k];
        }
        double minimum = 0;
        Weights sums; // of the cheapest widths
        for (size_t job = 0; job < jobs_.n; ++job) {
            const JobCost cost(jobs_, job, found.weights);
            const Corners &corners = corners_[job];
            int64_t width = corners.width[0];
            double lowest = cost.at(width);
            for (int k = 1; k < corners.count; ++k) {
                const double here = cost.at(corners.width[k]);
                if (here < lowest) {
                    lowest = here;
                    width = corners.width[k];
                }
            }
            minimum += lowest;
            mean_[job] += share_ * (static_cast<double>(width) - mean_[job]);
            const auto nodes = static_cast<double>(width);
            sums.nodes += nodes;
            sums.max_w += nodes * static_cast<double>(jobs_.max_w[job]);
            sums.min_w += nodes * static_cast<double>(jobs_.min_w[job]);
            if (cost.now > 0 && width != cost.now) {
                sums.changes += 1;
                sums.changed_nodes += std::abs(nodes - static_cast<double>(cost.now));
            }
        }
        share_ = MEMORY;
        found.bound = minimum - found.limit;
        for (size_t k = 0; k < cuts_.size(); ++k) {
            const Weights &cut = cuts_[k].weights;
            over_[k] = cut.nodes * sums.nodes + cut.max_w * sums.max_w + cut.min_w * sums.min_w +
                       cut.changes * sums.changes + cut.changed_nodes * sums.changed_nodes -
                       cuts_[k].limit;
        }
        return found;
    }

    // A step towards a bound that is higher by `gap`; false: no change of prices can improve it.
    bool step(double gap) {
        double norm = 0;
        for (size_t k = 0; k < cuts_.size(); ++k) {
            if (over_[k] < 0 && price_[k] <= 0) {
                over_[k] = 0;
            }
            norm += over_[k] / scale_[k] * (over_[k] / scale_[k]);
        }
        if (norm <= 0) {
            return false;
        }
        for (size_t k = 0; k < cuts_.size(); ++k) {
            price_[k] += gap / norm * over_[k] / (scale_[k] * scale_[k]);
            price_[k] = std::max(price_[k], 0.0);
        }
        return true;
    }

  private:
    const WidthJobs &jobs_;
    const Weights goal_;
    const std::vector<Cut> &cuts_;
    std::vector<Corners> corners_;
    std::vector<double> price_;
    std::vector<double> scale_;
    std::vector<double> over_;
    std::vector<double> mean_;
    double share_ = 1; // weight of the latest widths in the mean
};

} // namespace

double scale_of(const WidthJobs &jobs, const Weights &weights) {
    double maximum = 0;
    for (size_t job = 0; job < jobs.n; ++job) {
        maximum = std::max(maximum, std::abs(JobCost(jobs, job, weights).slope));
    }
    return std::max({maximum, std::abs(weights.changes), std::abs(weights.changed_nodes), 1e-9});
}

Priced priced(const WidthJobs &jobs, const Weights &goal, const std::vector<Cut> &cuts,
              double best) {
    Prices prices(jobs, goal, cuts);
    Priced found = prices.bound();
    std::vector<double> where = prices.price();
    double gap = std::max(best - found.bound, 1.0); // from the present bound to the target
    int idle = 0;
    for (int step = 0; step < STEPS && found.bound <= best - 1 && gap > CLOSE; ++step) {
        Priced now = prices.bound();
        const double gained = now.bound - found.bound;
        if (gained > 0) {
            found = now;
            where = prices.price();
        }
        idle = gained > gap / 8 ? 0 : idle + 1;
        if (idle >= PATIENCE) {
            idle = 0;
            gap /= 2;
            prices.go_to(where);
            now = prices.bound();
        }
        if (!prices.step(found.bound + gap - now.bound)) {
            break;
        }
    }
    found.mean = prices.mean();
    return found;
}

} // namespace bridge
