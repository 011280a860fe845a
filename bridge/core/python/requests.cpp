// SPDX-License-Identifier: Apache-2.0
// Python binding of RequestTable: reads the columns of the pending jobs, asks Python for what is
// new, and returns columns.
#include "python/module.hpp"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/columns.hpp"
#include "common/times.hpp"
#include "python/node_arguments.hpp"
#include "python/node_plan.hpp"
#include "python/views.hpp"
#include "queue/request_table.hpp"

namespace bridge {
namespace {

// The columns of pending jobs that make up their requests.
struct Asking {
    View<int8_t> hold;
    View<int64_t> array_tasks;
    View<int64_t> array_startable;
    View<int64_t> begin;
    View<int64_t> limit;
    View<int64_t> min_nodes;
    View<int64_t> max_nodes;
    View<int64_t> least;
    View<int64_t> reservation;
    View<int8_t> width_rule;
    View<int64_t> tasks;
    View<int64_t> most_tasks;
    View<bool> exclusive;
    View<int64_t> per_node;
    View<int64_t> per_task;
    View<int64_t> licences;
    Objects partitions;
    Objects features;
    Objects required;
    Objects excluded;
    Objects chunks;

    Asking(nb::handle jobs, size_t n)
        : hold(jobs, "hold"), array_tasks(jobs, "array_tasks"),
          array_startable(jobs, "array_startable"), begin(jobs, "begin_s"),
          limit(jobs, "time_limit_s"), min_nodes(jobs, "min_nodes"), max_nodes(jobs, "max_nodes"),
          least(jobs, "least_time_s"), reservation(jobs, "reservation"),
          width_rule(jobs, "width_rule"), tasks(jobs, "tasks"),
          most_tasks(jobs, "max_tasks_per_node"), exclusive(jobs, "exclusive"),
          per_node(jobs, "per_node", 2), per_task(jobs, "per_task", 2),
          licences(jobs, "licences", 2), partitions(jobs, "partitions", n),
          features(jobs, "features", n), required(jobs, "required", n),
          excluded(jobs, "excluded", n), chunks(jobs, "chunks", n) {
        hold.rows(n);
        array_tasks.rows(n);
        array_startable.rows(n);
        begin.rows(n);
        limit.rows(n);
        min_nodes.rows(n);
        max_nodes.rows(n);
        least.rows(n);
        reservation.rows(n);
        width_rule.rows(n);
        tasks.rows(n);
        most_tasks.rows(n);
        exclusive.rows(n);
        per_node.rows(n);
        per_task.rows(n);
        licences.rows(n);
    }

    // Whether the controller would start it if resources were free.
    bool plannable(size_t job) const {
        const int8_t why = hold.data()[job];
        const bool free = why == 0 || why == 3 || why == 7; // none, begin time, reservation
        return free && (array_tasks.data()[job] == 0 || array_startable.data()[job] > 0);
    }
};

template <typename T> void add_row(std::vector<int64_t> &words, const View<T> &table, size_t row) {
    const T *from = table.data() + row * table.width();
    words.insert(words.end(), from, from + table.width());
}

template <typename T> nb::object handed_over(std::vector<T> values) {
    return nb::cast(to_numpy(std::move(values)));
}

// The arguments of plan_nodes for the rows that can be planned, gathered from the columns of their
// jobs.
struct Gathered {
    std::vector<int64_t> licences;
    std::vector<int64_t> per_node;
    std::vector<int64_t> per_task;
    std::vector<int32_t> tasks;
    std::vector<int32_t> most_tasks;
    Buffer<bool> exclusive;
    std::vector<int64_t> begin;
    std::vector<int8_t> width_rule;
    std::vector<int64_t> latest;   // by alternative: no bound
    Buffer<bool> beside_depth;     // all false
    std::vector<int32_t> required; // none has required nodes

    Gathered(const Asking &asking, const std::vector<int64_t> &job, size_t n_alternatives)
        : exclusive(job.size()), latest(n_alternatives, NEVER), beside_depth(job.size()),
          required(job.size(), -1) {
        licences.reserve(job.size() * asking.licences.width());
        per_node.reserve(job.size() * asking.per_node.width());
        per_task.reserve(job.size() * asking.per_task.width());
        tasks.reserve(job.size());
        most_tasks.reserve(job.size());
        begin.reserve(job.size());
        width_rule.reserve(job.size());
        for (size_t i = 0; i < job.size(); ++i) {
            const auto at = static_cast<size_t>(job[i]);
            add_row(licences, asking.licences, at);
            add_row(per_node, asking.per_node, at);
            add_row(per_task, asking.per_task, at);
            tasks.push_back(static_cast<int32_t>(asking.tasks.data()[at]));
            most_tasks.push_back(static_cast<int32_t>(asking.most_tasks.data()[at]));
            exclusive[i] = asking.exclusive.data()[at];
            begin.push_back(asking.hold.data()[at] == 3 ? asking.begin.data()[at] : 0);
            width_rule.push_back(asking.width_rule.data()[at]);
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
    const auto expect = [](const char *name, const auto &values, auto least, auto most) {
        expect_within(name, values.data(), values.size(), least, most);
    };
    constexpr int32_t any = std::numeric_limits<int32_t>::max();
    expect("per_node", jobs.per_node, int64_t{0}, MOST_AMOUNT);
    expect("per_task", jobs.per_task, int64_t{0}, MOST_AMOUNT);
    expect("job_counter", jobs.licences, int64_t{0}, MOST_COUNT);
    expect("tasks", jobs.tasks, 0, any);
    expect("max_tasks_per_node", jobs.most_tasks, 0, any);
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
    problem.max_tasks_per_node = jobs.most_tasks.data();
    problem.exclusive = jobs.exclusive.data();
    problem.not_before = jobs.begin.data();
    problem.beside_depth = jobs.beside_depth.data();
    problem.width_rule = jobs.width_rule.data();
    problem.required = jobs.required.data();
    problem.n_required = 0;
    problem.required_nodes = nullptr;
}

class PyLowered {
  public:
    PyLowered(nb::object jobs, size_t n_jobs, std::vector<int64_t> rows)
        : jobs_(std::move(jobs)), columns_(jobs_, n_jobs), rows_(std::move(rows)) {}

    nb::object jobs_;
    Asking columns_;
    std::vector<int64_t> rows_;
    LoweredRows found_;

    nb::object number() const { return handed_over(found_.number); }
    nb::object held() const { return nb::cast(found_.held); }
    nb::object refused() const { return nb::cast(found_.refused); }
    nb::object plannable() const { return handed_over(found_.plannable); }
    nb::object classes() const { return nb::cast(found_.classes); }
    nb::tuple alternatives() const {
        return nb::make_tuple(handed_over(found_.indptr), widened(found_.class_),
                              handed_over(found_.partition), handed_over(found_.time_limit_s),
                              widened(found_.min_nodes), widened(found_.max_nodes));
    }

    bool names_nodes() const {
        for (const int64_t row : found_.plannable) {
            const auto job = static_cast<size_t>(rows_[static_cast<size_t>(row)]);
            if (nb::len(columns_.required[job]) > 0) {
                return true;
            }
        }
        return false;
    }

    // Plans the rows in their order, with the running jobs and nodes of a snapshot.
    PyNodePlan plan(nb::handle snapshot, int64_t depth, int64_t select, nb::handle rank,
                    nb::handle class_nodes, nb::handle nothing) const {
        const nb::object nodes = attribute(snapshot, "nodes");
        const nb::object running = attribute(snapshot, "running");
        const auto of_running = [&](const char *name) -> nb::object {
            return attribute(running, name);
        };
        const nb::object capacity = attribute(nodes, "capacity");
        const nb::object licences = attribute(snapshot, "licence_total");
        const nb::object indptr = of_running("indptr");
        const nb::object held = of_running("nodes");
        const nb::object use = of_running("use");
        const nb::object end = of_running("end_s");
        const nb::object whole = of_running("exclusive");
        const nb::object counted = of_running("licences");
        const nb::tuple none = nb::borrow<nb::tuple>(nothing);
        NodeProblem problem{};
        const NodeWorld world({nb::cast<int64_t>(attribute(snapshot, "now_s")), depth, select,
                               capacity, rank, indptr, held, use, end, whole, counted, class_nodes,
                               none[0], none[1], none[2], none[3], licences},
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

    // The columns of a plan for all rows, from those of the planned rows.
    nb::tuple planned(nb::handle start, nb::handle alternative, nb::handle indptr) const {
        const Column<int64_t> starts("start", start);
        const Column<int32_t> chosen("alternative", alternative);
        const Column<int64_t> offsets("indptr", indptr);
        const size_t n_plannable = found_.plannable.size();
        starts.expect_rows(n_plannable, "like plannable");
        chosen.expect_rows(n_plannable, "like plannable");
        offsets.expect_rows(n_plannable + 1, "one more than plannable");
        return planned(starts.data(), chosen.data(), offsets.data());
    }
    nb::tuple planned_in_order(const PyNodePlan &plan) const {
        const NodePlanResult &found = plan.found;
        if (found.start.size() != found_.plannable.size()) {
            refuse("plan: it is of other rows");
        }
        return planned(found.start.data(), found.alternative.data(), found.indptr.data());
    }
    nb::tuple planned(const int64_t *starts, const int32_t *chosen, const int64_t *offsets) const {
        const size_t n_plannable = found_.plannable.size();
        const size_t n = rows_.size();
        std::vector<int32_t> job(rows_.begin(), rows_.end());
        std::vector<int64_t> start_s(n, -1);
        std::vector<int64_t> end_s(n, 0);
        std::vector<int32_t> partition(n, -1);
        std::vector<int64_t> width(n + 1, 0);
        for (size_t i = 0; i < n_plannable; ++i) {
            const auto row = static_cast<size_t>(found_.plannable[i]);
            start_s[row] = starts[i];
            width[row + 1] = offsets[i + 1] - offsets[i];
            if (starts[i] == -1 || starts[i] == std::numeric_limits<int64_t>::max()) {
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
        return nb::make_tuple(handed_over(std::move(job)), handed_over(std::move(start_s)),
                              handed_over(std::move(end_s)), handed_over(std::move(partition)),
                              handed_over(std::move(width)));
    }

    // Where the columns hold an alternative of a planned row; its first if there is none.
    size_t chosen_at(size_t asked, int32_t alternative) const {
        const int64_t at = found_.indptr[asked] + std::max(alternative, 0);
        if (at >= found_.indptr[asked + 1]) {
            refuse("alternative: there are not so many");
        }
        return static_cast<size_t>(at);
    }

  private:
    static nb::object widened(const std::vector<int32_t> &values) {
        return handed_over(std::vector<int64_t>(values.begin(), values.end()));
    }
};

class PyRequestTable {
  public:
    size_t size() const { return table_.size(); }

    PyLowered *lower(nb::object jobs, nb::handle rows, nb::callable find) {
        const Column<int64_t> given("rows", rows);
        const size_t n_jobs = nb::len(jobs);
        given.within(0, static_cast<int64_t>(n_jobs) - 1);
        auto lowered = std::make_unique<PyLowered>(
            std::move(jobs), n_jobs,
            std::vector<int64_t>(given.data(), given.data() + given.rows()));
        LoweredRows &found = lowered->found_;
        number_rows(*lowered);
        for (size_t row = 0; row < lowered->rows_.size(); ++row) {
            const int64_t number = found.number[row];
            if (number < 0) {
                found.held.push_back(static_cast<int64_t>(row));
                continue;
            }
            if (!table_.answer(number).known) {
                std::vector<RequestAlternative> answer;
                const nb::object told = find(number, lowered->rows_[row]);
                for (const nb::handle one : nb::borrow<nb::list>(told)) {
                    const nb::tuple v = nb::borrow<nb::tuple>(one);
                    const auto class_ = nb::cast<int64_t>(v[0]);
                    if (class_ < 0 || static_cast<size_t>(class_) >= same_.size()) {
                        refuse("find: a class that unite has not heard of");
                    }
                    answer.push_back({class_, nb::cast<int64_t>(v[1]), nb::cast<int64_t>(v[2]),
                                      static_cast<int32_t>(nb::cast<int64_t>(v[3])),
                                      static_cast<int32_t>(nb::cast<int64_t>(v[4]))});
                }
                table_.answer(number).known = true;
                table_.answer(number).alternatives = std::move(answer);
            }
            found.add(static_cast<int64_t>(row), table_.answer(number).alternatives, same_);
        }
        return lowered.release();
    }

    void unite(std::vector<int64_t> same) { same_ = std::move(same); }

    size_t n_reasons() const { return reasons_.size(); }

    // Fills in why each planned row waits; `find` is called for the reasons not known yet.
    void tell(const PyLowered &lowered, const PyNodePlan &plan, nb::handle order, nb::list reasons,
              nb::callable find) {
        const LoweredRows &rows = lowered.found_;
        const NodePlanResult &found = plan.found;
        const size_t n_plannable = rows.plannable.size();
        std::optional<Column<int64_t>> positions;
        if (!order.is_none()) {
            positions.emplace("order", order)
                .expect_rows(n_plannable, "like plannable")
                .within(0, static_cast<int64_t>(n_plannable) - 1);
        }
        if (found.blocked_by.size() != n_plannable || reasons.size() != lowered.rows_.size()) {
            refuse("tell: the plan is of other rows");
        }
        std::vector<int64_t> key;
        for (size_t i = 0; i < n_plannable; ++i) {
            const int8_t verdict = found.blocked_by[i];
            if (verdict == 0) { // it starts now
                continue;
            }
            const size_t asked = positions ? static_cast<size_t>((*positions)[i]) : i;
            const auto row = static_cast<size_t>(rows.plannable[asked]);
            const size_t at = lowered.chosen_at(asked, found.alternative[i]);
            const auto ask = [&] {
                return find(asked, at, static_cast<int>(verdict), found.fit_now[i]);
            };
            if (!write_key(key, static_cast<Blocked>(verdict), rows, row, at, found.fit_now[i])) {
                reasons[row] = ask();
                continue;
            }
            const auto known = reasons_.find(key);
            if (known != reasons_.end()) {
                reasons[row] = known->second;
                continue;
            }
            const nb::object reason = ask();
            reasons[row] = reason;
            reasons_.emplace(key, reason);
        }
    }

  private:
    RequestTable table_;
    std::vector<int64_t> same_; // for each class the first with the same nodes
    std::unordered_map<std::vector<int64_t>, nb::object, HashWords> reasons_;

    // What the text of a verdict depends on; false: on more than that.
    bool write_key(std::vector<int64_t> &key, Blocked verdict, const LoweredRows &rows, size_t row,
                   size_t at, int32_t fit_now) {
        switch (verdict) {
        case Blocked::NEVER_FREED:
        case Blocked::NOT_BEFORE:
        case Blocked::PLANNED_START:
            key.assign({static_cast<int64_t>(verdict)});
            return true;
        case Blocked::NODES_BUSY: {
            const RequestTable::Answer &answer = table_.answer(rows.number[row]);
            key.assign({static_cast<int64_t>(verdict), rows.partition[at], answer.features});
            if (answer.tasks > 0) {
                key.push_back(answer.tasks);
            } else {
                key.insert(key.end(), {rows.min_nodes[at], fit_now});
            }
            return true;
        }
        default:
            return false;
        }
    }
    nb::dict words_; // keys of reasons that depend on objects: the object to its number

    // The object that a column had last, and its number. Most jobs share these objects with the job
    // before them, and a pointer is compared faster than a tuple is hashed.
    struct LastWord {
        PyObject *object = nullptr;
        int64_t number = 0;
    };

    int64_t word(nb::handle object, LastWord &last) {
        if (object.ptr() != last.object) {
            last = {object.ptr(), word(object)};
        }
        return last.number;
    }
    int64_t word(nb::handle object) {
        PyObject *known = PyDict_GetItemWithError(words_.ptr(), object.ptr());
        if (known != nullptr) {
            return PyLong_AsLongLong(known);
        }
        if (PyErr_Occurred() != nullptr) {
            throw nb::python_error();
        }
        const auto number = static_cast<int64_t>(nb::len(words_));
        words_[object] = number;
        return number;
    }

    void number_rows(PyLowered &lowered) {
        const Asking &asking = lowered.columns_;
        std::vector<int64_t> &numbers = lowered.found_.number;
        numbers.reserve(lowered.rows_.size());
        std::vector<int64_t> words;
        LastWord partitions, features, required, excluded;
        for (size_t row = 0; row < lowered.rows_.size(); ++row) {
            if (row > 0 && lowered.rows_[row] == lowered.rows_[row - 1]) { // tasks of an array
                numbers.push_back(numbers.back());
                continue;
            }
            const auto job = static_cast<size_t>(lowered.rows_[row]);
            if (!asking.plannable(job)) {
                numbers.push_back(-1);
                continue;
            }
            words.assign(
                {asking.limit.data()[job], asking.min_nodes.data()[job],
                 asking.max_nodes.data()[job], asking.reservation.data()[job],
                 asking.width_rule.data()[job], asking.tasks.data()[job],
                 asking.most_tasks.data()[job], asking.exclusive.data()[job],
                 word(asking.partitions[job], partitions), word(asking.features[job], features),
                 word(asking.required[job], required), word(asking.excluded[job], excluded),
                 asking.least.data()[job], asking.chunks[job].is_none() ? 0 : 1});
            add_row(words, asking.per_node, job);
            add_row(words, asking.per_task, job);
            add_row(words, asking.licences, job);
            const int64_t number = table_.number(words);
            numbers.push_back(number);
            table_.answer(number).tasks = words[5];
            table_.answer(number).features = words[9];
        }
    }
};

} // namespace

void define_requests(nb::module_ &m) {
    using namespace nb::literals;
    nb::class_<PyLowered>(m, "LoweredRows")
        .def_prop_ro("number", &PyLowered::number)
        .def_prop_ro("held", &PyLowered::held)
        .def_prop_ro("refused", &PyLowered::refused)
        .def_prop_ro("plannable", &PyLowered::plannable)
        .def_prop_ro("classes", &PyLowered::classes)
        .def_prop_ro("names_nodes", &PyLowered::names_nodes)
        .def("alternatives", &PyLowered::alternatives)
        .def("plan", &PyLowered::plan, nb::kw_only(), "snapshot"_a, "depth"_a, "select"_a, "rank"_a,
             "class_nodes"_a, "blackouts"_a)
        .def("planned",
             nb::overload_cast<nb::handle, nb::handle, nb::handle>(&PyLowered::planned, nb::const_),
             "start"_a, "alternative"_a, "indptr"_a)
        .def("planned", &PyLowered::planned_in_order, "plan"_a);
    nb::class_<PyRequestTable>(m, "RequestTable")
        .def(nb::init<>())
        .def("__len__", &PyRequestTable::size)
        .def("unite", &PyRequestTable::unite, "same"_a)
        .def_prop_ro("n_reasons", &PyRequestTable::n_reasons)
        .def("tell", &PyRequestTable::tell, "lowered"_a, "plan"_a, "order"_a.none(), "reasons"_a,
             "find"_a)
        .def("lower", &PyRequestTable::lower, "jobs"_a, "rows"_a, "find"_a,
             nb::rv_policy::take_ownership);
}

} // namespace bridge
