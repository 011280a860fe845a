// SPDX-License-Identifier: Apache-2.0
// What jobs need of a node, each distinct demand once.
//
// Two alternatives have the same demand if they differ at most in the number of nodes and the time
// limit (with tasks: only in the time limit). Results for one then bound the other.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/timelines.hpp"
#include "counts/dominance.hpp"
#include "single_pass/node_classes.hpp"
#include "single_pass/node_problem.hpp"
#include "single_pass/widths.hpp"

namespace bridge {

// How a node, or the nodes of a demand, are planned: the number of a pool, or one of these.
constexpr int32_t FREE = -1;  // no job has asked for it yet
constexpr int32_t FIXED = -2; // as individual nodes

// Nodes, in rank order, that may still have something free at this second. It only shrinks.
struct NowList {
    bool made = false;
    std::vector<int32_t> nodes;
};

struct NodeDemand {
    size_t cls;
    bool exclusive;
    int64_t tasks;             // 0: not counted
    int64_t max_tasks;         // on a node; at least 1
    std::vector<int64_t> base; // per column: occupancy, then amounts that do not depend on tasks
    std::vector<int64_t> per_task; // per column; occupancy 0
    std::vector<int64_t> one;      // base and one task
    std::vector<int32_t> room; // by node type: tasks an empty node holds (1 if none are counted)
    const uint64_t *required;  // bitset, or null
    std::vector<int32_t> required_list;
    bool counters;

    bool required_in_class;
    bool required_large_enough;
    int64_t large_enough; // nodes of the class that can hold the demand at all
    int32_t uniform_room; // tasks that fit on each of these, or 0 if they differ
    bool holds_tasks;     // whether the tasks fit on an allowed number of these

    std::vector<size_t> alternatives;     // that have this demand
    int32_t pool = FREE;                  // how its nodes were planned when last asked
    NowList now;                          // of this demand alone
    std::unique_ptr<Dominance> dominance; // made when first used

    // Columns to check: an exclusive holder needs the whole node, nothing else.
    Need need() const { return {one.data(), exclusive ? size_t{1} : one.size()}; }

    // Whether it needs nothing but amounts on a number of nodes.
    bool plain() const { return tasks == 0 && required == nullptr && !counters; }

    bool requires_node(int32_t node) const {
        return required != nullptr && (required[node / 64] >> (node % 64) & 1) != 0;
    }

    // How many tasks fit into these free amounts (1 or 0 if tasks are not counted).
    int32_t room_in(const int64_t *free, size_t type) const;

    // The amounts that the job takes of a node with `tasks`.
    void amounts(int64_t tasks_there, int64_t *taken) const;
};

class NodeDemands {
  public:
    NodeDemands(const NodeProblem &problem, const NodeClasses &classes);

    NodeDemand &of(size_t alternative) { return demands_[demand_of_[alternative]]; }
    const Widths &widths(size_t alternative) const { return widths_[alternative]; }

    // The bounds of a demand; jobs with tasks count as one node.
    Dominance &dominance(NodeDemand &demand);
    int64_t dominance_count(const NodeDemand &demand, size_t alternative) const {
        return demand.tasks > 0 ? 1 : widths_[alternative].smallest();
    }

    // Whether the alternative could run on the empty system: STARTS_NOW, or a NEVER_* code.
    Blocked verdict(size_t alternative, size_t job, int32_t *counter) const;

  private:
    const NodeProblem &problem_;
    const NodeClasses &classes_;
    std::vector<uint32_t> demand_of_;
    std::vector<Widths> widths_;
    std::vector<NodeDemand> demands_;

    NodeDemand make(size_t job, size_t alternative) const;
    bool holds_tasks(const NodeDemand &demand, const Widths &widths) const;
};

} // namespace bridge
