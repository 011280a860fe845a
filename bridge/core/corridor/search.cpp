// SPDX-License-Identifier: Apache-2.0
#include "corridor/search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

namespace bridge {
namespace {

constexpr double ROUNDING = 1e-9; // of a cut's limit

// How much worse the second-best width of a job is.
double regret_of(const WidthJobs &jobs, size_t job, const Weights &weights) {
    CheapestFirst widths(jobs, job, weights);
    double minimum = 0;
    double second = 0;
    widths.next(&minimum);
    return widths.next(&second) == 0 ? std::numeric_limits<double>::infinity() : second - minimum;
}

bool equal(const WidthJobs &jobs, size_t a, size_t b, bool whatever_now) {
    const int64_t n = jobs.indptr[a + 1] - jobs.indptr[a];
    return jobs.max_w[a] == jobs.max_w[b] && jobs.min_w[a] == jobs.min_w[b] &&
           (whatever_now || jobs.now[a] == jobs.now[b]) &&
           n == jobs.indptr[b + 1] - jobs.indptr[b] &&
           std::equal(jobs.widths + jobs.indptr[a], jobs.widths + jobs.indptr[a] + n,
                      jobs.widths + jobs.indptr[b]);
}

class Tree {
  public:
    Tree(const WidthJobs &jobs, const Weights &goal, double aim, const Priced &prices,
         const std::vector<Cut> &cuts, const std::vector<Cut> &proofs)
        : jobs_(jobs), prices_(prices) {
        cuts_.push_back({prices.weights, aim + prices.limit});
        cuts_.push_back({goal, aim});
        cuts_.insert(cuts_.end(), cuts.begin(), cuts.end());
        cuts_.insert(cuts_.end(), proofs.begin(), proofs.end());
        order_jobs();
        for (const Cut &cut : cuts_) {
            std::vector<JobCost> costs;
            std::vector<double> minimum(jobs.n + 1, 0);
            for (const size_t job : order_) {
                costs.emplace_back(jobs, job, cut.weights);
            }
            for (size_t level = jobs.n; level-- > 0;) {
                double cost = 0;
                cheapest(jobs, order_[level], cut.weights, &cost);
                minimum[level] = minimum[level + 1] + cost;
            }
            costs_.push_back(std::move(costs));
            minimum_.push_back(std::move(minimum));
        }
    }

    Outcome look(int64_t &steps, int64_t until, std::vector<int64_t> &found);

  private:
    const WidthJobs &jobs_;
    const Priced prices_;
    std::vector<Cut> cuts_;
    std::vector<size_t> order_;
    std::vector<char> like_last_;              // by level: equals the job of the level before
    std::vector<std::vector<JobCost>> costs_;  // by cut and level
    std::vector<std::vector<double>> minimum_; // by cut: least sum of the jobs from a level on

    void order_jobs();

    bool allows(size_t cut, size_t level, double sum) const {
        const double limit = cuts_[cut].limit;
        const double slack = ROUNDING * (1 + std::abs(limit) + std::abs(prices_.limit));
        return sum + minimum_[cut][level] <= limit + slack;
    }
};

void Tree::order_jobs() {
    std::vector<double> regret(jobs_.n);
    for (size_t job = 0; job < jobs_.n; ++job) {
        regret[job] = regret_of(jobs_, job, prices_.weights);
    }
    bool whatever_now = true;
    for (const Cut &cut : cuts_) {
        whatever_now &= cut.weights.changes == 0 && cut.weights.changed_nodes == 0;
    }
    order_.resize(jobs_.n);
    std::iota(order_.begin(), order_.end(), size_t{0});
    const auto key = [&](size_t job) {
        return std::make_tuple(-regret[job], jobs_.max_w[job], jobs_.min_w[job],
                               whatever_now ? 0 : jobs_.now[job],
                               jobs_.indptr[job + 1] - jobs_.indptr[job],
                               jobs_.widths[jobs_.indptr[job + 1] - 1], job);
    };
    std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
    like_last_.assign(jobs_.n, 0);
    for (size_t level = 1; level < jobs_.n; ++level) {
        like_last_[level] = equal(jobs_, order_[level - 1], order_[level], whatever_now);
    }
}

Outcome Tree::look(int64_t &steps, int64_t until, std::vector<int64_t> &found) {
    const size_t n = jobs_.n;
    const size_t n_cuts = cuts_.size();
    std::vector<CheapestFirst> widths(n);
    std::vector<int64_t> chosen(n, 0);
    std::vector<double> sums((n + 1) * n_cuts, 0);
    for (size_t cut = 0; cut < n_cuts; ++cut) {
        if (!allows(cut, 0, 0)) {
            return Outcome::NONE;
        }
    }
    size_t level = 0;
    widths[0] = CheapestFirst(jobs_, order_[0], cuts_[0].weights);
    for (;;) {
        if (++steps > until) {
            return Outcome::EFFORT;
        }
        double cost = 0;
        const int64_t width = widths[level].next(&cost);
        const double *before = &sums[level * n_cuts];
        if (width == 0 || !allows(0, level + 1, before[0] + cost)) { // later widths cost more
            if (level == 0) {
                return Outcome::NONE;
            }
            --level;
            continue;
        }
        if (like_last_[level] != 0 && width < chosen[level - 1]) {
            continue;
        }
        double *after = &sums[(level + 1) * n_cuts];
        bool allowed = true;
        for (size_t cut = 0; cut < n_cuts && allowed; ++cut) {
            after[cut] = before[cut] + (cut == 0 ? cost : costs_[cut][level].at(width));
            allowed = allows(cut, level + 1, after[cut]);
        }
        if (!allowed) {
            continue;
        }
        chosen[level] = width;
        if (++level < n) {
            widths[level] = CheapestFirst(jobs_, order_[level], cuts_[0].weights);
            continue;
        }
        for (size_t at = 0; at < n; ++at) {
            found[order_[at]] = chosen[at];
        }
        return Outcome::FOUND;
    }
}

} // namespace

Outcome look_for(const WidthJobs &jobs, const Weights &goal, double aim, const Priced &prices,
                 const std::vector<Cut> &cuts, const std::vector<Cut> &proofs, int64_t &steps,
                 int64_t until, std::vector<int64_t> &found) {
    return Tree(jobs, goal, aim, prices, cuts, proofs).look(steps, until, found);
}

} // namespace bridge
