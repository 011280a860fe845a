// SPDX-License-Identifier: Apache-2.0
// Python binding of RequestTable: reads the columns of the pending jobs, asks Python for what is
// new, and returns columns.
#include "python/module.hpp"

#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/columns.hpp"
#include "python/queue/lowered_rows.hpp"
#include "queue/request_table.hpp"

namespace bridge {
namespace {

class PyRequestTable {
  public:
    size_t size() const { return table_.size(); }

    PyLoweredRows *lower(nb::object jobs, Array<int64_t> rows, nb::callable find) {
        const Column<int64_t> given("rows", rows);
        const size_t n_jobs = nb::len(jobs);
        given.within(0, static_cast<int64_t>(n_jobs) - 1);
        auto lowered = std::make_unique<PyLoweredRows>(
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
    void tell(const PyLoweredRows &lowered, const PyNodePlan &plan, Array<int64_t> order,
              nb::list reasons, nb::callable find) {
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
            const size_t planned_row = positions ? static_cast<size_t>((*positions)[i]) : i;
            const auto row = static_cast<size_t>(rows.plannable[planned_row]);
            const size_t at = lowered.chosen_at(planned_row, found.alternative[i]);
            const auto ask = [&] {
                return find(planned_row, at, static_cast<int>(verdict), found.fit_now[i]);
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
    nb::dict words_; // objects that are part of a key, and their numbers

    // Everything that the text of a verdict depends on; false: it depends on more.
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

    static constexpr size_t NUMBERS = 14; // of a request, beside its amounts

    void number_rows(PyLoweredRows &lowered) {
        const JobRequests &requests = lowered.columns_;
        std::vector<int64_t> &numbers = lowered.found_.number;
        numbers.reserve(lowered.rows_.size());
        std::vector<int64_t> words(NUMBERS + requests.per_node.width() + requests.per_task.width() +
                                   requests.licences.width());
        LastWord partitions, features, required, excluded;
        for (size_t row = 0; row < lowered.rows_.size(); ++row) {
            if (row > 0 && lowered.rows_[row] == lowered.rows_[row - 1]) { // tasks of an array
                numbers.push_back(numbers.back());
                continue;
            }
            const auto job = static_cast<size_t>(lowered.rows_[row]);
            if (!requests.plannable(job)) {
                numbers.push_back(-1);
                continue;
            }
            int64_t *end = words.data();
            for (const int64_t one :
                 {requests.limit.data()[job], requests.min_nodes.data()[job],
                  requests.max_nodes.data()[job], requests.reservation.data()[job],
                  int64_t{requests.width_rule.data()[job]}, requests.tasks.data()[job],
                  requests.max_tasks.data()[job], int64_t{requests.exclusive.data()[job]},
                  word(requests.partitions[job], partitions),
                  word(requests.features[job], features), word(requests.required[job], required),
                  word(requests.excluded[job], excluded), requests.minimum.data()[job],
                  int64_t{requests.chunks[job].is_none() ? 0 : 1}}) {
                *end++ = one;
            }
            end = put_row(end, requests.per_node, job);
            end = put_row(end, requests.per_task, job);
            put_row(end, requests.licences, job);
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
    nb::class_<PyLoweredRows>(
        m, "LoweredRows", "The rows of one cycle: which can be planned, and their alternatives.")
        .def_prop_ro("number", &PyLoweredRows::number,
                     "(n_rows,) the request of each; -1: held by the controller.")
        .def_prop_ro("held", &PyLoweredRows::held, "Rows held by the controller.")
        .def_prop_ro("refused", &PyLoweredRows::refused, "Rows that cannot run, by their requests.")
        .def_prop_ro("plannable", &PyLoweredRows::plannable, "(n_plannable,) the other rows.")
        .def_prop_ro(
            "classes", &PyLoweredRows::classes,
            "Classes in use, as numbered by `find`; `alternatives` has positions in this list.")
        .def_prop_ro("names_nodes", &PyLoweredRows::names_nodes,
                     "Whether one of the plannable rows requires certain nodes.")
        .def(
            "alternatives", &PyLoweredRows::alternatives,
            "For the plannable rows: offsets, class, partition, time limit, fewest and most nodes.")
        .def("plan", &PyLoweredRows::plan, nb::kw_only(), "snapshot"_a, "depth"_a, "select"_a,
             "rank"_a, "class_nodes"_a, "blackouts"_a,
             R"(Plans the plannable rows in their order, as ``plan_nodes`` does.

The rows have no latest starts, no row is planned beside the depth, and none requires
certain nodes.

Args:
    snapshot: of the lowered jobs; its running jobs, nodes and clock are read by name.
    depth: how many rows may hold a planned start.
    select: a ``Select``.
    rank: (n_nodes,) ``node_rank`` of ``plan_nodes``.
    class_nodes: (n_classes, n_words) bitsets of nodes.
    blackouts: class, start, end and nodes of each.

Raises:
    ValueError: the columns do not fit together; the text names one.)")
        .def("planned", &PyLoweredRows::planned, "start"_a, "alternative"_a, "indptr"_a,
             "The same for a plan of the plannable rows in their order.")
        .def("planned", &PyLoweredRows::planned_in_order, "plan"_a);
    nb::class_<PyRequestTable>(m, "RequestTable",
                               "The numbered requests of jobs, with their alternatives.")
        .def(nb::init<>())
        .def("__len__", &PyRequestTable::size, "The number of distinct requests so far.")
        .def(
            "unite", &PyRequestTable::unite, "same"_a,
            R"(Sets which classes have the same nodes now; to be called before `find` returns a new one.

Args:
    same: (n_classes,) for each the first class with the same nodes.)")
        .def_prop_ro("n_reasons", &PyRequestTable::n_reasons,
                     "The number of distinct reasons kept.")
        .def("tell", &PyRequestTable::tell, "lowered"_a, "plan"_a, "order"_a.none(), "reasons"_a,
             "find"_a, R"(Fills in why each plannable row waits, for those that do not start now.

Only for rows that name no nodes and request no licence, without reservations. Most reasons
depend on few values and are cached.

Args:
    lowered: by this table.
    plan: of its plannable rows.
    order: (n_plannable,) in which they were planned; None: their own order.
    reasons: (n_rows,) to be filled.
    find: returns a reason; called with a position among the plannable rows, that of the
        alternative judged, the verdict, and how many nodes fit now.)")
        .def("lower", &PyRequestTable::lower, "jobs"_a, "rows"_a, "find"_a,
             nb::rv_policy::take_ownership, R"(Lowers rows of pending jobs; about 0.2 us each.

Args:
    jobs: a table of pending jobs; its columns are read by name.
    rows: (n_rows,) of it.
    find: called with the number of a new request, and a row of `jobs` that has it. Returns
        its alternatives, each a class, a partition, a time limit, and the fewest and most
        nodes. Empty: it cannot run.

Raises:
    ValueError: the columns do not fit together; the text names one.)");
}

} // namespace bridge
