// SPDX-License-Identifier: Apache-2.0
// Python binding of plan_nodes.
#include "python/module.hpp"

#include "common/columns.hpp"
#include "common/times.hpp"
#include "python/single_pass/node_arguments.hpp"
#include "python/single_pass/node_plan.hpp"
#include "single_pass/node_problem.hpp"

namespace bridge {
namespace {

PyNodePlan plan_nodes_py(nb::handle problem) {
    const NodeArguments arguments(problem);
    return PyNodePlan(arguments.problem());
}

// A column of a plan as an array that keeps the plan alive.
template <typename Values>
nb::object column(nb::handle_t<PyNodePlan> plan, Values NodePlanResult::*of) {
    Values &values = nb::cast<PyNodePlan &>(plan).found.*of;
    using T = std::remove_reference_t<decltype(values[0])>;
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(values.data(), {values.size()}, plan));
}

} // namespace

void define_plan_nodes(nb::module_ &m) {
    nb::enum_<Blocked>(m, "Blocked", nb::is_arithmetic())
        .value("STARTS_NOW", Blocked::STARTS_NOW)
        .value("NEVER_NODES", Blocked::NEVER_NODES)
        .value("NEVER_SIZE", Blocked::NEVER_SIZE)
        .value("NEVER_COUNTER", Blocked::NEVER_COUNTER)
        .value("NEVER_FREED", Blocked::NEVER_FREED)
        .value("NOT_BEFORE", Blocked::NOT_BEFORE)
        .value("NODES_BUSY", Blocked::NODES_BUSY)
        .value("BLACKOUT", Blocked::BLACKOUT)
        .value("COUNTER", Blocked::COUNTER)
        .value("PLANNED_START", Blocked::PLANNED_START)
        .value("TOO_LATE", Blocked::TOO_LATE);
    nb::enum_<Select>(m, "Select", nb::is_arithmetic())
        .value("SEQUENTIAL", Select::SEQUENTIAL)
        .value("BEST_FIT", Select::BEST_FIT);
    nb::enum_<WidthRule>(m, "WidthRule", nb::is_arithmetic())
        .value("ANY", WidthRule::ANY)
        .value("POWER_OF_TWO", WidthRule::POWER_OF_TWO)
        .value("EVEN", WidthRule::EVEN)
        .value("ODD", WidthRule::ODD)
        .value("CUBIC", WidthRule::CUBIC);
    nb::class_<PyNodePlan>(m, "NodePlan")
        .def_prop_ro("start",
                     [](nb::handle_t<PyNodePlan> p) { return column(p, &NodePlanResult::start); })
        .def_prop_ro(
            "alternative",
            [](nb::handle_t<PyNodePlan> p) { return column(p, &NodePlanResult::alternative); })
        .def_prop_ro("indptr",
                     [](nb::handle_t<PyNodePlan> p) { return column(p, &NodePlanResult::indptr); })
        .def_prop_ro("nodes",
                     [](nb::handle_t<PyNodePlan> p) { return column(p, &NodePlanResult::nodes); })
        .def_prop_ro("tasks",
                     [](nb::handle_t<PyNodePlan> p) { return column(p, &NodePlanResult::tasks); })
        .def_prop_ro(
            "blocked_by",
            [](nb::handle_t<PyNodePlan> p) { return column(p, &NodePlanResult::blocked_by); })
        .def_prop_ro(
            "blocked_counter",
            [](nb::handle_t<PyNodePlan> p) { return column(p, &NodePlanResult::blocked_counter); })
        .def_prop_ro("fit_now",
                     [](nb::handle_t<PyNodePlan> p) { return column(p, &NodePlanResult::fit_now); })
        .def_prop_ro("missed_start", [](nb::handle_t<PyNodePlan> p) {
            return column(p, &NodePlanResult::missed_start);
        });
    m.def("plan_nodes", &plan_nodes_py, nb::arg("problem"));
}

} // namespace bridge
