// SPDX-License-Identifier: Apache-2.0
#include "topology/window.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace bridge {
namespace {

class Search {
  public:
    Search(const Tree &tree, const HopMetric &metric, const std::vector<int32_t> &idle,
           const std::vector<int32_t> &sizes, const WindowEffort &effort)
        : tree_(tree), sizes_(sizes), effort_(effort), random_(effort.seed),
          packing_(tree, metric, idle,
                   sizes.empty() ? 1 : *std::max_element(sizes.begin(), sizes.end())),
          now_(sizes.size()), worth_(sizes.size(), 0) {
        for (size_t v = 0; v < tree.n_switches(); ++v) {
            if (tree.level()[v] == 1) {
                pods_.push_back(static_cast<int32_t>(v));
            }
        }
        found_.held.resize(sizes.size());
        found_.gain = -1;
    }

    WindowPlacement run(const std::vector<LeafCounts> &initial) {
        begin_with(initial);
        std::vector<int32_t> given(sizes_.size());
        std::iota(given.begin(), given.end(), 0);
        std::vector<int32_t> by_size = given;
        std::stable_sort(by_size.begin(), by_size.end(),
                         [&](int32_t a, int32_t b) { return sizes_[a] > sizes_[b]; });
        double hoped = 0; // sum of the gains of the jobs, each alone
        for (const int32_t job : given) {
            const double alone = packing_.gain(sizes_[job]);
            hoped += alone < 0 ? UNPLACED * sizes_[job] : alone / sizes_[job];
        }
        try_order(by_size);
        try_order(given);
        if (sizes_.size() > 1 && found_.gain < hoped - 1e-9) {
            if (static_cast<int32_t>(sizes_.size()) <= effort_.all_orders_up_to) {
                std::vector<int32_t> left = by_size;
                deepen(left, 0, 0);
            }
            improve(by_size);
        }
        return std::move(found_);
    }

  private:
    const Tree &tree_;
    const std::vector<int32_t> &sizes_;
    const WindowEffort &effort_;
    std::mt19937_64 random_;
    Packing packing_;
    std::vector<LeafCounts> now_; // the current node sets
    std::vector<double> worth_;   // gain / nodes of each
    std::vector<int32_t> pods_;
    WindowPlacement found_;

    // An unplaced job costs more than any placement could gain.
    static constexpr double UNPLACED = -1e12;

    bool spent() const { return effort_.steps > 0 && packing_.steps() >= effort_.steps; }
    uint64_t below(uint64_t n) { return random_() % n; }

    double put(int32_t job) {
        packing_.find(sizes_[job], now_[job]);
        if (now_[job].empty()) {
            return worth_[job] = UNPLACED * sizes_[job];
        }
        packing_.take(now_[job]);
        return worth_[job] = packing_.gain_of(now_[job]) / sizes_[job];
    }
    void remove(int32_t job) {
        packing_.give_back(now_[job]);
        now_[job].clear();
    }
    void keep_if_better(double gain) {
        if (gain > found_.gain + 1e-9 || found_.orders + found_.iterations == 0) {
            found_.gain = gain;
            found_.held = now_;
        }
    }
    void begin_with(const std::vector<LeafCounts> &initial) {
        if (initial.empty()) {
            return;
        }
        double gain = 0;
        for (size_t j = 0; j < initial.size(); ++j) {
            gain += initial[j].empty() ? UNPLACED * sizes_[j]
                                       : packing_.gain_of(initial[j]) / sizes_[j];
        }
        found_.gain = gain;
        found_.held = initial;
        ++found_.orders;
    }
    void try_order(const std::vector<int32_t> &order) {
        double gain = 0;
        for (const int32_t job : order) {
            gain += put(job);
        }
        keep_if_better(gain);
        ++found_.orders;
        for (const int32_t job : order) {
            remove(job);
        }
    }

    // All orders of the rest, equal sizes once, pruned where even the best set of each job alone
    // would not help.
    void deepen(std::vector<int32_t> &left, size_t depth, double gain) {
        if (depth == left.size()) {
            keep_if_better(gain);
            ++found_.orders;
            return;
        }
        double hoped = gain;
        for (size_t i = depth; i < left.size(); ++i) {
            const double alone = packing_.gain(sizes_[left[i]]);
            hoped += alone < 0 ? UNPLACED * sizes_[left[i]] : alone / sizes_[left[i]];
        }
        if (hoped <= found_.gain + 1e-9 || spent()) {
            return;
        }
        for (size_t i = depth; i < left.size(); ++i) {
            bool seen = false;
            for (size_t earlier = depth; earlier < i; ++earlier) {
                seen = seen || sizes_[left[earlier]] == sizes_[left[i]];
            }
            if (seen) {
                continue;
            }
            std::swap(left[depth], left[i]);
            const int32_t job = left[depth];
            const double more = put(job);
            deepen(left, depth + 1, gain + more);
            remove(job);
            std::swap(left[depth], left[i]);
        }
    }

    void price_pods(double maximum) {
        std::uniform_real_distribution<double> price(0, maximum);
        for (const int32_t pod : pods_) {
            packing_.set_price(pod, maximum > 0 && below(2) == 0 ? price(random_) : 0);
        }
    }

    void improve(const std::vector<int32_t> &by_size) {
        for (const int32_t job : by_size) { // from the best so far
            now_[job] = found_.held[job];
            packing_.take(now_[job]);
            worth_[job] = now_[job].empty() ? UNPLACED * sizes_[job]
                                            : packing_.gain_of(now_[job]) / sizes_[job];
        }
        double gain = std::accumulate(worth_.begin(), worth_.end(), 0.0);
        const size_t n = sizes_.size();
        std::vector<int32_t> taken(n), order(n);
        std::vector<LeafCounts> before(n);
        std::vector<double> worth_before(n);
        std::iota(taken.begin(), taken.end(), 0);
        while (!spent() && (effort_.iterations <= 0 || found_.iterations < effort_.iterations)) {
            if (effort_.steps <= 0 && effort_.iterations <= 0) {
                break;
            }
            const size_t k = std::min<size_t>(n, 2 + below(4));
            for (size_t i = 0; i < k; ++i) {
                std::swap(taken[i], taken[i + below(n - i)]);
            }
            order.assign(taken.begin(), taken.begin() + static_cast<ptrdiff_t>(k));
            if (below(3) == 0) {
                std::stable_sort(order.begin(), order.end(),
                                 [&](int32_t a, int32_t b) { return sizes_[a] > sizes_[b]; });
            }
            double out = 0, in = 0;
            for (const int32_t job : order) {
                before[job] = now_[job];
                worth_before[job] = worth_[job];
                out += worth_[job];
                remove(job);
            }
            const bool priced = !pods_.empty() && below(2) == 0;
            if (priced) {
                price_pods(40.0);
            }
            for (const int32_t job : order) {
                in += put(job);
            }
            if (in >= out - 1e-9) {
                gain += in - out;
                ++found_.iterations;
                keep_if_better(gain);
            } else {
                for (const int32_t job : order) {
                    remove(job);
                }
                for (const int32_t job : order) {
                    now_[job] = before[job];
                    worth_[job] = worth_before[job];
                    packing_.take(now_[job]);
                }
                ++found_.iterations;
            }
            if (priced) {
                price_pods(0);
            }
        }
    }
};

} // namespace

WindowPlacement compact(const Tree &tree, const HopMetric &metric, const std::vector<int32_t> &idle,
                        const std::vector<int32_t> &sizes, const WindowEffort &effort,
                        const std::vector<LeafCounts> &initial) {
    return Search(tree, metric, idle, sizes, effort).run(initial);
}

double compact_bound(const Tree &tree, const HopMetric &metric, const std::vector<int32_t> &idle,
                     const std::vector<int32_t> &sizes, int32_t rounds, double initial) {
    // Jobs of one size have the same best set at given prices.
    std::vector<int32_t> distinct = sizes;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    std::vector<int32_t> leaves;
    for (size_t v = 0; v < tree.n_switches(); ++v) {
        if (idle[v] > 0) {
            leaves.push_back(static_cast<int32_t>(v));
        }
    }
    std::vector<double> price(tree.n_switches(), 0), used(tree.n_switches());
    std::vector<Packing> solvers; // one per size: their prices are scaled by it
    for (const int32_t size : distinct) {
        solvers.emplace_back(tree, metric, idle, size, false);
    }
    double bound = std::numeric_limits<double>::infinity(), pace = 1.5;
    int32_t without_gain = 0;
    LeafCounts held;
    for (int32_t round = 0; round < rounds; ++round) {
        double value = 0;
        for (const int32_t leaf : leaves) {
            value += price[leaf] * idle[leaf];
        }
        std::fill(used.begin(), used.end(), 0);
        for (size_t s = 0; s < distinct.size(); ++s) {
            const auto jobs =
                static_cast<double>(std::count(sizes.begin(), sizes.end(), distinct[s]));
            for (const int32_t leaf : leaves) {
                solvers[s].set_price(leaf, price[leaf] * distinct[s]);
            }
            solvers[s].find(distinct[s], held);
            if (held.empty()) {
                continue;
            }
            double paid = 0;
            for (const auto &[leaf, count] : held) {
                paid += price[leaf] * count;
                used[leaf] += jobs * count;
            }
            value += jobs * (solvers[s].gain_of(held) / distinct[s] - paid);
        }
        if (value < bound - 1e-9) {
            bound = value;
            without_gain = 0;
        } else if (++without_gain >= 6) {
            pace /= 2;
            without_gain = 0;
        }
        double norm = 0;
        for (const int32_t leaf : leaves) {
            const double excess = used[leaf] - idle[leaf];
            if (excess > 0 || price[leaf] > 0) {
                norm += excess * excess;
            }
        }
        if (norm == 0 || bound <= initial + 1e-9) {
            break;
        }
        const double step = pace * std::max(value - initial, 1e-6) / norm;
        for (const int32_t leaf : leaves) {
            price[leaf] = std::max(0.0, price[leaf] + step * (used[leaf] - idle[leaf]));
        }
    }
    return bound;
}

} // namespace bridge
