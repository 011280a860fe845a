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
template <typename Values> auto column(nb::handle_t<PyNodePlan> plan, Values NodePlanResult::*of) {
    Values &values = nb::cast<PyNodePlan &>(plan).found.*of;
    using T = std::remove_reference_t<decltype(values[0])>;
    return to_array<T>(values.data(), values.size(), plan);
}

} // namespace

void define_plan_nodes(nb::module_ &m) {
    nb::enum_<Blocked>(
        m, "Blocked", nb::is_arithmetic(),
        R"(Why a job of ``plan_nodes`` does not start now; the first that applies, in this order.

``NEVER_*`` mean that the job can never run. The others are judged for the alternative the job
is planned on (its first possible one if it is unplanned).)")
        .value("STARTS_NOW", Blocked::STARTS_NOW, "It starts now.")
        .value(
            "NEVER_NODES", Blocked::NEVER_NODES,
            R"(Too few nodes exist in its class, a required node is not among them, or no width in
[min, max] obeys the width rule.)")
        .value(
            "NEVER_SIZE", Blocked::NEVER_SIZE,
            R"(Enough nodes exist, but too few of them are large enough for its share per node, or no
allowed number of them holds its tasks.)")
        .value("NEVER_COUNTER", Blocked::NEVER_COUNTER,
               "It requests more of a counter than exists; ``blocked_counter`` says which.")
        .value("NEVER_FREED", Blocked::NEVER_FREED,
               "It could start only after something that never ends.")
        .value("NOT_BEFORE", Blocked::NOT_BEFORE, "Its not-before time is in the future.")
        .value("NODES_BUSY", Blocked::NODES_BUSY,
               "Too few nodes are free of running jobs and of jobs that this plan starts.")
        .value("BLACKOUT", Blocked::BLACKOUT,
               "Enough nodes are free, but a blackout of its class closes them before the job "
               "would end.")
        .value("COUNTER", Blocked::COUNTER,
               "Nodes are free, but a counter is used up; ``blocked_counter`` says which.")
        .value("PLANNED_START", Blocked::PLANNED_START,
               "It would fit, but it would delay the planned start of a job before it.")
        .value("TOO_LATE", Blocked::TOO_LATE, "All possible starts are later than its latest one.");
    nb::enum_<Select>(m, "Select", nb::is_arithmetic(), "Which of the eligible nodes a job takes.")
        .value("SEQUENTIAL", Select::SEQUENTIAL, "Ascending ``node_rank``, then ascending index.")
        .value(
            "BEST_FIT", Select::BEST_FIT,
            R"(Ascending ``node_rank``, and among nodes of one rank for shared jobs those left with the
least free after the job, each resource as a share of the node's capacity, summed; for exclusive
jobs those of least capacity (each resource as a share of the largest node's, summed), then
those whose idle gap after the job is shortest. Ties: ascending index.)");
    nb::enum_<WidthRule>(m, "WidthRule", nb::is_arithmetic(),
                         "Which numbers of nodes a job may have.")
        .value("ANY", WidthRule::ANY)
        .value("POWER_OF_TWO", WidthRule::POWER_OF_TWO)
        .value("EVEN", WidthRule::EVEN)
        .value("ODD", WidthRule::ODD)
        .value("CUBIC", WidthRule::CUBIC, "1, 8, 27, 64, ...");
    nb::class_<PyNodePlan>(m, "NodePlan", "What ``plan_nodes`` found.")
        .def_prop_ro(
            "start", [](nb::handle_t<PyNodePlan> p) { return column(p, &NodePlanResult::start); },
            "(n_jobs,) s: now, later, UNPLANNED, or NEVER.")
        .def_prop_ro(
            "alternative",
            [](nb::handle_t<PyNodePlan> p) { return column(p, &NodePlanResult::alternative); },
            R"((n_jobs,) which of the job's own alternatives it is planned on, from 0; -1 if none.

TOO_LATE: the one that could have had `missed_start`.)")
        .def_prop_ro(
            "indptr", [](nb::handle_t<PyNodePlan> p) { return column(p, &NodePlanResult::indptr); },
            "(n_jobs + 1,) CSR offsets into ``nodes`` and ``tasks``; empty where there is no "
            "start.")
        .def_prop_ro(
            "nodes", [](nb::handle_t<PyNodePlan> p) { return column(p, &NodePlanResult::nodes); },
            "Node indices, ascending within a job.")
        .def_prop_ro(
            "tasks", [](nb::handle_t<PyNodePlan> p) { return column(p, &NodePlanResult::tasks); },
            "Tasks on each of ``nodes``; 0 for jobs that count no tasks.")
        .def_prop_ro(
            "blocked_by",
            [](nb::handle_t<PyNodePlan> p) { return column(p, &NodePlanResult::blocked_by); },
            "(n_jobs,) ``Blocked`` codes.")
        .def_prop_ro(
            "blocked_counter",
            [](nb::handle_t<PyNodePlan> p) { return column(p, &NodePlanResult::blocked_counter); },
            R"((n_jobs,) the counter for COUNTER and NEVER_COUNTER; -1 otherwise.

For TOO_LATE it is the one that keeps the job from starting now, if one does.)")
        .def_prop_ro(
            "fit_now",
            [](nb::handle_t<PyNodePlan> p) { return column(p, &NodePlanResult::fit_now); },
            R"((n_jobs,) how many eligible nodes could hold the job from now for its whole length.

Counted after everything before it is booked and before itself, for the alternative that
``blocked_by`` is about. 0 for a job that can never run.)")
        .def_prop_ro(
            "missed_start",
            [](nb::handle_t<PyNodePlan> p) { return column(p, &NodePlanResult::missed_start); },
            "(n_jobs,) s; TOO_LATE: the earliest start, were it not bound; NEVER otherwise.");
    m.def("plan_nodes", &plan_nodes_py, nb::arg("problem"),
          R"(Plan jobs onto concrete nodes with several resources, shared or whole.

On a node a job requests ``per_node``, plus ``per_task`` for each task there. A node that is
eligible for a job is in the alternative's class, is not closed by a blackout of that class at
any second of the job, and holds the request at every second of the job: for a shared job beside
everything booked there and under no exclusive holder; for an exclusive job with nobody else
there and the request within the node's capacity. A job with tasks needs a set of nodes, each
with one task at least, that hold exactly ``tasks`` together.

Of the alternatives the one with the earliest start wins, ties go to the first.

Width: a job without tasks that starts now takes as many nodes as it may; one planned for later
is booked with the least it may. A job with tasks takes, if its bounds allow, all nodes of the
lower ranks and the fewest of the last it needs to hold them; otherwise the fewest of all.
Which ones: the first in ``select`` order that can be completed to a valid set, required nodes
first. Tasks: one on every node, the rest fills the nodes in that same order.

Jobs that request whole nodes out of a set that no other job treats differently are planned as
counts and mapped by a sweep over time as ``map_counts`` does (in ``node_rank`` order, then by
capacity for BEST_FIT): that is faster, and it never starts a job later than choosing nodes
early would. The first job that treats the set differently fixes the nodes of those before it.

Args:
    problem: the nodes, what runs there, and the jobs in their order.

Returns:
    Starts, nodes and reasons.

Raises:
    ValueError: a column has the wrong dtype, shape or value; the text names it.)");
}

} // namespace bridge
