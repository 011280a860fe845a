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

PyNodePlan plan_nodes_py(int64_t now, int64_t depth, int64_t select, nb::handle capacity,
                         nb::handle node_rank, nb::handle run_indptr, nb::handle run_nodes,
                         nb::handle run_use, nb::handle run_end, nb::handle run_exclusive,
                         nb::handle run_counter, nb::handle class_nodes, nb::handle blackout_class,
                         nb::handle blackout_start, nb::handle blackout_end,
                         nb::handle blackout_nodes, nb::handle counter_capacity,
                         nb::handle job_counter, nb::handle alt_indptr, nb::handle alt_class,
                         nb::handle alt_time_limit_s, nb::handle alt_min_nodes,
                         nb::handle alt_max_nodes, nb::handle per_node, nb::handle tasks,
                         nb::handle per_task, nb::handle max_tasks_per_node, nb::handle exclusive,
                         nb::handle not_before, nb::handle width_rule, nb::handle required,
                         nb::handle required_nodes, nb::handle alt_latest,
                         nb::handle beside_depth) {
    const NodeArguments arguments(
        {{now, depth, select, capacity, node_rank, run_indptr, run_nodes, run_use, run_end,
          run_exclusive, run_counter, class_nodes, blackout_class, blackout_start, blackout_end,
          blackout_nodes, counter_capacity},
         job_counter,
         alt_indptr,
         alt_class,
         alt_time_limit_s,
         alt_min_nodes,
         alt_max_nodes,
         per_node,
         tasks,
         per_task,
         max_tasks_per_node,
         exclusive,
         not_before,
         width_rule,
         required,
         required_nodes,
         alt_latest,
         beside_depth});
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
    using namespace nb::literals;
    m.def("plan_nodes", &plan_nodes_py, nb::kw_only(), "now"_a, "depth"_a, "select"_a, "capacity"_a,
          "node_rank"_a, "run_indptr"_a, "run_nodes"_a, "run_use"_a, "run_end"_a, "run_exclusive"_a,
          "run_counter"_a, "class_nodes"_a, "blackout_class"_a, "blackout_start"_a,
          "blackout_end"_a, "blackout_nodes"_a, "counter_capacity"_a, "job_counter"_a,
          "alt_indptr"_a, "alt_class"_a, "alt_time_limit_s"_a, "alt_min_nodes"_a, "alt_max_nodes"_a,
          "per_node"_a, "tasks"_a, "per_task"_a, "max_tasks_per_node"_a, "exclusive"_a,
          "not_before"_a, "width_rule"_a, "required"_a, "required_nodes"_a,
          "alt_latest"_a = nb::none(), "beside_depth"_a = nb::none());
}

} // namespace bridge
