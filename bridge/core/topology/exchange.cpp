// SPDX-License-Identifier: Apache-2.0
#include "topology/exchange.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace bridge {
namespace {

class NodeExchange {
  public:
    NodeExchange(const Tree &tree, const HopMetric &metric, const std::vector<Seat> &seats,
                 const std::vector<int32_t> &maximum, const ExchangeEffort &effort)
        : seats_(seats), effort_(effort), random_(effort.seed),
          weights_(switch_weights(tree, metric)), paths_(tree.n_switches()),
          n_switches_(tree.n_switches()), count_(maximum.size() * tree.n_switches(), 0),
          size_(maximum.size(), 0), leaves_(maximum.size(), 0), maximum_(maximum) {
        for (const int64_t weight : weights_) {
            heaviest_ = std::max(heaviest_, static_cast<double>(weight));
        }
        int32_t kinds = 0;
        for (const Seat &seat : seats_) {
            std::vector<int32_t> &path = paths_[seat.leaf];
            for (int32_t v = path.empty() ? seat.leaf : -1; v >= 0; v = tree.parent()[v]) {
                path.push_back(v);
            }
            kinds = std::max(kinds, seat.kind + 1);
        }
        for (const Seat &seat : seats_) {
            if (seat.holder >= 0) {
                add(seat.holder, seat.leaf, 1);
                ++size_[seat.holder];
            }
        }
        for (size_t job = 0; job < maximum_.size(); ++job) {
            if (maximum_[job] > 0) {
                maximum_[job] = std::max(maximum_[job], leaves_[job]);
            }
        }
        of_kind_.resize(static_cast<size_t>(kinds));
        for (size_t i = 0; i < seats_.size(); ++i) {
            const Seat &seat = seats_[i];
            if (seat.kind < 0) {
                continue;
            }
            of_kind_[seat.kind].push_back(i);
            if (seat.holder >= 0 && size_[seat.holder] > 1) {
                wide_.push_back(i);
            }
        }
    }

    std::vector<int32_t> run() {
        std::vector<int32_t> best = holders();
        if (wide_.empty()) {
            return best;
        }
        anneal(best);
        for (size_t i = 0; i < seats_.size(); ++i) {
            hand_over(i, best[i]);
        }
        descend();
        return holders();
    }

  private:
    static constexpr double GAIN = 1e-9;          // smaller gains are rounding errors
    static constexpr size_t MAX_PAIRS = 1U << 17; // visited in one round of the descent
    static constexpr int MAX_ROUNDS = 50;

    std::vector<Seat> seats_;
    const ExchangeEffort &effort_;
    std::mt19937_64 random_;
    std::vector<int64_t> weights_;
    std::vector<std::vector<int32_t>> paths_; // from a leaf to its root
    size_t n_switches_;
    std::vector<int64_t> count_; // nodes of each job below each switch
    std::vector<int64_t> size_;
    std::vector<int32_t> leaves_; // number of leaf switches of each job
    std::vector<int32_t> maximum_;
    std::vector<std::vector<size_t>> of_kind_;
    std::vector<size_t> wide_; // seats initially held by jobs of two nodes or more
    double heaviest_ = 1;

    uint64_t below(uint64_t n) { return random_() % n; }

    std::vector<int32_t> holders() const {
        std::vector<int32_t> found;
        found.reserve(seats_.size());
        for (const Seat &seat : seats_) {
            found.push_back(seat.holder);
        }
        return found;
    }
    int64_t &count(int32_t job, int32_t v) {
        return count_[static_cast<size_t>(job) * n_switches_ + static_cast<size_t>(v)];
    }
    void add(int32_t job, int32_t leaf, int64_t nodes) {
        leaves_[job] -= count(job, leaf) > 0;
        for (const int32_t v : paths_[leaf]) {
            count(job, v) += nodes;
        }
        leaves_[job] += count(job, leaf) > 0;
    }
    void hand_over(size_t seat, int32_t holder) {
        Seat &own = seats_[seat];
        if (own.holder >= 0) {
            add(own.holder, own.leaf, -1);
        }
        own.holder = holder;
        if (holder >= 0) {
            add(holder, own.leaf, 1);
        }
    }
    void swap(size_t a, size_t b) {
        const int32_t of_a = seats_[a].holder, of_b = seats_[b].holder;
        hand_over(a, of_b);
        hand_over(b, of_a);
    }

    // The gain of a job from one node under leaf `to` in place of one under `from`; minus infinity
    // if that is not allowed.
    double gain(int32_t job, int32_t from, int32_t to) {
        if (job < 0) {
            return 0;
        }
        if (maximum_[job] > 0) {
            const int32_t leaves = leaves_[job] - (count(job, from) == 1) + (count(job, to) == 0);
            if (leaves > maximum_[job]) {
                return -INFINITY;
            }
        }
        const std::vector<int32_t> &left = paths_[from], &right = paths_[to];
        size_t i = left.size(), j = right.size();
        if (left.back() != right.back()) {
            return -INFINITY; // another fabric
        }
        while (i > 0 && j > 0 && left[i - 1] == right[j - 1]) {
            --i, --j;
        }
        int64_t more = 0;
        for (size_t k = 0; k < i; ++k) {
            more += weights_[left[k]] * (1 - 2 * count(job, left[k]));
        }
        for (size_t k = 0; k < j; ++k) {
            more += weights_[right[k]] * (1 + 2 * count(job, right[k]));
        }
        return static_cast<double>(more) / static_cast<double>(size_[job]);
    }
    double gain_of_swap(size_t a, size_t b) {
        const Seat &one = seats_[a], &other = seats_[b];
        if (one.holder == other.holder || one.leaf == other.leaf) {
            return -INFINITY;
        }
        return gain(one.holder, one.leaf, other.leaf) + gain(other.holder, other.leaf, one.leaf);
    }

    void anneal(std::vector<int32_t> &best) {
        if (effort_.moves <= 0) {
            return;
        }
        const double hottest = 2 * heaviest_, coldest = 0.02 * heaviest_;
        const double cooling =
            std::pow(coldest / hottest, 1.0 / static_cast<double>(effort_.moves));
        std::uniform_real_distribution<double> chance(0, 1);
        double heat = hottest, saved = 0, max_saved = 0;
        for (int64_t move = 0; move < effort_.moves; ++move, heat *= cooling) {
            const size_t pick = below(wide_.size());
            const size_t a = wide_[pick];
            const std::vector<size_t> &alike = of_kind_[seats_[a].kind];
            const size_t b = alike[below(alike.size())];
            const double more = gain_of_swap(a, b);
            if (more == -INFINITY || (more < 0 && chance(random_) >= std::exp(more / heat))) {
                continue;
            }
            swap(a, b);
            // The job that held a now holds b; if another wide one came to a, b is known, too.
            if (seats_[a].holder < 0 || size_[seats_[a].holder] < 2) {
                wide_[pick] = b;
            }
            saved += more;
            if (saved > max_saved + GAIN) {
                max_saved = saved;
                best = holders();
            }
        }
    }

    void descend() {
        size_t pairs = 0;
        for (const auto &alike : of_kind_) {
            pairs += alike.size() * alike.size() / 2;
        }
        bool gained = pairs <= MAX_PAIRS;
        for (int round = 0; gained && round < MAX_ROUNDS; ++round) {
            gained = false;
            for (const auto &alike : of_kind_) {
                for (size_t i = 0; i < alike.size(); ++i) {
                    for (size_t j = i + 1; j < alike.size(); ++j) {
                        if (gain_of_swap(alike[i], alike[j]) > GAIN) {
                            swap(alike[i], alike[j]);
                            gained = true;
                        }
                    }
                }
            }
        }
    }
};

} // namespace

std::vector<int32_t> exchange(const Tree &tree, const HopMetric &metric,
                              const std::vector<Seat> &seats, const std::vector<int32_t> &maximum,
                              const ExchangeEffort &effort) {
    return NodeExchange(tree, metric, seats, maximum, effort).run();
}

} // namespace bridge
