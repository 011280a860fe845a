// SPDX-License-Identifier: Apache-2.0
// The arguments of plan_nodes, checked.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "common/arrays.hpp"
#include "common/buffer.hpp"
#include "common/columns.hpp"
#include "single_pass/node_problem.hpp"

namespace bridge {

// The columns that do not depend on the jobs to plan, as bridge.core.node_problem documents them.
struct WorldColumns {
    int64_t now;
    int64_t depth;
    int64_t select;
    nanobind::object capacity;
    nanobind::object node_rank;
    nanobind::object run_indptr;
    nanobind::object run_nodes;
    nanobind::object run_use;
    nanobind::object run_end;
    nanobind::object run_exclusive;
    nanobind::object run_counter;
    nanobind::object class_nodes;
    nanobind::object blackout_class;
    nanobind::object blackout_start;
    nanobind::object blackout_end;
    nanobind::object blackout_nodes;
    nanobind::object counter_capacity;
};

// Checks every column that does not depend on the jobs; throws a ValueError that names the
// argument.
class NodeWorld {
  public:
    // Fills in its part of `problem`: views of the columns, which must outlive it. `gather`:
    // columns that are not contiguous are copied, and the copies live as long as this object.
    NodeWorld(const WorldColumns &given, NodeProblem &problem, bool gather = false);

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

// Checks every column of a NodeProblem of Python.
class NodeArguments {
  public:
    explicit NodeArguments(nanobind::handle given);

    // Views of the columns, which must outlive it.
    const NodeProblem &problem() const { return problem_; }

  private:
    NodeProblem problem_{};
    NodeWorld world_;
    std::vector<nanobind::object> held_; // the columns of jobs and alternatives
    std::vector<int64_t> any_time_;
    Buffer<bool> within_depth_;

    // A column of the table, which is kept alive.
    nanobind::handle hold(nanobind::handle given, const char *name);
    void read_jobs(nanobind::handle given);
    // After the jobs: their number must be known.
    void read_alternatives(nanobind::handle given);
};

} // namespace bridge
