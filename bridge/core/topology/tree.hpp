// SPDX-License-Identifier: Apache-2.0
// Switches as a tree, and the communication cost of a job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace bridge {

// Hops between two nodes by the level of their lowest common switch, and the cost of a job.
struct HopMetric {
    std::vector<int64_t> hops; // by level, 0: the same leaf switch; ascending, > 0
    int64_t unit = 1000;       // the cost of one hop
    bool ordered = true;       // each pair counts twice
    bool floored = false;      // the cost of a job is rounded down
};

using LeafCounts = std::vector<std::pair<int32_t, int32_t>>; // (leaf switch, nodes there)

// The counts of a job whose nodes are on these leaf switches, one entry per node.
LeafCounts leaf_counts(std::vector<int32_t> leaves);

// A forest of switches. Nodes are attached to leaf switches; a leaf is at level 0, any other switch
// one above its highest child. Nodes of different trees cannot communicate.
//
// Searches work on a binary version: the children of every switch are joined in pairs by vertices
// without a switch (`switch_of` -1), so that a changed leaf affects a logarithmic number of
// vertices. Vertices are numbered children first.
class Tree {
  public:
    struct Vertex {
        int32_t parent = -1, left = -1, right = -1;
        int32_t switch_of = -1;
    };

    // parent: of each switch, -1 for a root. leaf_of_node: the switch of each node, -1: none.
    // Throws std::invalid_argument for cycles, for parents that do not exist, and for nodes
    // attached to a switch with children.
    Tree(std::vector<int32_t> parent, std::vector<int32_t> leaf_of_node);

    size_t n_switches() const { return parent_.size(); }
    size_t n_nodes() const { return leaf_of_node_.size(); }
    const std::vector<int32_t> &parent() const { return parent_; }
    const std::vector<int32_t> &leaf_of_node() const { return leaf_of_node_; }
    const std::vector<int32_t> &level() const { return level_; }
    // The root above each switch.
    const std::vector<int32_t> &root() const { return root_; }
    const std::vector<Vertex> &vertices() const { return vertices_; }
    // The vertex of a switch.
    const std::vector<int32_t> &vertex_of() const { return vertex_of_; }
    // Vertices of the trees' roots.
    const std::vector<int32_t> &tops() const { return tops_; }
    int32_t highest_level() const { return highest_level_; }

    // The cost of a job with this many nodes under each leaf switch: counts > 0, each leaf once.
    // All in one tree; jobs across trees cost infinity.
    double cost(const HopMetric &metric, const LeafCounts &held) const;

  private:
    std::vector<int32_t> parent_, leaf_of_node_, level_, root_;
    std::vector<Vertex> vertices_;
    std::vector<int32_t> vertex_of_, tops_;
    int32_t highest_level_ = 0;

    int32_t join(std::vector<int32_t> parts);
};

// With c_v of a job's n nodes under switch v, its hops over ordered pairs are
// hop(highest level) n^2 - hop(0) n - sum over v of weight(v) c_v^2: the sum is what it saves. The
// weight of a root includes the difference in height to the highest tree.
std::vector<int64_t> switch_weights(const Tree &tree, const HopMetric &metric);

} // namespace bridge
