// SPDX-License-Identifier: Apache-2.0
#include "corridor/repair.hpp"

#include <algorithm>
#include <numeric>

#include "corridor/relaxation.hpp"

namespace bridge {
namespace {

constexpr double ENOUGH = 0.95; // a pass must reduce the violation to this share
constexpr double HALF = 0.5;    // sums are whole numbers

// By how much sums violate the cuts, each in its own scale.
class Broken {
  public:
    Broken(const WidthJobs &jobs, const std::vector<Cut> &cuts) : cuts_(cuts) {
        for (const Cut &cut : cuts) {
            scale_.push_back(scale_of(jobs, cut.weights));
            std::vector<JobCost> costs;
            for (size_t job = 0; job < jobs.n; ++job) {
                costs.emplace_back(jobs, job, cut.weights);
            }
            costs_.push_back(std::move(costs));
        }
    }

    void begin_with(const std::vector<int64_t> &chosen) {
        sums_.assign(cuts_.size(), 0);
        for (size_t cut = 0; cut < cuts_.size(); ++cut) {
            for (size_t job = 0; job < chosen.size(); ++job) {
                sums_[cut] += costs_[cut][job].at(chosen[job]);
            }
        }
    }
    // The violation of the present choice, and with another width of one job.
    double now() const {
        double broken = 0;
        for (size_t cut = 0; cut < cuts_.size(); ++cut) {
            broken += beyond(cut, sums_[cut]);
        }
        return broken;
    }
    double with(size_t job, int64_t before, int64_t after) const {
        double broken = 0;
        for (size_t cut = 0; cut < cuts_.size(); ++cut) {
            const JobCost &cost = costs_[cut][job];
            broken += beyond(cut, sums_[cut] - cost.at(before) + cost.at(after));
        }
        return broken;
    }
    void change(size_t job, int64_t before, int64_t after) {
        for (size_t cut = 0; cut < cuts_.size(); ++cut) {
            sums_[cut] += costs_[cut][job].at(after) - costs_[cut][job].at(before);
        }
    }

  private:
    const std::vector<Cut> &cuts_;
    std::vector<double> scale_;
    std::vector<std::vector<JobCost>> costs_; // by cut and job
    std::vector<double> sums_;

    double beyond(size_t cut, double sum) const {
        const double over = sum - cuts_[cut].limit;
        return over < HALF ? 0 : over / scale_[cut];
    }
};

// Gives one job the width that reduces the violation most, and returns the remaining violation. The
// widths tried are at distances 1, 2, 4 and so on from the present one.
double mend_one(const WidthJobs &jobs, Broken &broken, size_t job, double now, int64_t &steps,
                std::vector<int64_t> &chosen) {
    const int64_t *first = jobs.widths + jobs.indptr[job];
    const int64_t *last = jobs.widths + jobs.indptr[job + 1] - 1;
    const int64_t *at = std::lower_bound(first, last, chosen[job]);
    double minimum = now * (1 - 1e-9);
    int64_t width = 0;
    const auto look = [&](const int64_t *other) {
        ++steps;
        const double there = broken.with(job, chosen[job], *other);
        if (there < minimum) {
            minimum = there;
            width = *other;
        }
    };
    for (int64_t by = 1; by <= last - at; by *= 2) {
        look(at + by);
    }
    look(last);
    for (int64_t by = 1; by <= at - first; by *= 2) {
        look(at - by);
    }
    if (jobs.now[job] > 0 && jobs.now[job] != chosen[job]) {
        look(std::lower_bound(first, last, jobs.now[job]));
    }
    if (width == 0) {
        return now;
    }
    broken.change(job, chosen[job], width);
    chosen[job] = width;
    return broken.now();
}

} // namespace

bool mend(const WidthJobs &jobs, const std::vector<Cut> &cuts, const Weights &first, int64_t &steps,
          std::vector<int64_t> &chosen) {
    Broken broken(jobs, cuts);
    broken.begin_with(chosen);
    std::vector<size_t> order(jobs.n);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return JobCost(jobs, a, first).slope < JobCost(jobs, b, first).slope;
    });
    double now = broken.now();
    while (now > 0) {
        const double before = now;
        for (size_t at = 0; at < jobs.n && now > 0; ++at) {
            now = mend_one(jobs, broken, order[at], now, steps, chosen);
        }
        if (now > before * ENOUGH) {
            return false;
        }
    }
    return true;
}

} // namespace bridge
