// SPDX-License-Identifier: Apache-2.0
// The result of plan_nodes, as Python holds it: arrays are made on first access.
#pragma once

#include <nanobind/nanobind.h>

#include "single_pass/node_problem.hpp"

namespace bridge {

struct PyNodePlan {
    NodePlanResult found;

    // Plans, without the interpreter's lock.
    explicit PyNodePlan(const NodeProblem &problem) {
        nanobind::gil_scoped_release release;
        found = plan_nodes(problem);
    }
};

} // namespace bridge
