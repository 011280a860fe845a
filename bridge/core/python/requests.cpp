// SPDX-License-Identifier: Apache-2.0
// RequestTable as Python sees it: reads the columns of the waiting jobs, asks what is new, and
// hands columns over.
#include "python/module.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "common/columns.hpp"
#include "python/views.hpp"
#include "queue/request_table.hpp"

namespace bridge {
namespace {

// The columns of waiting jobs that say what they ask for.
struct Asking {
    View<int8_t> hold;
    View<int64_t> array_tasks;
    View<int64_t> array_startable;
    View<int64_t> begin;
    View<int64_t> limit;
    View<int64_t> min_nodes;
    View<int64_t> max_nodes;
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

    Asking(nb::handle jobs, size_t n)
        : hold(jobs, "hold"), array_tasks(jobs, "array_tasks"),
          array_startable(jobs, "array_startable"), begin(jobs, "begin_s"),
          limit(jobs, "time_limit_s"), min_nodes(jobs, "min_nodes"), max_nodes(jobs, "max_nodes"),
          reservation(jobs, "reservation"), width_rule(jobs, "width_rule"), tasks(jobs, "tasks"),
          most_tasks(jobs, "max_tasks_per_node"), exclusive(jobs, "exclusive"),
          per_node(jobs, "per_node", 2), per_task(jobs, "per_task", 2),
          licences(jobs, "licences", 2), partitions(jobs, "partitions", n),
          features(jobs, "features", n), required(jobs, "required", n),
          excluded(jobs, "excluded", n) {
        hold.rows(n);
        array_tasks.rows(n);
        array_startable.rows(n);
        begin.rows(n);
        limit.rows(n);
        min_nodes.rows(n);
        max_nodes.rows(n);
        reservation.rows(n);
        width_rule.rows(n);
        tasks.rows(n);
        most_tasks.rows(n);
        exclusive.rows(n);
        per_node.rows(n);
        per_task.rows(n);
        licences.rows(n);
    }

    // Whether the controller would start it if there were room.
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

class PyLowered {
  public:
    PyLowered(nb::object jobs, size_t n_jobs, std::vector<int64_t> rows)
        : jobs_(std::move(jobs)), columns_(jobs_, n_jobs), rows_(std::move(rows)) {}

    nb::object jobs_;
    Asking columns_;
    std::vector<int64_t> rows_;
    LoweredRows found_;

    nb::object number() const { return handed_over(found_.number); }
    nb::object held() const { return handed_over(found_.held).attr("tolist")(); }
    nb::object refused() const { return handed_over(found_.refused).attr("tolist")(); }
    nb::object asked() const { return handed_over(found_.asked); }
    nb::object classes() const { return handed_over(found_.classes).attr("tolist")(); }
    nb::tuple alternatives() const {
        return nb::make_tuple(handed_over(found_.indptr), handed_over(found_.class_),
                              handed_over(found_.partition), handed_over(found_.time_limit_s),
                              handed_over(found_.min_nodes), handed_over(found_.max_nodes));
    }

    template <typename To, typename From> nb::object gathered(const View<From> &column) const {
        std::vector<To> values;
        values.reserve(found_.asked.size());
        for (const int64_t row : found_.asked) {
            const auto job = static_cast<size_t>(rows_[static_cast<size_t>(row)]);
            values.push_back(static_cast<To>(column.data()[job]));
        }
        return handed_over(std::move(values));
    }
    nb::object gathered_rows(const View<int64_t> &table) const {
        std::vector<int64_t> values;
        values.reserve(found_.asked.size() * table.width());
        for (const int64_t row : found_.asked) {
            add_row(values, table, static_cast<size_t>(rows_[static_cast<size_t>(row)]));
        }
        const size_t width = table.width();
        auto *kept = new std::vector<int64_t>(std::move(values));
        nb::capsule owner(kept,
                          [](void *p) noexcept { delete static_cast<std::vector<int64_t> *>(p); });
        return nb::cast(nb::ndarray<nb::numpy, int64_t, nb::ndim<2>>(
            kept->data(), {found_.asked.size(), width}, owner));
    }
    static nb::object narrow(const std::vector<int64_t> &values) {
        return handed_over(std::vector<int32_t>(values.begin(), values.end()));
    }

    bool names_nodes() const {
        for (const int64_t row : found_.asked) {
            const auto job = static_cast<size_t>(rows_[static_cast<size_t>(row)]);
            if (nb::len(columns_.required[job]) > 0) {
                return true;
            }
        }
        return false;
    }

    nb::dict columns() const {
        std::vector<int64_t> begins;
        for (const int64_t row : found_.asked) {
            const auto job = static_cast<size_t>(rows_[static_cast<size_t>(row)]);
            begins.push_back(columns_.hold.data()[job] == 3 ? columns_.begin.data()[job] : 0);
        }
        nb::dict found;
        found["job_counter"] = gathered_rows(columns_.licences);
        found["alt_indptr"] = handed_over(found_.indptr);
        found["alt_class"] = narrow(found_.class_);
        found["alt_time_limit_s"] = handed_over(found_.time_limit_s);
        found["alt_min_nodes"] = narrow(found_.min_nodes);
        found["alt_max_nodes"] = narrow(found_.max_nodes);
        found["alt_latest"] = nb::none();
        found["per_node"] = gathered_rows(columns_.per_node);
        found["tasks"] = gathered<int32_t>(columns_.tasks);
        found["per_task"] = gathered_rows(columns_.per_task);
        found["max_tasks_per_node"] = gathered<int32_t>(columns_.most_tasks);
        found["exclusive"] = gathered_bools(columns_.exclusive);
        found["not_before"] = handed_over(std::move(begins));
        found["beside_depth"] = nb::none();
        found["width_rule"] = gathered<int8_t>(columns_.width_rule);
        return found;
    }
    nb::object gathered_bools(const View<bool> &column) const {
        Buffer<bool> values(found_.asked.size());
        for (size_t i = 0; i < found_.asked.size(); ++i) {
            values[i] = column.data()[rows_[static_cast<size_t>(found_.asked[i])]];
        }
        return nb::cast(to_numpy(std::move(values)));
    }

    // The columns of a plan, of all rows, from those of the rows that were asked about.
    nb::tuple planned(nb::handle start, nb::handle alternative, nb::handle indptr) const {
        const Column<int64_t> starts("start", start);
        const Column<int32_t> chosen("alternative", alternative);
        const Column<int64_t> offsets("indptr", indptr);
        const size_t n_asked = found_.asked.size();
        starts.expect_rows(n_asked, "like asked");
        chosen.expect_rows(n_asked, "like asked");
        offsets.expect_rows(n_asked + 1, "one more than asked");
        const size_t n = rows_.size();
        std::vector<int32_t> job(rows_.begin(), rows_.end());
        std::vector<int64_t> start_s(n, -1);
        std::vector<int64_t> end_s(n, 0);
        std::vector<int32_t> partition(n, -1);
        std::vector<int64_t> width(n + 1, 0);
        for (size_t i = 0; i < n_asked; ++i) {
            const auto row = static_cast<size_t>(found_.asked[i]);
            start_s[row] = starts[i];
            width[row + 1] = offsets[i + 1] - offsets[i];
            if (starts[i] == -1 || starts[i] == std::numeric_limits<int64_t>::max()) {
                continue;
            }
            const int64_t at = found_.indptr[i] + std::max(chosen[i], 0);
            if (at >= found_.indptr[i + 1]) {
                refuse("alternative: there are not so many");
            }
            partition[row] = static_cast<int32_t>(found_.partition[static_cast<size_t>(at)]);
            end_s[row] = static_cast<int64_t>(
                static_cast<uint64_t>(starts[i]) +
                static_cast<uint64_t>(found_.time_limit_s[static_cast<size_t>(at)]));
        }
        for (size_t row = 0; row < n; ++row) {
            width[row + 1] += width[row];
        }
        return nb::make_tuple(handed_over(std::move(job)), handed_over(std::move(start_s)),
                              handed_over(std::move(end_s)), handed_over(std::move(partition)),
                              handed_over(std::move(width)));
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
                    answer.push_back({nb::cast<int64_t>(v[0]), nb::cast<int64_t>(v[1]),
                                      nb::cast<int64_t>(v[2]), nb::cast<int64_t>(v[3]),
                                      nb::cast<int64_t>(v[4])});
                }
                table_.answer(number) = {true, std::move(answer)};
            }
            found.add(static_cast<int64_t>(row), table_.answer(number).alternatives);
        }
        return lowered.release();
    }

  private:
    RequestTable table_;
    nb::dict words_; // of what is told by objects: the object to its number

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
            words.assign({asking.limit.data()[job], asking.min_nodes.data()[job],
                          asking.max_nodes.data()[job], asking.reservation.data()[job],
                          asking.width_rule.data()[job], asking.tasks.data()[job],
                          asking.most_tasks.data()[job], asking.exclusive.data()[job],
                          word(asking.partitions[job]), word(asking.features[job]),
                          word(asking.required[job]), word(asking.excluded[job])});
            add_row(words, asking.per_node, job);
            add_row(words, asking.per_task, job);
            add_row(words, asking.licences, job);
            numbers.push_back(table_.number(words));
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
        .def_prop_ro("asked", &PyLowered::asked)
        .def_prop_ro("classes", &PyLowered::classes)
        .def_prop_ro("names_nodes", &PyLowered::names_nodes)
        .def("alternatives", &PyLowered::alternatives)
        .def("columns", &PyLowered::columns)
        .def("planned", &PyLowered::planned, "start"_a, "alternative"_a, "indptr"_a);
    nb::class_<PyRequestTable>(m, "RequestTable")
        .def(nb::init<>())
        .def("__len__", &PyRequestTable::size)
        .def("lower", &PyRequestTable::lower, "jobs"_a, "rows"_a, "find"_a,
             nb::rv_policy::take_ownership);
}

} // namespace bridge
