// SPDX-License-Identifier: Apache-2.0
#include "topology/contiguous.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>

namespace bridge {
namespace {

constexpr double INF = std::numeric_limits<double>::infinity();
// The cost of a job across two fabrics: more than any other, and still finite.
constexpr double APART = 1e12;

// The cost of jobs on consecutive nodes. Counts below the switches are updated as a window slides.
class Costs {
  public:
    Costs(const Tree &tree, const HopMetric &metric, const IdleSequence &sequence)
        : tree_(tree), metric_(metric), sequence_(sequence), weights_(switch_weights(tree, metric)),
          count_(tree.n_switches(), 0) {}

    // The n nodes from each position of the sequence on, cyclically.
    std::vector<double> windows(int32_t n) {
        const auto m = static_cast<int32_t>(sequence_.nodes.size());
        std::vector<double> costs(m, INF);
        begin();
        for (int32_t i = 0; i < n; ++i) {
            add(sequence_.nodes[i], +1);
        }
        for (int32_t i = 0; i < m; ++i) {
            costs[i] = cost();
            add(sequence_.nodes[i], -1);
            add(sequence_.nodes[(i + n) % m], +1);
        }
        for (int32_t i = 0; i < n; ++i) {
            add(sequence_.nodes[i], -1);
        }
        return costs;
    }

  private:
    const Tree &tree_;
    const HopMetric &metric_;
    const IdleSequence &sequence_;
    std::vector<int64_t> weights_, count_;
    int64_t saved_ = 0, n_ = 0;
    std::map<int32_t, int64_t> roots_;

    void begin() {
        saved_ = n_ = 0;
        roots_.clear();
    }
    void add(int32_t node, int64_t sign) {
        const int32_t leaf = tree_.leaf_of_node()[node];
        for (int32_t v = leaf; v >= 0; v = tree_.parent()[v]) {
            saved_ += weights_[v] * (sign * 2 * count_[v] + 1); // (c + s)^2 - c^2
            count_[v] += sign;
        }
        n_ += sign;
        const int32_t root = tree_.root()[leaf];
        if ((roots_[root] += sign) == 0) {
            roots_.erase(root);
        }
    }
    double cost() const {
        if (roots_.size() > 1) {
            return APART;
        }
        const int64_t top = metric_.hops[tree_.highest_level()];
        const int64_t pairs = top * n_ * n_ - metric_.hops[0] * n_ - saved_;
        const double paid = static_cast<double>(metric_.unit) *
                            static_cast<double>(metric_.ordered ? pairs : pairs / 2) /
                            static_cast<double>(n_);
        return metric_.floored ? std::floor(paid) : paid;
    }
};

std::vector<int32_t> run_of(int32_t first, int32_t n, int32_t m) {
    std::vector<int32_t> positions(n);
    for (int32_t i = 0; i < n; ++i) {
        positions[i] = (first + i) % m;
    }
    return positions;
}

} // namespace

ContiguousPlacement contiguous_sequential(const IdleSequence &sequence,
                                          const std::vector<int32_t> &sizes) {
    const auto m = static_cast<int64_t>(sequence.nodes.size());
    ContiguousPlacement placed;
    int64_t next = 0;
    for (const int32_t n : sizes) {
        placed.emplace_back();
        if (next + n <= m) {
            placed.back() = run_of(static_cast<int32_t>(next), n, static_cast<int32_t>(m));
            next += n;
        }
    }
    return placed;
}

ContiguousPlacement contiguous_exact(const Tree &tree, const HopMetric &metric,
                                     const IdleSequence &sequence,
                                     const std::vector<int32_t> &sizes, int64_t max_states,
                                     int64_t sums, int64_t *summed) {
    const auto m = static_cast<int32_t>(sequence.nodes.size());
    ContiguousPlacement placed(sizes.size());
    if (std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) > m) {
        return placed;
    }
    // A state is a multiset of placed jobs: a number in mixed radix, one digit for each size.
    std::vector<int32_t> kinds = sizes, jobs_of, radix;
    std::sort(kinds.begin(), kinds.end());
    kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
    int64_t states = 1;
    Costs costs(tree, metric, sequence);
    std::vector<std::vector<double>> window; // by kind: cost from each position
    std::vector<double> minimum;
    double hoped = 0;
    for (const int32_t kind : kinds) {
        jobs_of.push_back(static_cast<int32_t>(std::count(sizes.begin(), sizes.end(), kind)));
        radix.push_back(static_cast<int32_t>(states));
        states *= jobs_of.back() + 1;
        if (states > max_states) {
            throw std::invalid_argument("sizes: more than " + std::to_string(max_states) +
                                        " sets of jobs; take a smaller window");
        }
        window.push_back(costs.windows(kind));
        minimum.push_back(*std::min_element(window.back().begin(), window.back().end()));
        hoped += jobs_of.back() * minimum.back();
    }
    if (kinds.empty()) {
        return placed;
    }
    const auto n_kinds = static_cast<int32_t>(kinds.size());
    std::vector<uint8_t> can(static_cast<size_t>(states) * n_kinds); // is one of the kind left?
    for (int64_t state = 0; state < states; ++state) {
        for (int32_t k = 0; k < n_kinds; ++k) {
            can[state * n_kinds + k] = (state / radix[k]) % (jobs_of[k] + 1) < jobs_of[k] ? 1 : 0;
        }
    }
    std::vector<double> best(static_cast<size_t>(m + 1) * states);
    std::vector<int8_t> choice(static_cast<size_t>(m + 1) * states);
    double found = INF;
    int64_t done = 0;
    std::vector<std::vector<int32_t>> starts(n_kinds);
    for (int32_t cut = 0; cut < kinds.back(); ++cut) {
        // The best that this cut can give: with cut > 0 some job covers the end and `cut` nodes of
        // the head, or an earlier cut had the same result.
        double promise = cut == 0 ? hoped : INF;
        for (int32_t k = 0; cut > 0 && k < n_kinds; ++k) {
            if (kinds[k] > cut) {
                promise =
                    std::min(promise, hoped - minimum[k] + window[k][(m - kinds[k] + cut) % m]);
            }
        }
        if (promise >= found) {
            continue;
        }
        if (cut > 0 && sums > 0 && done >= sums) {
            break;
        }
        done += states * n_kinds * m;
        // best[i][state]: least cost of the jobs in `state` on the first i positions from the cut.
        std::fill(best.begin(), best.end(), INF);
        best[0] = 0;
        for (int32_t i = 1; i <= m; ++i) {
            const double *previous = &best[static_cast<size_t>(i - 1) * states];
            double *here = &best[static_cast<size_t>(i) * states];
            int8_t *chosen = &choice[static_cast<size_t>(i) * states];
            std::copy(previous, previous + states, here);
            std::fill(chosen, chosen + states, static_cast<int8_t>(-1));
            for (int32_t k = 0; k < n_kinds; ++k) {
                const int32_t from = i - kinds[k];
                if (from < 0) {
                    continue;
                }
                const double cost = window[k][(from + cut) % m];
                const double *without = &best[static_cast<size_t>(from) * states];
                for (int64_t state = 0; state < states; ++state) {
                    if (can[state * n_kinds + k] == 0) {
                        continue;
                    }
                    const double sum = without[state] + cost;
                    const int64_t with = state + radix[k];
                    if (sum < here[with]) {
                        here[with] = sum;
                        chosen[with] = static_cast<int8_t>(k);
                    }
                }
            }
        }
        const double total = best[static_cast<size_t>(m) * states + (states - 1)];
        if (total < found) {
            found = total;
            for (auto &of_kind : starts) {
                of_kind.clear();
            }
            int64_t state = states - 1;
            for (int32_t i = m; state > 0;) {
                const int8_t k = choice[static_cast<size_t>(i) * states + state];
                if (k < 0) {
                    --i;
                    continue;
                }
                i -= kinds[k];
                state -= radix[k];
                starts[k].push_back((i + cut) % m);
            }
        }
        if (found <= hoped) {
            break;
        }
    }
    if (summed != nullptr) {
        *summed += done;
    }
    if (found >= APART) {
        return placed;
    }
    for (size_t j = 0; j < sizes.size(); ++j) {
        const auto k = std::lower_bound(kinds.begin(), kinds.end(), sizes[j]) - kinds.begin();
        placed[j] = run_of(starts[k].back(), sizes[j], m);
        starts[k].pop_back();
    }
    return placed;
}

} // namespace bridge
