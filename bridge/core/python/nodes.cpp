// SPDX-License-Identifier: Apache-2.0
// Python binding of plan_nodes: checks about thirty columns, so that the planner need not.
#include "python/module.hpp"

#include <optional>
#include <type_traits>

#include "common/columns.hpp"
#include "common/times.hpp"
#include "python/node_plan.hpp"
#include "single_pass/node_arguments.hpp"
#include "single_pass/node_problem.hpp"

namespace bridge {
namespace {

// No bit beyond the last node.
void expect_only_nodes(const char *name, const Column<uint64_t> &sets, size_t n_nodes) {
    const size_t n_words = (n_nodes + 63) / 64;
    sets.expect_columns(n_words, "one bit per node");
    for (size_t row = 0; n_nodes % 64 != 0 && row < sets.rows(); ++row) {
        if ((sets[row * n_words + n_words - 1] >> (n_nodes % 64)) != 0) {
            refuse(std::string(name) + ": row " + std::to_string(row) +
                   " has a bit beyond the last node");
        }
    }
}

// A counter's running total is held in 32 bits.
void expect_small_sums(const Column<int64_t> &held) {
    for (size_t k = 0; k < held.columns(); ++k) {
        int64_t sum = 0;
        for (size_t run = 0; run < held.rows(); ++run) {
            sum += held[run * held.columns() + k];
            if (sum > MOST_COUNT) {
                refuse("run_counter: the sum of column " + std::to_string(k) + " is more than " +
                       std::to_string(MOST_COUNT));
            }
        }
    }
}

} // namespace

NodeWorld::NodeWorld(const WorldHandles &given, NodeProblem &problem, bool gather)
    : capacities_("capacity", given.capacity, 2, gather), ranks_("node_rank", given.node_rank),
      counter_capacities_("counter_capacity", given.counter_capacity),
      run_ends_("run_end", given.run_end, 1, gather),
      run_nodes_("run_nodes", given.run_nodes, 1, gather),
      run_offsets_("run_indptr", given.run_indptr, 1, gather),
      run_uses_("run_use", given.run_use, 2, gather),
      run_whole_("run_exclusive", given.run_exclusive, 1, gather),
      run_counters_("run_counter", given.run_counter, 2, gather),
      classes_("class_nodes", given.class_nodes, 2),
      closed_classes_("blackout_class", given.blackout_class),
      closed_from_("blackout_start", given.blackout_start),
      closed_to_("blackout_end", given.blackout_end),
      closed_nodes_("blackout_nodes", given.blackout_nodes, 2) {
    problem.now = scalar("now", given.now, 0, NEVER - 1);
    problem.depth = scalar("depth", given.depth, 0);
    problem.select = static_cast<Select>(scalar("select", given.select, 0, 1));

    const size_t n_nodes = problem.n_nodes = capacities_.rows();
    const size_t n_res = problem.n_res = capacities_.columns();
    problem.n_words = (n_nodes + 63) / 64;
    capacities_.within(0, MOST_AMOUNT);
    ranks_.expect_rows(n_nodes, "like capacity");
    problem.capacity = capacities_.data();
    problem.node_rank = ranks_.data();

    const size_t n_counters = problem.n_counters = counter_capacities_.rows();
    counter_capacities_.within(0, MOST_COUNT);
    problem.counter_capacity = counter_capacities_.data();

    const size_t n_run = problem.n_run = run_ends_.rows();
    run_nodes_.within(0, static_cast<int32_t>(n_nodes) - 1);
    run_offsets_.expect_rows(n_run + 1, "one more than run_end")
        .expect_offsets(run_nodes_.rows(), "run_nodes");
    run_uses_.expect_rows(run_nodes_.rows(), "like run_nodes")
        .expect_columns(n_res, "like capacity")
        .within(0, MOST_AMOUNT);
    run_whole_.expect_rows(n_run, "like run_end");
    run_counters_.expect_rows(n_run, "like run_end")
        .expect_columns(n_counters, "like counter_capacity")
        .within(0, MOST_COUNT);
    expect_small_sums(run_counters_);
    problem.run_indptr = run_offsets_.data();
    problem.run_nodes = run_nodes_.data();
    problem.run_use = run_uses_.data();
    problem.run_end = run_ends_.data();
    problem.run_exclusive = run_whole_.data();
    problem.run_counter = run_counters_.data();

    expect_only_nodes("class_nodes", classes_, n_nodes);
    problem.n_class = classes_.rows();
    problem.class_nodes = classes_.data();

    const size_t n_blackouts = problem.n_blackouts = closed_classes_.rows();
    closed_classes_.within(0, static_cast<int32_t>(classes_.rows()) - 1);
    closed_from_.expect_rows(n_blackouts, "like blackout_class");
    closed_to_.expect_rows(n_blackouts, "like blackout_class");
    for (size_t b = 0; b < n_blackouts; ++b) {
        if (closed_to_[b] <= closed_from_[b]) {
            refuse("blackout_end: blackout " + std::to_string(b) + " does not end after it starts");
        }
    }
    closed_nodes_.expect_rows(n_blackouts, "like blackout_class");
    expect_only_nodes("blackout_nodes", closed_nodes_, n_nodes);
    problem.blackout_class = closed_classes_.data();
    problem.blackout_start = closed_from_.data();
    problem.blackout_end = closed_to_.data();
    problem.blackout_nodes = closed_nodes_.data();
}

NodeArguments::NodeArguments(const NodeHandles &given) : world_(given.world, problem_) {
    const size_t n_nodes = problem_.n_nodes;
    const size_t n_res = problem_.n_res;
    const size_t n_counters = problem_.n_counters;
    const auto last_class = static_cast<int32_t>(problem_.n_class) - 1;

    const Column<int32_t> task_counts("tasks", given.tasks);
    const size_t n_jobs = task_counts.rows();
    task_counts.at_least(0);
    const Column<int64_t> node_wants("per_node", given.per_node, 2);
    node_wants.expect_rows(n_jobs, "like tasks")
        .expect_columns(n_res, "like capacity")
        .within(0, MOST_AMOUNT);
    const Column<int64_t> task_wants("per_task", given.per_task, 2);
    task_wants.expect_rows(n_jobs, "like tasks")
        .expect_columns(n_res, "like capacity")
        .within(0, MOST_AMOUNT);
    const Column<int32_t> most_tasks("max_tasks_per_node", given.max_tasks_per_node);
    most_tasks.expect_rows(n_jobs, "like tasks").at_least(0);
    const Column<bool> whole("exclusive", given.exclusive);
    whole.expect_rows(n_jobs, "like tasks");
    const Column<int64_t> begins("not_before", given.not_before);
    begins.expect_rows(n_jobs, "like tasks");
    const Column<int8_t> rules("width_rule", given.width_rule);
    rules.expect_rows(n_jobs, "like tasks").within(0, 4);
    const Column<uint64_t> required_sets("required_nodes", given.required_nodes, 2);
    expect_only_nodes("required_nodes", required_sets, n_nodes);
    const Column<int32_t> required_row("required", given.required);
    required_row.expect_rows(n_jobs, "like tasks")
        .within(-1, static_cast<int32_t>(required_sets.rows()) - 1);
    const Column<int64_t> counter_wants("job_counter", given.job_counter, 2);
    counter_wants.expect_rows(n_jobs, "like tasks")
        .expect_columns(n_counters, "like counter_capacity")
        .within(0, MOST_COUNT);

    const Column<int32_t> alt_classes("alt_class", given.alt_class);
    const size_t n_alt = alt_classes.rows();
    alt_classes.within(0, last_class);
    const Column<int64_t> alt_offsets("alt_indptr", given.alt_indptr);
    alt_offsets.expect_rows(n_jobs + 1, "one more than tasks").expect_offsets(n_alt, "alt_class");
    for (size_t job = 0; job < n_jobs; ++job) {
        if (alt_offsets[job] == alt_offsets[job + 1]) {
            refuse("alt_indptr: job " + std::to_string(job) + " has no alternative");
        }
    }
    const Column<int64_t> alt_limits("alt_time_limit_s", given.alt_time_limit_s);
    alt_limits.expect_rows(n_alt, "like alt_class").at_least(1);
    const Column<int32_t> alt_least("alt_min_nodes", given.alt_min_nodes);
    alt_least.expect_rows(n_alt, "like alt_class").at_least(1);
    const Column<int32_t> alt_most("alt_max_nodes", given.alt_max_nodes);
    alt_most.expect_rows(n_alt, "like alt_class");
    for (size_t a = 0; a < n_alt; ++a) {
        if (alt_most[a] < alt_least[a]) {
            refuse("alt_max_nodes: " + std::to_string(alt_most[a]) + " at position " +
                   std::to_string(a) + " is less than alt_min_nodes there");
        }
    }

    const int64_t *latest = nullptr;
    std::optional<Column<int64_t>> alt_latests;
    if (given.alt_latest.is_none()) {
        any_time_.assign(n_alt, NEVER);
        latest = any_time_.data();
    } else {
        latest = alt_latests.emplace("alt_latest", given.alt_latest)
                     .expect_rows(n_alt, "like alt_class")
                     .data();
    }
    std::optional<Column<bool>> beside;
    within_depth_ = Buffer<bool>(given.beside_depth.is_none() ? n_jobs : 0);
    const bool *outside = within_depth_.data();
    if (!given.beside_depth.is_none()) {
        outside = beside.emplace("beside_depth", given.beside_depth)
                      .expect_rows(n_jobs, "like tasks")
                      .data();
    }

    problem_.job_counter = counter_wants.data();
    problem_.n_jobs = n_jobs;
    problem_.alt_indptr = alt_offsets.data();
    problem_.alt_class = alt_classes.data();
    problem_.alt_time_limit_s = alt_limits.data();
    problem_.alt_min_nodes = alt_least.data();
    problem_.alt_max_nodes = alt_most.data();
    problem_.alt_latest = latest;
    problem_.per_node = node_wants.data();
    problem_.tasks = task_counts.data();
    problem_.per_task = task_wants.data();
    problem_.max_tasks_per_node = most_tasks.data();
    problem_.exclusive = whole.data();
    problem_.not_before = begins.data();
    problem_.beside_depth = outside;
    problem_.width_rule = rules.data();
    problem_.required = required_row.data();
    problem_.n_required = required_sets.rows();
    problem_.required_nodes = required_sets.data();
}

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
