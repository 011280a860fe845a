// SPDX-License-Identifier: Apache-2.0
// Python binding of LoweredRows: the rows of one cycle, their alternatives, and plans for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/columns.hpp"
#include "python/queue/job_requests.hpp"
#include "python/single_pass/node_plan.hpp"
#include "queue/request_table.hpp"

namespace bridge {

// Jobs, starts, ends, partitions and widths.
using PlannedRows =
    Tuple<Array<int32_t>, Array<int64_t>, Array<int64_t>, Array<int32_t>, Array<int64_t>>;

// Offsets, and columns of the alternatives.
using Alternatives = Tuple<Array<int64_t>, Array<int64_t>, Array<int64_t>, Array<int64_t>,
                           Array<int64_t>, Array<int64_t>>;

class PyLoweredRows {
  public:
    // `rows`: for each row its job.
    PyLoweredRows(nb::object jobs, size_t n_jobs, std::vector<int64_t> rows);

    nb::object jobs_;
    JobRequests columns_;
    std::vector<int64_t> rows_;
    LoweredRows found_;

    Array<int64_t> number() const;
    const std::vector<int64_t> &held() const;
    const std::vector<int64_t> &refused() const;
    Array<int64_t> plannable() const;
    const std::vector<int64_t> &classes() const;
    Alternatives alternatives() const;

    // Whether a job to plan names nodes that it requires.
    bool names_nodes() const;

    // Plans the rows in their order, with the running jobs and nodes of a snapshot.
    PyNodePlan plan(nb::handle snapshot, int64_t depth, int64_t select, Array<int32_t> rank,
                    Array<uint64_t> class_nodes, nb::handle blackouts) const;

    // The columns of a plan for all rows, from those of the planned rows.
    PlannedRows planned(Array<int64_t> start, Array<int32_t> alternative,
                        Array<int64_t> indptr) const;
    PlannedRows planned_in_order(const PyNodePlan &plan) const;

    // Where the columns hold an alternative of a planned row; its first if there is none.
    size_t chosen_at(size_t planned_row, int32_t alternative) const;

  private:
    PlannedRows plan_columns(const int64_t *starts, const int32_t *chosen,
                             const int64_t *offsets) const;
};

} // namespace bridge
