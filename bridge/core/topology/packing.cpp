// SPDX-License-Identifier: Apache-2.0
#include "topology/packing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace bridge {
namespace {

constexpr double NONE = -std::numeric_limits<double>::infinity();
// Steps: for a vertex, for a switch on the way to the root; and the number of sums in one step.
constexpr int64_t OF_A_VERTEX = 30, OF_A_SWITCH = 4, SUMS = 3;

// joined[k] = max over i + j = k of a[i] + b[j]; `joined` is initially NONE throughout.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target_clones("avx2", "default")))
#endif
void max_plus(const double *a, int32_t n_a, const double *b, int32_t n_b, double *joined,
              int32_t n_joined) {
    for (int32_t i = 0; i < n_a; ++i) {
        const double base = a[i];
        const int32_t stop = std::min(n_b, n_joined - i);
        double *out = joined + i;
        for (int32_t j = 0; j < stop; ++j) {
            const double sum = base + b[j];
            out[j] = out[j] > sum ? out[j] : sum;
        }
    }
}

} // namespace

Packing::Packing(const Tree &tree, const HopMetric &metric, std::vector<int32_t> idle,
                 int32_t maximum, bool keep_holes)
    : tree_(tree), idle_(std::move(idle)), maximum_(maximum), holes_(keep_holes ? 1 : 0) {
    const auto &vertices = tree.vertices();
    const std::vector<int64_t> weights = switch_weights(tree, metric);
    weight_.assign(vertices.size(), 0);
    price_.assign(vertices.size(), 0);
    real_.assign(vertices.size(), 0);
    below_.assign(vertices.size(), 0);
    for (size_t v = 0; v < vertices.size(); ++v) {
        const int32_t of = vertices[v].switch_of;
        if (of >= 0) {
            weight_[v] = static_cast<double>(weights[of]);
            real_[v] = 1;
            if (vertices[v].left < 0) {
                below_[v] = idle_[of];
            }
        }
        if (vertices[v].parent >= 0) {
            below_[vertices[v].parent] += below_[v];
        } else {
            idle_nodes_ += below_[v];
        }
        if (real_[v] && keep_holes) {
            scale_ += static_cast<double>(below_[v]) * below_[v];
        }
    }
    best_.resize(vertices.size());
    stale_.assign(vertices.size(), 1);
    for (size_t v = 0; v < vertices.size(); ++v) {
        stale_order_.push_back(static_cast<int32_t>(v));
    }
    counted_.assign(tree.n_switches(), 0);
}

double Packing::own(int32_t vertex, int32_t k) const {
    if (!real_[vertex]) {
        return -price_[vertex] * scale_ * k;
    }
    const double left = below_[vertex] - k;
    return (weight_[vertex] * k - price_[vertex]) * k * scale_ + holes_ * left * left;
}

void Packing::compute(int32_t vertex) {
    const Tree::Vertex &at = tree_.vertices()[vertex];
    std::vector<double> &best = best_[vertex];
    const int32_t n = length(vertex);
    steps_ += OF_A_VERTEX + n;
    if (at.left < 0) {
        best.assign(n, 0);
    } else if (at.right < 0) {
        best.assign(best_[at.left].begin(), best_[at.left].begin() + n);
    } else {
        const std::vector<double> &a = best_[at.left], &b = best_[at.right];
        best.assign(n, NONE);
        steps_ += static_cast<int64_t>(std::min(a.size(), b.size())) * n / SUMS;
        const bool swap = a.size() > b.size(); // the longer one inside: fewer, longer runs
        const std::vector<double> &outer = swap ? b : a, &inner = swap ? a : b;
        max_plus(outer.data(), static_cast<int32_t>(outer.size()), inner.data(),
                 static_cast<int32_t>(inner.size()), best.data(), n);
    }
    if (real_[vertex] || price_[vertex] != 0) {
        for (int32_t k = 0; k < n; ++k) {
            best[k] += own(vertex, k);
        }
    }
    stale_[vertex] = 0;
}

void Packing::mark(int32_t vertex) {
    for (int32_t v = vertex; v >= 0 && !stale_[v]; v = tree_.vertices()[v].parent) {
        stale_[v] = 1;
        stale_order_.push_back(v);
    }
}

void Packing::refresh() {
    if (stale_order_.empty()) {
        return;
    }
    std::sort(stale_order_.begin(), stale_order_.end()); // children have the lower numbers
    for (const int32_t v : stale_order_) {
        compute(v);
    }
    stale_order_.clear();
}

int32_t Packing::best_top(int32_t n) const {
    int32_t found = -1;
    for (const int32_t top : tree_.tops()) {
        if (below_[top] >= n && (found < 0 || best_[top][n] > best_[found][n])) {
            found = top;
        }
    }
    return found;
}

double Packing::gain(int32_t n) {
    refresh();
    const int32_t top = best_top(n);
    return top < 0 ? -1 : std::floor(best_[top][n] / scale_);
}

void Packing::find(int32_t n, LeafCounts &held) {
    held.clear();
    refresh();
    const int32_t top = best_top(n);
    if (top < 0) {
        return;
    }
    descent_.assign(1, {top, n});
    while (!descent_.empty()) {
        const auto [vertex, k] = descent_.back();
        descent_.pop_back();
        const Tree::Vertex &at = tree_.vertices()[vertex];
        steps_ += OF_A_SWITCH;
        if (k == 0) {
            continue;
        }
        if (at.left < 0) {
            held.emplace_back(at.switch_of, k);
            continue;
        }
        if (at.right < 0) {
            descent_.emplace_back(at.left, k);
            continue;
        }
        const std::vector<double> &a = best_[at.left], &b = best_[at.right];
        int32_t split = -1;
        double maximum = NONE;
        const int32_t first = std::max(0, k + 1 - static_cast<int32_t>(b.size()));
        const int32_t last = std::min(k, static_cast<int32_t>(a.size()) - 1);
        steps_ += last - first + 1;
        for (int32_t i = first; i <= last; ++i) {
            if (a[i] + b[k - i] > maximum) {
                maximum = a[i] + b[k - i];
                split = i;
            }
        }
        descent_.emplace_back(at.right, k - split);
        descent_.emplace_back(at.left, split);
    }
}

void Packing::change(const LeafCounts &held, int32_t sign) {
    for (const auto &[leaf, count] : held) {
        idle_[leaf] += sign * count;
        idle_nodes_ += sign * count;
        steps_ += 4 * OF_A_SWITCH;
        const int32_t vertex = tree_.vertex_of()[leaf];
        for (int32_t v = vertex; v >= 0; v = tree_.vertices()[v].parent) {
            below_[v] += sign * count;
        }
        mark(vertex);
    }
}

void Packing::set_price(int32_t of_switch, double price) {
    const int32_t vertex = tree_.vertex_of()[of_switch];
    if (price_[vertex] != price) {
        price_[vertex] = price;
        mark(vertex);
    }
}

double Packing::gain_of(const LeafCounts &held) const {
    double sum = 0;
    for (const auto &[leaf, count] : held) {
        steps_ += 4 * OF_A_SWITCH;
        for (int32_t v = leaf; v >= 0; v = tree_.parent()[v]) {
            counted_[v] += count;
        }
    }
    for (const auto &[leaf, count] : held) {
        for (int32_t v = leaf; v >= 0; v = tree_.parent()[v]) {
            const auto nodes = static_cast<double>(counted_[v]);
            sum += weight_[tree_.vertex_of()[v]] * nodes * nodes;
            counted_[v] = 0;
        }
    }
    return sum;
}

} // namespace bridge
