// SPDX-License-Identifier: Apache-2.0
// The arguments of plan_nodes, checked.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "common/buffer.hpp"
#include "common/columns.hpp"
#include "single_pass/node_problem.hpp"

namespace bridge {

// The arguments that do not depend on the jobs to plan. _core.pyi documents them at plan_nodes.
struct WorldHandles {
    int64_t now;
    int64_t depth;
    int64_t select;
    nanobind::handle capacity;
    nanobind::handle node_rank;
    nanobind::handle run_indptr;
    nanobind::handle run_nodes;
    nanobind::handle run_use;
    nanobind::handle run_end;
    nanobind::handle run_exclusive;
    nanobind::handle run_counter;
    nanobind::handle class_nodes;
    nanobind::handle blackout_class;
    nanobind::handle blackout_start;
    nanobind::handle blackout_end;
    nanobind::handle blackout_nodes;
    nanobind::handle counter_capacity;
};

struct NodeHandles {
    WorldHandles world;
    nanobind::handle job_counter;
    nanobind::handle alt_indptr;
    nanobind::handle alt_class;
    nanobind::handle alt_time_limit_s;
    nanobind::handle alt_min_nodes;
    nanobind::handle alt_max_nodes;
    nanobind::handle per_node;
    nanobind::handle tasks;
    nanobind::handle per_task;
    nanobind::handle max_tasks_per_node;
    nanobind::handle exclusive;
    nanobind::handle not_before;
    nanobind::handle width_rule;
    nanobind::handle required;
    nanobind::handle required_nodes;
    nanobind::handle alt_latest;
    nanobind::handle beside_depth;
};

// Checks every column that does not depend on the jobs; throws a ValueError that names the
// argument.
class NodeWorld {
  public:
    // Fills in its part of `problem`: views of the columns, which must outlive it. `gather`:
    // columns that are not contiguous are copied, and the copies live as long as this object.
    NodeWorld(const WorldHandles &given, NodeProblem &problem, bool gather = false);

  private:
    Column<int64_t> capacities_;
    Column<int32_t> ranks_;
    Column<int64_t> counter_capacities_;
    Column<int64_t> run_ends_;
    Column<int32_t> run_nodes_;
    Column<int64_t> run_offsets_;
    Column<int64_t> run_uses_;
    Column<bool> run_whole_;
    Column<int64_t> run_counters_;
    Column<uint64_t> classes_;
    Column<int32_t> closed_classes_;
    Column<int64_t> closed_from_;
    Column<int64_t> closed_to_;
    Column<uint64_t> closed_nodes_;
};

// Checks every column of the world and of the jobs.
class NodeArguments {
  public:
    explicit NodeArguments(const NodeHandles &given);

    // Views of the columns, which must outlive it.
    const NodeProblem &problem() const { return problem_; }

  private:
    NodeProblem problem_{};
    NodeWorld world_;
    std::vector<int64_t> any_time_;
    Buffer<bool> within_depth_;

    void read_jobs(const NodeHandles &given);
    // After the jobs: their number must be known.
    void read_alternatives(const NodeHandles &given);
};

} // namespace bridge
