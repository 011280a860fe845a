// SPDX-License-Identifier: Apache-2.0
// Python binding of LoweredRows: the rows of one cycle, their alternatives, and plans for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "python/queue/job_requests.hpp"
#include "python/single_pass/node_plan.hpp"
#include "queue/request_table.hpp"

namespace bridge {

class PyLoweredRows {
  public:
    // `rows`: for each row its job.
    PyLoweredRows(nb::object jobs, size_t n_jobs, std::vector<int64_t> rows);

    nb::object jobs_;
    JobRequests columns_;
    std::vector<int64_t> rows_;
    LoweredRows found_;

    nb::object number() const;
    nb::object held() const;
    nb::object refused() const;
    nb::object plannable() const;
    nb::object classes() const;
    nb::tuple alternatives() const;

    // Whether a job to plan names nodes that it requires.
    bool names_nodes() const;

    // Plans the rows in their order, with the running jobs and nodes of a snapshot.
    PyNodePlan plan(nb::handle snapshot, int64_t depth, int64_t select, nb::handle rank,
                    nb::handle class_nodes, nb::handle blackouts) const;

    // The columns of a plan for all rows, from those of the planned rows.
    nb::tuple planned(nb::handle start, nb::handle alternative, nb::handle indptr) const;
    nb::tuple planned_in_order(const PyNodePlan &plan) const;

    // Where the columns hold an alternative of a planned row; its first if there is none.
    size_t chosen_at(size_t planned_row, int32_t alternative) const;

  private:
    nb::tuple plan_columns(const int64_t *starts, const int32_t *chosen,
                           const int64_t *offsets) const;
};

} // namespace bridge
