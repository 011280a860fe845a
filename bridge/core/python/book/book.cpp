// SPDX-License-Identifier: Apache-2.0
// Python binding of Book: names of its methods and arguments.
#include "python/book/book.hpp"
#include "python/module.hpp"

namespace bridge {

void define_book(nb::module_ &m) {
    using namespace nb::literals;
    nb::enum_<Arrangement>(m, "Arrangement", nb::is_arithmetic())
        .value("FREE", Arrangement::FREE)
        .value("PACK", Arrangement::PACK)
        .value("SCATTER", Arrangement::SCATTER);
    nb::enum_<TermMode>(m, "TermMode", nb::is_arithmetic())
        .value("BOTH", TermMode::BOTH)
        .value("COUNT", TermMode::COUNT)
        .value("CHECK", TermMode::CHECK);
    nb::class_<PyBookPlan>(m, "BookPlan")
        .def_ro("start", &PyBookPlan::start)
        .def_ro("indptr", &PyBookPlan::indptr)
        .def_ro("nodes", &PyBookPlan::nodes)
        .def_ro("groups", &PyBookPlan::groups)
        .def_ro("chunks", &PyBookPlan::chunks)
        .def_ro("blocked_by", &PyBookPlan::blocked_by)
        .def_ro("blocked_constraint", &PyBookPlan::blocked_constraint);
    nb::class_<PyKept>(m, "Kept")
        .def_ro("done", &PyKept::done)
        .def_ro("kept", &PyKept::kept)
        .def_ro("start", &PyKept::start)
        .def_ro("blocked_by", &PyKept::blocked_by)
        .def_ro("blocked_constraint", &PyKept::blocked_constraint);
    nb::class_<PyBookings>(m, "Bookings")
        .def_ro("job", &PyBookings::job)
        .def_ro("request", &PyBookings::request)
        .def_ro("start", &PyBookings::start)
        .def_ro("end", &PyBookings::end)
        .def_ro("indptr", &PyBookings::indptr)
        .def_ro("nodes", &PyBookings::nodes)
        .def_ro("groups", &PyBookings::groups)
        .def_ro("chunks", &PyBookings::chunks);
    nb::class_<PyBook>(m, "Book")
        .def(nb::init<int64_t, nb::handle, nb::handle,
                      const std::vector<std::pair<int64_t, nb::object>> &, int64_t>(),
             "now"_a, "capacity"_a, "node_rank"_a,
             "protections"_a = std::vector<std::pair<int64_t, nb::object>>(), "select"_a = 0)
        .def_prop_ro("now", &PyBook::now)
        .def_prop_ro("n_nodes", &PyBook::n_nodes)
        .def_prop_ro("given_up", &PyBook::given_up)
        .def("__len__", &PyBook::size)
        .def("advance", &PyBook::advance, "now"_a)
        .def("add_class", &PyBook::add_class, "nodes"_a)
        .def("set_class", &PyBook::set_class, "cls"_a, "nodes"_a)
        .def("close", &PyBook::close, "cls"_a, "start"_a, "end"_a, "nodes"_a)
        .def("reopen", &PyBook::reopen, "closure"_a)
        .def("add_constraint", &PyBook::add_constraint, "starts"_a, "amounts"_a)
        .def("set_constraint", &PyBook::set_constraint, "constraint"_a, "starts"_a, "amounts"_a)
        .def("constraint_use", &PyBook::constraint_use, "constraint"_a)
        .def("add_request", &PyBook::add_request, "count"_a, "want"_a, "cls"_a, "arrangement"_a = 0,
             "exclusive"_a = false, "most_per_node"_a = nb::none())
        .def("find", &PyBook::find, "request"_a, "length"_a, "terms"_a = nb::none(),
             "earliest"_a = nb::none(), "latest"_a = NEVER, "last"_a = false)
        .def("why", &PyBook::why, "request"_a, "length"_a, "terms"_a = nb::none(),
             "earliest"_a = nb::none(), "latest"_a = NEVER)
        .def("book", &PyBook::book, "job"_a, "request"_a, "start"_a, "length"_a, "terms"_a,
             "nodes"_a, "groups"_a, "chunks"_a)
        .def("revoke", &PyBook::revoke, "job"_a)
        .def("book_many", &PyBook::book_many, nb::kw_only(), "job"_a, "request"_a, "start"_a,
             "length"_a, "indptr"_a, "nodes"_a, "groups"_a, "chunks"_a, "term_indptr"_a,
             "term_constraint"_a, "term_amount"_a, "term_mode"_a, "forced"_a = false,
             "stop"_a = false)
        .def("keep_many", &PyBook::keep_many, nb::kw_only(), "job"_a, "request"_a, "start"_a,
             "length"_a, "indptr"_a, "nodes"_a, "groups"_a, "chunks"_a, "term_indptr"_a,
             "term_constraint"_a, "term_amount"_a, "term_mode"_a, "stands"_a, "movable"_a,
             "first"_a = 0)
        .def("settle", &PyBook::settle, nb::kw_only(), "job"_a, "request"_a, "start"_a, "length"_a,
             "term_indptr"_a, "term_constraint"_a, "term_amount"_a, "term_mode"_a, "booked"_a,
             "unsure"_a, "movable"_a, "most"_a)
        .def("book_running", &PyBook::book_running, nb::kw_only(), "job"_a, "run_indptr"_a,
             "run_nodes"_a, "run_use"_a, "run_end"_a, "run_exclusive"_a, "term_indptr"_a,
             "term_constraint"_a, "term_amount"_a, "term_mode"_a)
        .def("plan_many", &PyBook::plan_many, nb::kw_only(), "job"_a, "request"_a, "length"_a,
             "not_before"_a, "latest"_a, "last"_a, "term_indptr"_a, "term_constraint"_a,
             "term_amount"_a, "term_mode"_a, "reasons"_a = true, "depth"_a = NEVER)
        .def("replan_many", &PyBook::replan_many, "job"_a, "not_before"_a)
        .def("bookings", &PyBook::bookings, "job"_a = nb::none())
        .def("free_at", &PyBook::free_at, "time"_a)
        .def("holders", &PyBook::holders, "request"_a, "terms"_a, "start"_a, "length"_a)
        .def("overbooked", &PyBook::overbooked)
        .def("mark", &PyBook::mark)
        .def("undo", &PyBook::undo, "mark"_a)
        .def("keep", &PyBook::keep, "mark"_a);
}

} // namespace bridge
