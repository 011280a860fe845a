// SPDX-License-Identifier: Apache-2.0
#include "python/queue/lowered_rows.hpp"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "common/columns.hpp"
#include "common/times.hpp"
#include "python/single_pass/node_arguments.hpp"

namespace bridge {
namespace {

Array<int64_t> widened(const std::vector<int32_t> &values) {
    return to_numpy(std::vector<int64_t>(values.begin(), values.end()));
}

// The arguments of plan_nodes for the rows that can be planned, gathered from the columns of their
// jobs.
struct Gathered {
    std::vector<int64_t> licences;
    std::vector<int64_t> per_node;
    std::vector<int64_t> per_task;
    std::vector<int32_t> tasks;
    std::vector<int32_t> max_tasks;
    Buffer<bool> exclusive;
    std::vector<int64_t> begin;
    std::vector<int8_t> width_rule;
    std::vector<int64_t> latest;   // by alternative: no bound
    Buffer<bool> beside_depth;     // all false
    std::vector<int32_t> required; // none has required nodes

    Gathered(const JobRequests &requests, const std::vector<int64_t> &job, size_t n_alternatives)
        : exclusive(job.size()), latest(n_alternatives, NEVER), beside_depth(job.size()),
          required(job.size(), -1) {
        licences.reserve(job.size() * requests.licences.width());
        per_node.reserve(job.size() * requests.per_node.width());
        per_task.reserve(job.size() * requests.per_task.width());
        tasks.reserve(job.size());
        max_tasks.reserve(job.size());
        begin.reserve(job.size());
        width_rule.reserve(job.size());
        for (size_t i = 0; i < job.size(); ++i) {
            const auto at = static_cast<size_t>(job[i]);
            add_row(licences, requests.licences, at);
            add_row(per_node, requests.per_node, at);
            add_row(per_task, requests.per_task, at);
            tasks.push_back(static_cast<int32_t>(requests.tasks.data()[at]));
            max_tasks.push_back(static_cast<int32_t>(requests.max_tasks.data()[at]));
            exclusive[i] = requests.exclusive.data()[at];
            begin.push_back(requests.hold.data()[at] == 3 ? requests.begin.data()[at] : 0);
            width_rule.push_back(requests.width_rule.data()[at]);
        }
    }
};

// Checked views of these.
void write(const Gathered &jobs, const LoweredRows &rows, NodeProblem &problem) {
    const size_t n_jobs = problem.n_jobs = rows.plannable.size();
    if (jobs.per_node.size() != n_jobs * problem.n_res ||
        jobs.per_task.size() != n_jobs * problem.n_res) {
        refuse("per_node, per_task: not as many columns as the nodes' capacity");
    }
    if (jobs.licences.size() != n_jobs * problem.n_counters) {
        refuse("licences: not as many columns as there are licences");
    }
    const auto expect = [](const char *name, const auto &values, auto minimum, auto maximum) {
        expect_within(name, values.data(), values.size(), minimum, maximum);
    };
    constexpr int32_t any = std::numeric_limits<int32_t>::max();
    expect("per_node", jobs.per_node, int64_t{0}, MAX_AMOUNT);
    expect("per_task", jobs.per_task, int64_t{0}, MAX_AMOUNT);
    expect("job_counter", jobs.licences, int64_t{0}, MAX_COUNT);
    expect("tasks", jobs.tasks, 0, any);
    expect("max_tasks_per_node", jobs.max_tasks, 0, any);
    expect("width_rule", jobs.width_rule, int8_t{0}, int8_t{4});
    expect("alt_class", rows.class_, 0, static_cast<int32_t>(problem.n_class) - 1);
    expect("alt_time_limit_s", rows.time_limit_s, int64_t{1}, NEVER);
    expect("alt_min_nodes", rows.min_nodes, 1, any);
    for (size_t a = 0; a < rows.max_nodes.size(); ++a) {
        expect_within("alt_max_nodes", &rows.max_nodes[a], 1, rows.min_nodes[a], any);
    }
    problem.job_counter = jobs.licences.data();
    problem.alt_indptr = rows.indptr.data();
    problem.alt_class = rows.class_.data();
    problem.alt_time_limit_s = rows.time_limit_s.data();
    problem.alt_min_nodes = rows.min_nodes.data();
    problem.alt_max_nodes = rows.max_nodes.data();
    problem.alt_latest = jobs.latest.data();
    problem.per_node = jobs.per_node.data();
    problem.tasks = jobs.tasks.data();
    problem.per_task = jobs.per_task.data();
    problem.max_tasks_per_node = jobs.max_tasks.data();
    problem.exclusive = jobs.exclusive.data();
    problem.not_before = jobs.begin.data();
    problem.beside_depth = jobs.beside_depth.data();
    problem.width_rule = jobs.width_rule.data();
    problem.required = jobs.required.data();
    problem.n_required = 0;
    problem.required_nodes = nullptr;
}

} // namespace

PyLoweredRows::PyLoweredRows(nb::object jobs, size_t n_jobs, std::vector<int64_t> rows)
    : jobs_(std::move(jobs)), columns_(jobs_, n_jobs), rows_(std::move(rows)) {}

Array<int64_t> PyLoweredRows::number() const {
    return to_numpy(found_.number);
}
const std::vector<int64_t> &PyLoweredRows::held() const {
    return found_.held;
}
const std::vector<int64_t> &PyLoweredRows::refused() const {
    return found_.refused;
}
Array<int64_t> PyLoweredRows::plannable() const {
    return to_numpy(found_.plannable);
}
const std::vector<int64_t> &PyLoweredRows::classes() const {
    return found_.classes;
}
Alternatives PyLoweredRows::alternatives() const {
    return nb::make_tuple(to_numpy(found_.indptr), widened(found_.class_),
                          to_numpy(found_.partition), to_numpy(found_.time_limit_s),
                          widened(found_.min_nodes), widened(found_.max_nodes));
}

bool PyLoweredRows::names_nodes() const {
    for (const int64_t row : found_.plannable) {
        const auto job = static_cast<size_t>(rows_[static_cast<size_t>(row)]);
        if (nb::len(columns_.required[job]) > 0) {
            return true;
        }
    }
    return false;
}

PyNodePlan PyLoweredRows::plan(nb::handle snapshot, int64_t depth, int64_t select,
                               Array<int32_t> rank, Array<uint64_t> class_nodes,
                               nb::handle blackouts) const {
    const nb::object nodes = attribute(snapshot, "nodes");
    const nb::object running = attribute(snapshot, "running");
    const nb::tuple closed = nb::borrow<nb::tuple>(blackouts);
    NodeProblem problem{};
    const NodeWorld world(
        {nb::cast<int64_t>(attribute(snapshot, "now_s")), depth, select,
         attribute(nodes, "capacity"), nb::borrow(rank), attribute(running, "indptr"),
         attribute(running, "nodes"), attribute(running, "use"), attribute(running, "end_s"),
         attribute(running, "exclusive"), attribute(running, "licences"), nb::borrow(class_nodes),
         closed[0], closed[1], closed[2], closed[3], attribute(snapshot, "licence_total")},
        problem, true);
    std::vector<int64_t> jobs;
    jobs.reserve(found_.plannable.size());
    for (const int64_t row : found_.plannable) {
        jobs.push_back(rows_[static_cast<size_t>(row)]);
    }
    const Gathered gathered(columns_, jobs, found_.class_.size());
    write(gathered, found_, problem);
    return PyNodePlan(problem);
}

PlannedRows PyLoweredRows::planned(Array<int64_t> start, Array<int32_t> alternative,
                                   Array<int64_t> indptr) const {
    const Column<int64_t> starts("start", start);
    const Column<int32_t> chosen("alternative", alternative);
    const Column<int64_t> offsets("indptr", indptr);
    const size_t n_plannable = found_.plannable.size();
    starts.expect_rows(n_plannable, "like plannable");
    chosen.expect_rows(n_plannable, "like plannable");
    offsets.expect_rows(n_plannable + 1, "one more than plannable");
    return plan_columns(starts.data(), chosen.data(), offsets.data());
}

PlannedRows PyLoweredRows::planned_in_order(const PyNodePlan &plan) const {
    const NodePlanResult &found = plan.found;
    if (found.start.size() != found_.plannable.size()) {
        refuse("plan: it is of other rows");
    }
    return plan_columns(found.start.data(), found.alternative.data(), found.indptr.data());
}

PlannedRows PyLoweredRows::plan_columns(const int64_t *starts, const int32_t *chosen,
                                        const int64_t *offsets) const {
    const size_t n_plannable = found_.plannable.size();
    const size_t n = rows_.size();
    std::vector<int32_t> job(rows_.begin(), rows_.end());
    std::vector<int64_t> start_s(n, UNPLANNED);
    std::vector<int64_t> end_s(n, 0);
    std::vector<int32_t> partition(n, -1);
    std::vector<int64_t> width(n + 1, 0);
    for (size_t i = 0; i < n_plannable; ++i) {
        const auto row = static_cast<size_t>(found_.plannable[i]);
        start_s[row] = starts[i];
        width[row + 1] = offsets[i + 1] - offsets[i];
        if (starts[i] == UNPLANNED || starts[i] == NEVER) {
            continue;
        }
        const size_t at = chosen_at(i, chosen[i]);
        partition[row] = static_cast<int32_t>(found_.partition[at]);
        end_s[row] = static_cast<int64_t>(static_cast<uint64_t>(starts[i]) +
                                          static_cast<uint64_t>(found_.time_limit_s[at]));
    }
    for (size_t row = 0; row < n; ++row) {
        width[row + 1] += width[row];
    }
    return nb::make_tuple(to_numpy(std::move(job)), to_numpy(std::move(start_s)),
                          to_numpy(std::move(end_s)), to_numpy(std::move(partition)),
                          to_numpy(std::move(width)));
}

size_t PyLoweredRows::chosen_at(size_t planned_row, int32_t alternative) const {
    const int64_t at = found_.indptr[planned_row] + std::max(alternative, 0);
    if (at >= found_.indptr[planned_row + 1]) {
        refuse("alternative: there are not so many");
    }
    return static_cast<size_t>(at);
}

} // namespace bridge
