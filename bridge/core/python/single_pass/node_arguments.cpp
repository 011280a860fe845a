// SPDX-License-Identifier: Apache-2.0
// Checks the columns of a NodeProblem, so that the planner need not.
#include "python/single_pass/node_arguments.hpp"

#include <string>

#include "common/times.hpp"

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
            if (sum > MAX_COUNT) {
                refuse("run_counter: the sum of column " + std::to_string(k) + " is more than " +
                       std::to_string(MAX_COUNT));
            }
        }
    }
}

int64_t number(nb::handle given, const char *name) {
    int64_t value = 0;
    if (!nb::try_cast(attribute(given, name), value)) {
        refuse(std::string(name) + ": expected a whole number");
    }
    return value;
}

WorldColumns world_of(nb::handle given) {
    const auto column = [&](const char *name) { return attribute(given, name); };
    return {number(given, "now"),     number(given, "depth"),    number(given, "select"),
            column("capacity"),       column("node_rank"),       column("run_indptr"),
            column("run_nodes"),      column("run_use"),         column("run_end"),
            column("run_exclusive"),  column("run_counter"),     column("class_nodes"),
            column("blackout_class"), column("blackout_start"),  column("blackout_end"),
            column("blackout_nodes"), column("counter_capacity")};
}

} // namespace

NodeWorld::NodeWorld(const WorldColumns &given, NodeProblem &problem, bool gather)
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
    capacities_.within(0, MAX_AMOUNT);
    ranks_.expect_rows(n_nodes, "like capacity");
    problem.capacity = capacities_.data();
    problem.node_rank = ranks_.data();

    const size_t n_counters = problem.n_counters = counter_capacities_.rows();
    counter_capacities_.within(0, MAX_COUNT);
    problem.counter_capacity = counter_capacities_.data();

    const size_t n_run = problem.n_run = run_ends_.rows();
    run_nodes_.within(0, static_cast<int32_t>(n_nodes) - 1);
    run_offsets_.expect_rows(n_run + 1, "one more than run_end")
        .expect_offsets(run_nodes_.rows(), "run_nodes");
    run_uses_.expect_rows(run_nodes_.rows(), "like run_nodes")
        .expect_columns(n_res, "like capacity")
        .within(0, MAX_AMOUNT);
    run_whole_.expect_rows(n_run, "like run_end");
    run_counters_.expect_rows(n_run, "like run_end")
        .expect_columns(n_counters, "like counter_capacity")
        .within(0, MAX_COUNT);
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

NodeArguments::NodeArguments(nb::handle given) : world_(world_of(given), problem_) {
    read_jobs(given);
    read_alternatives(given);
}

nb::handle NodeArguments::hold(nb::handle given, const char *name) {
    held_.push_back(attribute(given, name));
    return held_.back();
}

void NodeArguments::read_jobs(nb::handle given) {
    const Column<int32_t> tasks("tasks", hold(given, "tasks"));
    const size_t n_jobs = tasks.rows();
    tasks.at_least(0);
    const Column<int64_t> per_node("per_node", hold(given, "per_node"), 2);
    per_node.expect_rows(n_jobs, "like tasks")
        .expect_columns(problem_.n_res, "like capacity")
        .within(0, MAX_AMOUNT);
    const Column<int64_t> per_task("per_task", hold(given, "per_task"), 2);
    per_task.expect_rows(n_jobs, "like tasks")
        .expect_columns(problem_.n_res, "like capacity")
        .within(0, MAX_AMOUNT);
    const Column<int32_t> max_tasks("max_tasks_per_node", hold(given, "max_tasks_per_node"));
    max_tasks.expect_rows(n_jobs, "like tasks").at_least(0);
    const Column<bool> whole("exclusive", hold(given, "exclusive"));
    whole.expect_rows(n_jobs, "like tasks");
    const Column<int64_t> begins("not_before", hold(given, "not_before"));
    begins.expect_rows(n_jobs, "like tasks");
    const Column<int8_t> rules("width_rule", hold(given, "width_rule"));
    rules.expect_rows(n_jobs, "like tasks").within(0, 4);
    const Column<uint64_t> required_sets("required_nodes", hold(given, "required_nodes"), 2);
    expect_only_nodes("required_nodes", required_sets, problem_.n_nodes);
    const Column<int32_t> required_row("required", hold(given, "required"));
    required_row.expect_rows(n_jobs, "like tasks")
        .within(-1, static_cast<int32_t>(required_sets.rows()) - 1);
    const Column<int64_t> counters("job_counter", hold(given, "job_counter"), 2);
    counters.expect_rows(n_jobs, "like tasks")
        .expect_columns(problem_.n_counters, "like counter_capacity")
        .within(0, MAX_COUNT);
    if (attribute(given, "beside_depth").is_none()) {
        within_depth_ = Buffer<bool>(n_jobs);
        problem_.beside_depth = within_depth_.data();
    } else {
        const Column<bool> beside("beside_depth", hold(given, "beside_depth"));
        problem_.beside_depth = beside.expect_rows(n_jobs, "like tasks").data();
    }
    problem_.n_jobs = n_jobs;
    problem_.tasks = tasks.data();
    problem_.per_node = per_node.data();
    problem_.per_task = per_task.data();
    problem_.max_tasks_per_node = max_tasks.data();
    problem_.exclusive = whole.data();
    problem_.not_before = begins.data();
    problem_.width_rule = rules.data();
    problem_.n_required = required_sets.rows();
    problem_.required_nodes = required_sets.data();
    problem_.required = required_row.data();
    problem_.job_counter = counters.data();
}

void NodeArguments::read_alternatives(nb::handle given) {
    const Column<int32_t> classes("alt_class", hold(given, "alt_class"));
    const size_t n_alt = classes.rows();
    classes.within(0, static_cast<int32_t>(problem_.n_class) - 1);
    const Column<int64_t> offsets("alt_indptr", hold(given, "alt_indptr"));
    offsets.expect_rows(problem_.n_jobs + 1, "one more than tasks")
        .expect_offsets(n_alt, "alt_class");
    for (size_t job = 0; job < problem_.n_jobs; ++job) {
        if (offsets[job] == offsets[job + 1]) {
            refuse("alt_indptr: job " + std::to_string(job) + " has no alternative");
        }
    }
    const Column<int64_t> limits("alt_time_limit_s", hold(given, "alt_time_limit_s"));
    limits.expect_rows(n_alt, "like alt_class").at_least(1);
    const Column<int32_t> minimum("alt_min_nodes", hold(given, "alt_min_nodes"));
    minimum.expect_rows(n_alt, "like alt_class").at_least(1);
    const Column<int32_t> maximum("alt_max_nodes", hold(given, "alt_max_nodes"));
    maximum.expect_rows(n_alt, "like alt_class");
    for (size_t a = 0; a < n_alt; ++a) {
        if (maximum[a] < minimum[a]) {
            refuse("alt_max_nodes: " + std::to_string(maximum[a]) + " at position " +
                   std::to_string(a) + " is less than alt_min_nodes there");
        }
    }
    if (attribute(given, "alt_latest").is_none()) {
        any_time_.assign(n_alt, NEVER);
        problem_.alt_latest = any_time_.data();
    } else {
        const Column<int64_t> latest("alt_latest", hold(given, "alt_latest"));
        problem_.alt_latest = latest.expect_rows(n_alt, "like alt_class").data();
    }
    problem_.alt_indptr = offsets.data();
    problem_.alt_class = classes.data();
    problem_.alt_time_limit_s = limits.data();
    problem_.alt_min_nodes = minimum.data();
    problem_.alt_max_nodes = maximum.data();
}

} // namespace bridge
