// SPDX-License-Identifier: Apache-2.0
#include "corridor/choose_widths.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "corridor/relaxation.hpp"
#include "corridor/repair.hpp"
#include "corridor/search.hpp"

namespace bridge {
namespace {

constexpr double ANY = -std::numeric_limits<double>::infinity();
constexpr int GOALS = 4;      // that need a search: power, nodes, jobs, changed nodes
constexpr int SLICES = 8;     // of the effort for a goal
constexpr int64_t QUICK = 20; // widths per job that a first search tries before repairs
constexpr double ROUNDING = 1e-6;

constexpr Weights NODES{1, 0, 0, 0, 0};
constexpr Weights MAX_W{0, 1, 0, 0, 0};
constexpr Weights MIN_W{0, 0, 1, 0, 0};
constexpr Weights MORE_NODES{-1, 0, 0, 0, 0};
constexpr Weights MORE_W{0, 0, -1, 0, 0};
constexpr Weights CHANGES{0, 0, 0, 1, 0};
constexpr Weights CHANGED_NODES{0, 0, 0, 0, 1};

class Choice {
  public:
    Choice(const WidthJobs &jobs, int64_t effort) : jobs_(jobs), effort_(effort) {}

    void begin_with(std::vector<int64_t> widths) { best_ = std::move(widths); }
    void keep(const Weights &weights, double limit) { cuts_.push_back({weights, limit}); }
    double has(const Weights &weights) const { return total(jobs_, best_, weights); }
    const std::vector<int64_t> &best() const { return best_; }
    int64_t steps() const { return steps_; }
    bool proven() const { return proven_; }

    // Minimises the goal, down to `enough`. Effort that earlier goals did not use is available to
    // later ones.
    void aim(const Weights &goal, double enough) {
        const int64_t until = effort_ / GOALS * ++aims_;
        double best = std::round(has(goal));
        if (best <= enough) {
            return;
        }
        const Priced prices = priced(jobs_, goal, cuts_, best);
        const double minimum = std::max(std::ceil(prices.bound - ROUNDING), enough);
        // The aim begins at the bound and moves away in growing steps: the closer it is, the more
        // choices are pruned.
        double untried = minimum;
        double gap = 0;
        while (untried < best) {
            const double aim = std::min(untried + gap, best - 1);
            const auto look = [&](int64_t maximum) {
                return look_for(jobs_, goal, aim, prices, cuts_, proofs_, steps_,
                                std::min(until, steps_ + maximum), best_);
            };
            Outcome outcome = look(QUICK * size());
            if (outcome == Outcome::EFFORT && untried == minimum) {
                const int64_t before = steps_;
                halve(goal, aim, best, prices);
                best = std::round(has(goal));
                steps_ = before + (steps_ - before) / 4; // steps of a repair are cheap
                if (best <= aim) {
                    continue;
                }
            }
            if (outcome == Outcome::EFFORT) {
                outcome = look(effort_ / GOALS / SLICES);
            }
            if (outcome == Outcome::FOUND) {
                best = std::round(has(goal));
                gap = std::floor(gap / 4);
                continue;
            }
            proven_ &= outcome == Outcome::NONE;
            untried = aim + 1;
            gap = 2 * gap + (outcome == Outcome::EFFORT ? 1 : 0);
            if (steps_ >= until) {
                proven_ = false;
                break;
            }
        }
        // Later choices must not have more of this goal; its prices give a valid cut.
        proofs_.push_back({prices.weights, std::max(best, enough) + prices.limit});
    }

  private:
    const WidthJobs &jobs_;
    const int64_t effort_;
    int aims_ = 0;
    std::vector<Cut> cuts_;
    std::vector<Cut> proofs_;
    std::vector<int64_t> best_;

    // Repairs choices with less and less of the goal, halving the gap each time.
    void halve(const Weights &goal, double aim, double best, const Priced &prices) {
        double failed = aim - 1;
        for (double next = aim; failed < next && next < best;
             next = std::floor((failed + best) / 2)) {
            if (mended(goal, next, prices)) {
                best = std::round(has(goal));
            } else {
                failed = next;
            }
        }
    }
    // Whether the mean widths of the relaxation, the best so far, the least or the present ones can
    // be repaired.
    bool mended(const Weights &goal, double aim, const Priced &prices) {
        std::vector<Cut> cuts = cuts_;
        cuts.push_back({goal, aim});
        std::vector<int64_t> mean(jobs_.n);
        std::vector<int64_t> now(jobs_.n);
        for (size_t job = 0; job < jobs_.n; ++job) {
            mean[job] = nearest(jobs_, job, prices.mean[job]);
            now[job] = nearest(jobs_, job, static_cast<double>(jobs_.now[job]));
        }
        std::vector<int64_t> minimum(jobs_.n);
        for (size_t job = 0; job < jobs_.n; ++job) {
            minimum[job] = jobs_.widths[jobs_.indptr[job]];
        }
        std::vector<int64_t> best = best_;
        if (mend(jobs_, cuts, prices.weights, steps_, mean)) {
            best_ = std::move(mean);
        } else if (mend(jobs_, cuts, MAX_W, steps_, best)) {
            best_ = std::move(best);
        } else if (mend(jobs_, cuts, MAX_W, steps_, minimum)) {
            best_ = std::move(minimum);
        } else if (mend(jobs_, cuts, {}, steps_, now)) {
            best_ = std::move(now);
        } else {
            return false;
        }
        return true;
    }
    int64_t size() const { return static_cast<int64_t>(jobs_.n); }
    int64_t steps_ = 0;
    bool proven_ = true;
};

} // namespace

WidthsFound choose_widths(const WidthJobs &jobs, const WidthRoom &room, int64_t effort) {
    WidthsFound found;
    std::vector<int64_t> minimum(jobs.n);
    for (size_t job = 0; job < jobs.n; ++job) {
        minimum[job] = jobs.widths[jobs.indptr[job]];
    }
    Choice choice(jobs, effort);
    choice.begin_with(std::move(minimum));
    if (choice.has(NODES) > static_cast<double>(room.nodes)) {
        return found;
    }
    choice.keep(NODES, static_cast<double>(room.nodes));
    const double upper_w = std::max(static_cast<double>(room.upper_w), choice.has(MAX_W));
    found.over_w = static_cast<int64_t>(upper_w) - room.upper_w;
    choice.keep(MAX_W, upper_w);

    const double lower_w = static_cast<double>(room.lower_w);
    choice.aim(MORE_W, -lower_w);
    const double reached_w = std::min(choice.has(MIN_W), lower_w);
    choice.keep(MORE_W, -reached_w);

    choice.aim(MORE_NODES, -static_cast<double>(room.nodes));
    choice.keep(MORE_NODES, choice.has(MORE_NODES));
    found.proven = choice.proven();
    choice.aim(CHANGES, 0);
    choice.keep(CHANGES, choice.has(CHANGES));
    choice.aim(CHANGED_NODES, ANY);

    found.under_w = static_cast<int64_t>(
        std::max(lower_w - choice.has(MIN_W), 0.0)); // later goals may have reduced it
    found.width = choice.best();
    found.steps = choice.steps();
    found.settled = choice.proven();
    return found;
}

} // namespace bridge
