// SPDX-License-Identifier: Apache-2.0
// How many of the eligible nodes a job takes, and which.
#pragma once

#include <cstdint>
#include <vector>

#include "common/timelines.hpp"
#include "single_pass/node_classes.hpp"
#include "single_pass/node_demand.hpp"

namespace bridge {

struct Candidate {
    int32_t node;
    int32_t room; // tasks that fit; 1 if tasks are not counted
};

struct Chosen {
    int32_t node;
    int32_t tasks;
};

// The number of nodes to take from the candidates, or -1 if no allowed set exists: the fewest for a
// job with tasks; without tasks the most if `widest`, else the fewest.
int64_t width_to_take(const NodeDemand &demand, const Widths &widths,
                      const std::vector<Candidate> &candidates, bool widest);

class NodeChoice {
  public:
    NodeChoice(Select select, const NodeClasses &classes, const Timelines &timelines)
        : select_(select), classes_(classes), timelines_(timelines) {}

    // As width_to_take, but for tasks no node of higher rank is taken to save one of lower rank.
    // The candidates are in rank order.
    int64_t width(const NodeDemand &demand, const Widths &widths,
                  const std::vector<Candidate> &candidates, bool widest) const;

    // Picks `width` of the candidates (in rank order, at least `width`, able to hold the tasks) for
    // [start, end). Ascending by node.
    std::vector<Chosen> choose(const NodeDemand &demand, int64_t width,
                               std::vector<Candidate> candidates, int64_t start, int64_t end) const;

    // Distributes the tasks over nodes that can hold them: one each, then the rest in this order.
    // Ascending by node.
    static std::vector<Chosen> spread(const NodeDemand &demand,
                                      const std::vector<Candidate> &taken);

  private:
    Select select_;
    const NodeClasses &classes_;
    const Timelines &timelines_;

    void sort_by_fit(const NodeDemand &demand, std::vector<Candidate> &candidates, int64_t start,
                     int64_t end) const;
};

} // namespace bridge
