// SPDX-License-Identifier: Apache-2.0
// Python binding of judge: reads the columns of a snapshot and a plan by name, and checks that they
// fit together.
#include "python/module.hpp"

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "judge/judge.hpp"
#include "python/views.hpp"

namespace bridge {

namespace nb = nanobind;

namespace {

void append(NodeLists &lists, nb::handle nodes) {
    if (nb::len(nodes) > 0) {
        for (const nb::handle node : nb::borrow<nb::tuple>(nodes)) {
            lists.nodes.push_back(nb::cast<int64_t>(node));
        }
    }
    lists.offsets.push_back(lists.nodes.size());
}

bool holds(nb::handle numbers, int64_t wanted) {
    for (const nb::handle number : nb::borrow<nb::tuple>(numbers)) {
        if (nb::cast<int64_t>(number) == wanted) {
            return true;
        }
    }
    return false;
}

nb::object judge_py(nb::object snapshot, nb::object plan, nb::callable matching, nb::object want) {
    JudgedPlan judged{};
    const nb::object jobs = attribute(snapshot, "jobs");
    const nb::object nodes = attribute(snapshot, "nodes");
    const nb::object running = attribute(snapshot, "running");

    // The plan: errors are text if the columns do not even fit together.
    const View<int32_t> job(plan, "job");
    const View<int64_t> start(plan, "start_s");
    const View<int64_t> end(plan, "end_s");
    const View<int32_t> partition(plan, "partition");
    const View<int64_t> indptr(plan, "indptr");
    const View<int32_t> held(plan, "nodes");
    const View<int32_t> tasks(plan, "tasks");
    const nb::object reasons = attribute(plan, "reasons");
    const size_t n_rows = job.size();
    const View<int64_t> capacity(nodes, "capacity", 2);
    const size_t n_jobs = nb::len(jobs);
    const size_t n_nodes = capacity.size();
    const nb::tuple partitions = nb::borrow<nb::tuple>(attribute(snapshot, "partitions"));
    const int64_t now = nb::cast<int64_t>(attribute(snapshot, "now_s"));
    const int64_t made_for = nb::cast<int64_t>(attribute(plan, "now_s"));
    if (start.size() != n_rows || end.size() != n_rows || partition.size() != n_rows ||
        nb::len(reasons) != n_rows || indptr.size() != n_rows + 1) {
        return nb::str("columns of different length");
    }
    if (!indptr.ascends()) {
        return nb::str("node offsets do not ascend from 0");
    }
    if (static_cast<size_t>(indptr.data()[n_rows]) != held.size() || tasks.size() != held.size()) {
        return nb::str("node offsets do not match the nodes");
    }
    if (!job.all_below(n_jobs)) {
        return nb::str("a row of an unknown job");
    }
    if (!held.all_below(n_nodes)) {
        return nb::str("an unknown node");
    }
    for (size_t row = 0; row < n_rows; ++row) {
        if (partition.data()[row] < -1 ||
            partition.data()[row] >= static_cast<int32_t>(partitions.size())) {
            return nb::str("an unknown partition");
        }
    }
    if (made_for != now) {
        const std::string text = "made for second " + std::to_string(made_for) + ", not ";
        return nb::str((text + std::to_string(now)).c_str());
    }

    // The snapshot.
    const View<int64_t> totals(snapshot, "licence_total");
    const size_t n_res = capacity.width();
    const size_t n_licences = totals.size();
    const auto of_jobs = [&](auto &&column) -> auto { return column.rows(n_jobs); };
    const auto array_tasks = of_jobs(View<int64_t>(jobs, "array_tasks"));
    const auto array_startable = of_jobs(View<int64_t>(jobs, "array_startable"));
    const auto hold = of_jobs(View<int8_t>(jobs, "hold"));
    const auto begin = of_jobs(View<int64_t>(jobs, "begin_s"));
    const auto eligible = of_jobs(View<int64_t>(jobs, "eligible_s"));
    const auto limit = of_jobs(View<int64_t>(jobs, "time_limit_s"));
    const auto minimum = of_jobs(View<int64_t>(jobs, "min_time_s"));
    const auto deadline = of_jobs(View<int64_t>(jobs, "deadline_s"));
    const auto fixed = of_jobs(View<bool>(jobs, "fixed"));
    const auto min_nodes = of_jobs(View<int64_t>(jobs, "min_nodes"));
    const auto max_nodes = of_jobs(View<int64_t>(jobs, "max_nodes"));
    const auto rule = of_jobs(View<int8_t>(jobs, "width_rule"));
    const auto job_tasks = of_jobs(View<int64_t>(jobs, "tasks"));
    const auto max_tasks = of_jobs(View<int64_t>(jobs, "max_tasks_per_node"));
    const auto per_node = of_jobs(View<int64_t>(jobs, "per_node", 2)).columns(n_res);
    const auto per_task = of_jobs(View<int64_t>(jobs, "per_task", 2)).columns(n_res);
    const auto exclusive = of_jobs(View<bool>(jobs, "exclusive"));
    const auto licences = of_jobs(View<int64_t>(jobs, "licences", 2)).columns(n_licences);
    const auto usable = View<bool>(nodes, "usable").rows(n_nodes);

    const View<int64_t> run_end(running, "end_s");
    const size_t n_run = run_end.size();
    const auto run_nodes = View<int32_t>(running, "nodes").below(n_nodes);
    const auto run_indptr =
        View<int64_t>(running, "indptr").rows(n_run + 1).offsets(run_nodes.size());
    const auto run_use = View<int64_t>(running, "use", 2).rows(run_nodes.size()).columns(n_res);
    const auto run_exclusive = View<bool>(running, "exclusive").rows(n_run);
    const auto run_licences = View<int64_t>(running, "licences", 2).rows(n_run).columns(n_licences);

    std::vector<View<int32_t>> members; // of partitions
    members.reserve(partitions.size());
    for (const nb::handle part : partitions) {
        members.emplace_back(part, "nodes").below(n_nodes);
        judged.partitions.push_back({nb::cast<bool>(attribute(part, "up")),
                                     nb::cast<int64_t>(attribute(part, "min_nodes")),
                                     nb::cast<int64_t>(attribute(part, "max_nodes")),
                                     nb::cast<int64_t>(attribute(part, "max_time_s")),
                                     nb::cast<int64_t>(attribute(part, "default_time_s")),
                                     members.back().data(), members.back().size()});
    }

    // Requests in lists and words.
    const Objects named(jobs, "partitions", n_jobs);
    const Objects features(jobs, "features", n_jobs);
    const Objects required(jobs, "required", n_jobs);
    const Objects excluded(jobs, "excluded", n_jobs);
    std::vector<nb::ndarray<const bool, nb::c_contig, nb::device::cpu>> masks;
    nb::dict known; // constraint to its number
    const auto constraint_of = [&](nb::handle text) {
        if (known.contains(text)) {
            return nb::cast<int32_t>(known[text]);
        }
        const auto number = static_cast<int32_t>(judged.constraints.size());
        known[text] = number;
        judged.constraints.emplace_back();
        for (const nb::handle one : nb::borrow<nb::list>(matching(text))) {
            masks.push_back(nb::cast<nb::ndarray<const bool, nb::c_contig, nb::device::cpu>>(one));
            if (masks.back().size() != n_nodes) {
                throw nb::value_error("matching does not fit the nodes");
            }
            judged.constraints.back().push_back(masks.back().data());
        }
        return number;
    };
    const nb::object given =
        nb::steal(PySequence_Fast(reasons.ptr(), "reasons are not a sequence"));
    if (!given.is_valid()) {
        throw nb::python_error();
    }
    judged.reasoned.resize(n_rows);
    judged.named.resize(n_rows);
    judged.constraint.assign(n_rows, -1);
    judged.required.offsets.reserve(n_rows + 1);
    judged.excluded.offsets.reserve(n_rows + 1);
    PyObject *last = nullptr; // many rows share the partitions of the row before
    int32_t last_partition = -1;
    uint8_t last_named = 0;
    for (size_t row = 0; row < n_rows; ++row) {
        const auto at = static_cast<size_t>(job.data()[row]);
        PyObject *reason = PySequence_Fast_GET_ITEM(given.ptr(), static_cast<Py_ssize_t>(row));
        judged.reasoned[row] = reason != Py_None ? 1 : 0;
        if (partition.data()[row] < 0) { // then it requests no nodes
            judged.required.offsets.push_back(judged.required.nodes.size());
            judged.excluded.offsets.push_back(judged.excluded.nodes.size());
            continue;
        }
        if (named[at].ptr() != last || partition.data()[row] != last_partition) {
            last = named[at].ptr();
            last_partition = partition.data()[row];
            last_named = holds(named[at], last_partition) ? 1 : 0;
        }
        judged.named[row] = last_named;
        append(judged.required, required[at]);
        append(judged.excluded, excluded[at]);
        if (nb::len(features[at]) > 0) {
            judged.constraint[row] = constraint_of(features[at]);
        }
    }
    nb::ndarray<const int64_t, nb::c_contig, nb::device::cpu> wanted;
    if (!want.is_none()) {
        wanted = nb::cast<decltype(wanted)>(want());
        if (wanted.size() != held.size() * n_res) {
            throw nb::value_error("want does not fit the nodes");
        }
        judged.want = wanted.data();
    }

    judged.now = now;
    judged.n_jobs = n_jobs;
    judged.array_tasks = array_tasks.data();
    judged.array_startable = array_startable.data();
    judged.hold = hold.data();
    judged.begin_s = begin.data();
    judged.eligible_s = eligible.data();
    judged.time_limit_s = limit.data();
    judged.min_time_s = minimum.data();
    judged.deadline_s = deadline.data();
    judged.fixed = fixed.data();
    judged.min_nodes = min_nodes.data();
    judged.max_nodes = max_nodes.data();
    judged.width_rule = rule.data();
    judged.job_tasks = job_tasks.data();
    judged.max_tasks_per_node = max_tasks.data();
    judged.per_node = per_node.data();
    judged.per_task = per_task.data();
    judged.exclusive = exclusive.data();
    judged.job_licences = licences.data();
    judged.n_nodes = n_nodes;
    judged.n_res = n_res;
    judged.usable = usable.data();
    judged.capacity = capacity.data();
    judged.n_licences = n_licences;
    judged.licence_total = totals.data();
    judged.n_run = n_run;
    judged.run_indptr = run_indptr.data();
    judged.run_nodes = run_nodes.data();
    judged.run_use = run_use.data();
    judged.run_end = run_end.data();
    judged.run_exclusive = run_exclusive.data();
    judged.run_licences = run_licences.data();
    judged.n_rows = n_rows;
    judged.job = job.data();
    judged.start_s = start.data();
    judged.end_s = end.data();
    judged.partition = partition.data();
    judged.indptr = indptr.data();
    judged.nodes = held.data();
    judged.tasks = tasks.data();
    std::vector<Finding> findings;
    {
        nb::gil_scoped_release release;
        findings = judge(judged);
    }
    nb::list told;
    for (const Finding &one : findings) {
        told.append(nb::make_tuple(one.fault, one.row, one.found, one.allowed));
    }
    return told;
}

} // namespace

void define_judge(nb::module_ &m) {
    nb::enum_<Fault>(m, "Fault", nb::is_arithmetic(),
                     "A rule broken by a row; for the first two, by a job.")
        .value("NO_ROW", Fault::NO_ROW)
        .value("TOO_MANY_STARTS", Fault::TOO_MANY_STARTS,
               "With their number, and the number allowed.")
        .value("NODES_WITHOUT_START", Fault::NODES_WITHOUT_START)
        .value("NO_REASON", Fault::NO_REASON)
        .value("IN_THE_PAST", Fault::IN_THE_PAST)
        .value("HELD_BACK", Fault::HELD_BACK)
        .value("BEFORE_BEGIN", Fault::BEFORE_BEGIN)
        .value("NO_PARTITION", Fault::NO_PARTITION)
        .value("BEFORE_FIXED", Fault::BEFORE_FIXED)
        .value("AFTER_FIXED", Fault::AFTER_FIXED)
        .value("AFTER_DEADLINE", Fault::AFTER_DEADLINE)
        .value("WRONG_LENGTH", Fault::WRONG_LENGTH)
        .value("PARTITION_TIME", Fault::PARTITION_TIME)
        .value("WRONG_WIDTH", Fault::WRONG_WIDTH)
        .value("WIDTH_RULE", Fault::WIDTH_RULE, "With the number of nodes, and its rule.")
        .value("OUT_OF_ORDER", Fault::OUT_OF_ORDER)
        .value("UNUSABLE", Fault::UNUSABLE)
        .value("PARTITION_DOWN", Fault::PARTITION_DOWN,
               "With the one concerned; so for the next two.")
        .value("PARTITION_WIDTH", Fault::PARTITION_WIDTH)
        .value("PARTITION_UNNAMED", Fault::PARTITION_UNNAMED)
        .value("OUTSIDE", Fault::OUTSIDE)
        .value("MISSES_REQUIRED", Fault::MISSES_REQUIRED)
        .value("WRONG_TASKS", Fault::WRONG_TASKS)
        .value("TASKS_ON_NODE", Fault::TASKS_ON_NODE)
        .value("TOO_LARGE", Fault::TOO_LARGE)
        .value("NODE_OVERSUBSCRIBED", Fault::NODE_OVERSUBSCRIBED)
        .value("LICENCE_OVERSUBSCRIBED", Fault::LICENCE_OVERSUBSCRIBED);
    using namespace nb::literals;
    m.def("judge", &judge_py, "snapshot"_a, "plan"_a, "matching"_a, "want"_a.none(),
          nb::sig("def judge(snapshot: object, plan: object, matching: object, "
                  "want: object | None) -> str | list[tuple[Fault, int, int, int]]"),
          R"(Judges every row of a plan, at every second. O(n log n) in nodes planned.

Columns are read by name, as in `bridge.model`; other types are converted.

Args:
    snapshot: the cluster.
    plan: for it.
    matching: (n_nodes,) which nodes match, for each alternative of a constraint.
    want: (nnz, R) amounts of each row on each of its nodes; called once the columns are known
        to fit together. None: as in the columns of its job.

Returns:
    A message if columns do not fit together; else faults, each with its row (or job), the value
    found and the value allowed, by fault and row.

Raises:
    ValueError: the snapshot's own columns do not fit together; the text names one.)");
}

} // namespace bridge
