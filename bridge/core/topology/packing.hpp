// SPDX-License-Identifier: Apache-2.0
// The best node set of one job, exactly: incremental max-plus programs over counts per switch.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "topology/tree.hpp"

namespace bridge {

// Idle nodes by leaf switch, and for every vertex and k the most that k nodes below it can save.
//
// What k nodes below a vertex save is the sum over its switches of weight * count^2. Ties are
// broken by the sum of squares of what stays idle there: large holes are kept for large jobs. Both
// are integers in one double (exact below 2^53). A changed leaf makes its ancestors stale; they are
// recomputed on demand.
class Packing {
  public:
    // maximum: the largest job that will be requested. keep_holes: break ties as above; with prices
    // that are no integers this may prefer a set that is worse by a fraction.
    Packing(const Tree &tree, const HopMetric &metric, std::vector<int32_t> idle, int32_t maximum,
            bool keep_holes = true);

    const Tree &tree() const { return tree_; }
    const std::vector<int32_t> &idle() const { return idle_; }
    int64_t idle_nodes() const { return idle_nodes_; }
    // Work done so far, in steps of about a nanosecond; the same on every machine.
    int64_t steps() const { return steps_; }

    // The weighted sum of squares of the best set of n nodes, -1 if no tree has n idle ones.
    double gain(int32_t n);

    // The best set of n nodes at the current prices, empty if there is none. Takes nothing.
    void find(int32_t n, LeafCounts &held);
    void take(const LeafCounts &held) { change(held, -1); }
    void give_back(const LeafCounts &held) { change(held, +1); }

    // The extra cost of a node below a switch, in units of the gain; 0 at first.
    void set_price(int32_t of_switch, double price);

    // The weighted sum of squares of such a set.
    double gain_of(const LeafCounts &held) const;

  private:
    const Tree &tree_;
    std::vector<double> weight_, price_; // by vertex; 0 where it has no switch
    std::vector<int32_t> idle_, below_;  // idle nodes by switch (leaves only), by vertex
    std::vector<uint8_t> real_;
    int32_t maximum_;
    double holes_;
    int64_t idle_nodes_ = 0;
    mutable int64_t steps_ = 0;
    double scale_ = 1; // more than any sum of squares left idle
    std::vector<std::vector<double>> best_;
    std::vector<uint8_t> stale_;
    std::vector<int32_t> stale_order_;
    std::vector<std::pair<int32_t, int32_t>> descent_;
    mutable std::vector<int64_t> counted_;

    int32_t length(int32_t vertex) const { return std::min(below_[vertex], maximum_) + 1; }
    void mark(int32_t vertex);
    void refresh();
    void compute(int32_t vertex);
    double own(int32_t vertex, int32_t k) const;
    void change(const LeafCounts &held, int32_t sign);
    int32_t best_top(int32_t n) const;
};

} // namespace bridge
