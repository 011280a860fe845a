// SPDX-License-Identifier: Apache-2.0
// The constants of a plan of nodes: the order of nodes, their capacities, the nodes of each class,
// and when these are closed to it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "single_pass/node_problem.hpp"

namespace bridge {

class NodeClasses {
  public:
    explicit NodeClasses(const NodeProblem &problem);

    // The nodes of a class by ascending rank, then index.
    const std::vector<int32_t> &nodes(size_t cls) const { return classes_[cls].nodes; }

    int32_t rank(int32_t node) const { return rank_[node]; }

    // Nodes of the same type have the same capacity.
    size_t n_types() const { return type_capacity_.size(); }
    uint32_t type(int32_t node) const { return node_type_[static_cast<size_t>(node)]; }
    const int64_t *type_capacity(size_t type) const { return type_capacity_[type]; }
    // The number of nodes of each type in a class.
    const std::vector<int64_t> &type_count(size_t cls) const { return classes_[cls].type_count; }

    // Each resource as a share of the largest node's, in 2**-20, summed.
    int64_t size_score(int32_t node) const { return type_score_[type(node)]; }
    // The remaining amounts of a node, each as a share of its capacity, in 2**-20, summed.
    int64_t left_score(int32_t node, const int64_t *left) const;

    bool has_blackouts(size_t cls) const { return !classes_[cls].closed.empty(); }
    // The earliest start >= `from` at which no blackout of the class touches the node for `length`.
    int64_t next_open(size_t cls, int32_t node, int64_t from, int64_t length) const;

  private:
    using Interval = std::pair<int64_t, int64_t>;
    struct Class {
        std::vector<int32_t> nodes;
        std::vector<int64_t> type_count;
        std::vector<std::vector<Interval>>
            closed; // per node, disjoint and ascending; empty if none
    };
    size_t n_res_;
    const int32_t *rank_; // by node
    std::vector<Class> classes_;
    std::vector<uint32_t> node_type_;
    std::vector<const int64_t *> type_capacity_;
    std::vector<int64_t> type_score_;

    void find_types(const NodeProblem &problem);
    void find_blackouts(const NodeProblem &problem);
};

} // namespace bridge
