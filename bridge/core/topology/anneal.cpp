// SPDX-License-Identifier: Apache-2.0
#include "topology/anneal.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

namespace bridge {
namespace {

// The cost of a job across two fabrics: more than any other, and still finite.
constexpr double APART = 1e12;

// The cost of a job on some positions, from counts below each switch, leaf by leaf.
class RunCost {
  public:
    RunCost(const Tree &tree, const HopMetric &metric, const IdleSequence &sequence)
        : parent_(tree.parent()), metric_(metric), weights_(switch_weights(tree, metric)),
          count_(tree.n_switches(), 0), top_(metric.hops[tree.highest_level()]) {
        for (const int32_t node : sequence.nodes) {
            leaf_.push_back(tree.leaf_of_node()[node]);
            root_.push_back(tree.root()[leaf_.back()]);
        }
    }

    double of(const std::vector<int32_t> &positions) {
        const auto n = static_cast<int64_t>(positions.size());
        int64_t saved = 0;
        bool apart = false;
        seen_.clear();
        for (size_t i = 0; i < positions.size();) {
            const int32_t leaf = leaf_[positions[i]];
            apart = apart || root_[positions[i]] != root_[positions[0]];
            int64_t here = 0;
            do {
                ++here;
                ++i;
            } while (i < positions.size() && leaf_[positions[i]] == leaf);
            seen_.push_back(leaf);
            for (int32_t v = leaf; v >= 0; v = parent_[v]) {
                saved += weights_[v] * here * (2 * count_[v] + here); // (c + here)^2 - c^2
                count_[v] += here;
            }
        }
        for (const int32_t leaf : seen_) {
            for (int32_t v = leaf; v >= 0; v = parent_[v]) {
                count_[v] = 0;
            }
        }
        if (apart) {
            return APART;
        }
        const int64_t pairs = top_ * n * n - metric_.hops[0] * n - saved;
        const double paid = static_cast<double>(metric_.unit) *
                            static_cast<double>(metric_.ordered ? pairs : pairs / 2) /
                            static_cast<double>(n);
        return metric_.floored ? std::floor(paid) : paid;
    }

  private:
    const std::vector<int32_t> &parent_;
    const HopMetric &metric_;
    std::vector<int64_t> weights_, count_;
    std::vector<int32_t> leaf_, root_, seen_;
    int64_t top_;
};

// The jobs of a window, where they are now, and the idle positions.
class Jobs {
  public:
    Jobs(RunCost &costs, size_t n_positions, ContiguousPlacement placed)
        : costs_(costs), now_(std::move(placed)), busy_(n_positions, 0), key_of_(n_positions) {
        std::mt19937_64 keys(1);
        std::generate(key_of_.begin(), key_of_.end(), std::ref(keys));
        for (const auto &positions : now_) {
            paid_.push_back(costs_.of(positions));
            cost_ += paid_.back();
            mark(positions, 1);
        }
        idle_.reserve(n_positions);
    }

    double cost() const { return cost_; }
    double paid(int32_t job) const { return paid_[job]; }
    const ContiguousPlacement &placed() const { return now_; }
    const std::vector<int32_t> &positions(int32_t job) const { return now_[job]; }
    uint64_t key() const { return key_; }

    void take_out(int32_t job) {
        mark(now_[job], 0);
        cost_ -= paid_[job];
    }
    const std::vector<int32_t> &idle() {
        idle_.resize(busy_.size());
        size_t n = 0;
        for (size_t i = 0; i < busy_.size(); ++i) {
            idle_[n] = static_cast<int32_t>(i);
            n += busy_[i] == 0 ? 1 : 0;
        }
        idle_.resize(n);
        return idle_;
    }
    // As a run of idle(), starting at index `first`.
    void put_back(int32_t job, size_t first) {
        for (int32_t &position : now_[job]) {
            position = idle_[first];
            first = first + 1 == idle_.size() ? 0 : first + 1;
        }
        mark(now_[job], 1);
        paid_[job] = costs_.of(now_[job]);
        cost_ += paid_[job];
    }
    // Back where it was, once it is removed again.
    void restore(int32_t job, const std::vector<int32_t> &positions, double paid) {
        now_[job] = positions;
        paid_[job] = paid;
        mark(positions, 1);
    }
    void forget(int32_t job) { mark(now_[job], 0); }
    void set_cost(double cost) { cost_ = cost; }

  private:
    RunCost &costs_;
    ContiguousPlacement now_;
    std::vector<double> paid_;
    std::vector<uint8_t> busy_;
    std::vector<uint64_t> key_of_;
    std::vector<int32_t> idle_;
    double cost_ = 0;
    uint64_t key_ = 0;

    void mark(const std::vector<int32_t> &positions, uint8_t busy) {
        for (const int32_t i : positions) {
            busy_[i] = busy;
            key_ ^= key_of_[i];
        }
    }
};

} // namespace

ContiguousPlacement contiguous_anneal(const Tree &tree, const HopMetric &metric,
                                      const IdleSequence &sequence,
                                      const std::vector<int32_t> &sizes, const AnnealEffort &effort,
                                      Chooser &chooser) {
    ContiguousPlacement first = contiguous_sequential(sequence, sizes);
    const size_t n_jobs = sizes.size();
    if (n_jobs == 0 ||
        std::accumulate(sizes.begin(), sizes.end(), size_t{0}) > sequence.nodes.size()) {
        return first;
    }
    RunCost costs(tree, metric, sequence);
    Jobs window(costs, sequence.nodes.size(), std::move(first));
    std::mt19937_64 random(effort.seed);
    std::uniform_real_distribution<double> chance(0, 1);
    ContiguousPlacement best = window.placed();
    double minimum = window.cost();
    std::vector<int32_t> jobs(n_jobs);
    std::iota(jobs.begin(), jobs.end(), 0);
    const double cooling = -std::log(effort.hottest / effort.coldest);
    const auto maximum =
        std::min<size_t>(n_jobs, static_cast<size_t>(std::max(effort.most_removed, 1)));
    std::vector<std::vector<int32_t>> before(maximum);
    std::vector<double> paid_before(maximum);
    for (int64_t t = 0; t < effort.iterations; ++t) {
        const size_t removed = 1 + random() % maximum;
        for (size_t i = 0; i < removed; ++i) {
            std::swap(jobs[i], jobs[i + random() % (n_jobs - i)]);
        }
        std::sort(jobs.begin(), jobs.begin() + static_cast<ptrdiff_t>(removed),
                  [&](int32_t a, int32_t b) {
                      return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : a < b;
                  });
        const double cost_before = window.cost();
        int64_t others = 0;
        for (size_t i = 0; i < removed; ++i) {
            before[i] = window.positions(jobs[i]);
            paid_before[i] = window.paid(jobs[i]);
            others += sizes[jobs[i]];
            window.take_out(jobs[i]);
        }
        for (size_t i = 0; i < removed; ++i) {
            const int32_t job = jobs[i];
            others -= sizes[job];
            const Repair repair{window.idle(),
                                window.key(),
                                sizes[job],
                                others,
                                static_cast<int32_t>(removed - i - 1),
                                static_cast<double>(t) / static_cast<double>(effort.iterations)};
            window.put_back(job, chooser.first(repair, random));
        }
        if (window.cost() < minimum) {
            minimum = window.cost();
            best = window.placed();
        }
        const double heat = effort.hottest * std::exp(cooling * static_cast<double>(t) /
                                                      static_cast<double>(effort.iterations));
        const bool accepted = window.cost() < cost_before ||
                              chance(random) < std::exp((cost_before - window.cost()) / heat);
        if (accepted || !effort.restore) {
            continue;
        }
        for (size_t i = 0; i < removed; ++i) {
            window.forget(jobs[i]);
        }
        for (size_t i = 0; i < removed; ++i) {
            window.restore(jobs[i], before[i], paid_before[i]);
        }
        window.set_cost(cost_before);
    }
    return best;
}

} // namespace bridge
