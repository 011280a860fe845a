// SPDX-License-Identifier: Apache-2.0
// Python binding of Book: names of its methods and arguments.
#include "python/book/book.hpp"
#include "python/module.hpp"

namespace bridge {

void define_book(nb::module_ &m) {
    using namespace nb::literals;
    nb::enum_<Arrangement>(m, "Arrangement", nb::is_arithmetic(),
                           "How the chunks of a request are placed.")
        .value("FREE", Arrangement::FREE, "Several chunks may share a node.")
        .value("PACK", Arrangement::PACK, "All on one node.")
        .value("SCATTER", Arrangement::SCATTER, "One chunk on a node at most.");
    nb::enum_<TermMode>(m, "TermMode", nb::is_arithmetic(), "How a constraint applies to a job.")
        .value("BOTH", TermMode::BOTH, "The job is checked and counts (a limit, a licence).")
        .value("COUNT", TermMode::COUNT,
               "The job counts, even above the bound (a job with access to a reserved amount).")
        .value("CHECK", TermMode::CHECK, "The job is checked by itself, and does not count.");
    nb::class_<PyBookPlan>(m, "BookPlan", "What ``Book.plan_many`` found and booked.")
        .def_ro("start", &PyBookPlan::start, "(n_jobs,) s; NEVER for a job that is not booked.")
        .def_ro("indptr", &PyBookPlan::indptr,
                "(n_jobs + 1,) CSR offsets into ``nodes``, ``groups`` and ``chunks``.")
        .def_ro("nodes", &PyBookPlan::nodes, "Node indices, in the order of the book.")
        .def_ro("groups", &PyBookPlan::groups, "Which group of the request has chunks there.")
        .def_ro("chunks", &PyBookPlan::chunks, "How many, >= 1.")
        .def_ro("blocked_by", &PyBookPlan::blocked_by,
                R"((n_jobs,) ``Blocked`` codes; empty without reasons.

COUNTER and NEVER_COUNTER mean a constraint; NODES_BUSY that not even one second fits now;
BLACKOUT that it would, but too many nodes are closed, or close before the job would end.)")
        .def_ro("blocked_constraint", &PyBookPlan::blocked_constraint,
                "(n_jobs,) the constraint for COUNTER and NEVER_COUNTER, or -1; empty without "
                "reasons.");
    nb::class_<PyKept>(m, "Kept", "What ``Book.keep_many`` did.")
        .def_ro("done", &PyKept::done, "The first job that was not dealt with; n: all were.")
        .def_ro("kept", &PyKept::kept, "(n,) which are booked where they were.")
        .def_ro("start", &PyKept::start, "(n,) s; NEVER for a job that is not booked.")
        .def_ro("blocked_by", &PyKept::blocked_by, "(n,) of those that moved, as in ``BookPlan``.")
        .def_ro("blocked_constraint", &PyKept::blocked_constraint, "(n,) likewise.");
    nb::class_<PyBookings>(m, "Bookings", "Bookings as columns; ``book_many`` takes them back.")
        .def_ro("job", &PyBookings::job, "(n,) job numbers.")
        .def_ro("request", &PyBookings::request, "(n,) requests; -1 for one of ``book_running``.")
        .def_ro("start", &PyBookings::start, "(n,) s.")
        .def_ro("end", &PyBookings::end, "(n,) s; NEVER for one that does not end.")
        .def_ro("indptr", &PyBookings::indptr,
                "(n + 1,) CSR offsets into ``nodes``, ``groups`` and ``chunks``.")
        .def_ro("nodes", &PyBookings::nodes, "Node indices, in the order of the book.")
        .def_ro("groups", &PyBookings::groups, "Groups; -1 for one of ``book_running``.")
        .def_ro("chunks", &PyBookings::chunks, "Chunks.");
    nb::class_<PyBook>(m, "Book",
                       R"(The use of every node and every constraint over time, from now on.

Terms: a *class* is a set of eligible nodes with closed times; a *request* is groups of equal
*chunks*, each chunk within one node; a *constraint* is a step function of time under which a
sum of amounts must stay; a job's *terms* are its parts in constraints; a *booking* is a job at
[start, end) on nodes.

Rules:

1. A search is exact: a start is skipped only if no mapping exists there. (Packings of many
   groups may be too many to try all: ``given_up`` counts the starts skipped for that.)
2. Nodes are taken in order of rank, then index. One group takes the fewest nodes that hold it,
   but none of higher rank to save one of lower rank. Of several groups, those with the largest
   chunks (share of the system) are placed first, as many on each node as fit (FREE).
3. Booking a job never moves or changes another booking.
4. A node without any resource (all capacities 0) is not used. An exclusive job has a node to
   itself for its whole length; its chunks are then limited by the capacity only.
5. Classes, constraints and requests are names: ``undo`` leaves them. Everything else that was
   done since a mark is undone exactly.
6. The same calls in the same order give the same book.

``terms`` of one job are None or three columns: constraints (int32), amounts (int64, 0 to
2**40), ``TermMode`` codes (int8). Of many jobs they are CSR: ``term_indptr`` (n_jobs + 1,)
int64 into ``term_constraint``, ``term_amount``, ``term_mode``. Node sets are bitset rows (see
``pack_nodes``). Every method raises ``ValueError`` naming the argument that is wrong, and then
has changed nothing.)")
        .def(nb::init<int64_t, nb::handle, nb::handle,
                      const std::vector<std::pair<int64_t, nb::object>> &, int64_t>(),
             "now"_a, "capacity"_a, "node_rank"_a,
             "protections"_a = std::vector<std::pair<int64_t, nb::object>>(), "select"_a = 0,
             R"(Begin an empty book.

Args:
    now: the present, s, >= 0.
    capacity: (n_nodes, n_res), 0 to 2**40, like all requested amounts.
    node_rank: (n_nodes,) nodes of low rank are taken first.
    protections: each is a protected resource (column of ``capacity``) and what every node
        keeps for chunks that request it, (n_nodes, n_res) int64: all other chunks together
        get no more of the other resources than the capacity less that, and cannot have
        such a node exclusively. (PACK: unless a chunk of the same job requests it.)
    select: a ``Select`` code. Requests of several groups that request different chunks take
        nodes as by SEQUENTIAL.)")
        .def_prop_ro("now", &PyBook::now, "The present, s.")
        .def_prop_ro("n_nodes", &PyBook::n_nodes, "Number of nodes.")
        .def_prop_ro("given_up", &PyBook::given_up,
                     "Number of starts skipped because the search for a packing grew too large.")
        .def("__len__", &PyBook::size, "Number of bookings.")
        .def("advance", &PyBook::advance, "now"_a,
             R"(Advance the present; the past is discarded, bookings stay until revoked.

Raises:
    ValueError: ``now`` lies in the past, or a mark is set.)")
        .def("add_class", &PyBook::add_class, "nodes"_a,
             "Add a set of eligible nodes; return its number.")
        .def("set_class", &PyBook::set_class, "cls"_a, "nodes"_a,
             R"(Replace the nodes of a class; bookings stay, and what was learnt about it is kept.

Raises:
    ValueError: the class has closed times, or a mark is set.)")
        .def("close", &PyBook::close, "cls"_a, "start"_a, "end"_a, "nodes"_a,
             "Close nodes to a class within [start, end); bookings stay. Return its number.")
        .def("reopen", &PyBook::reopen, "closure"_a,
             "Undo one ``close``; no effect if it is undone already.")
        .def("add_constraint", &PyBook::add_constraint, "starts"_a, "amounts"_a,
             R"(Add a step function.

Args:
    starts: (n,) ascending; ``amounts[i]`` holds from ``starts[i]`` to the next, the last
        one for ever, the first one also before its start.
    amounts: (n,) 0 to 2**60, or NEVER: unbounded.

Returns:
    Its number.)")
        .def("set_constraint", &PyBook::set_constraint, "constraint"_a, "starts"_a, "amounts"_a,
             "Replace a step function; what counts on it stays.")
        .def("constraint_use", &PyBook::constraint_use, "constraint"_a,
             "Return a constraint over time: slot starts, the bounds, and the amounts that count.")
        .def("add_request", &PyBook::add_request, "count"_a, "want"_a, "cls"_a, "arrangement"_a = 0,
             "exclusive"_a = false, "max_per_node"_a = nb::none(),
             R"(Add a request, or find it again: equal requests have one number.

Args:
    count: (n_groups,) chunks of each group, 1 to 2**30; at most 64 groups.
    want: (n_groups, n_res) what each chunk requests.
    cls: (n_groups,) class of each group.
    arrangement: an ``Arrangement`` code.
    exclusive: whether it requests nodes for itself.
    max_per_node: (n_groups,) chunks of the group on a node at most; 0: no limit.)")
        .def("find", &PyBook::find, "request"_a, "length"_a, "terms"_a = nb::none(),
             "earliest"_a = nb::none(), "latest"_a = NEVER, "last"_a = false,
             R"(Look for the earliest (``last``: the latest) start in [earliest, latest].

Args:
    request: what.
    length: s, >= 1; NEVER: it does not end.
    earliest: s; None or the past: now.
    latest: the latest start allowed, s. A deadline is ``latest + length``.
    last: whether the latest start is wanted.

Returns:
    Start, nodes, groups, chunks (as in ``BookPlan``); None if there is none.)")
        .def("why", &PyBook::why, "request"_a, "length"_a, "terms"_a = nb::none(),
             "earliest"_a = nb::none(), "latest"_a = NEVER,
             "Return why a job would not start now: a ``Blocked`` code and a constraint or -1.")
        .def("book", &PyBook::book, "job"_a, "request"_a, "start"_a, "length"_a, "terms"_a,
             "nodes"_a, "groups"_a, "chunks"_a,
             "Book a job; False, without changes, if it does not fit there.")
        .def("revoke", &PyBook::revoke, "job"_a, "Remove a booking.")
        .def("book_many", &PyBook::book_many, nb::kw_only(), "job"_a, "request"_a, "start"_a,
             "length"_a, "indptr"_a, "nodes"_a, "groups"_a, "chunks"_a, "term_indptr"_a,
             "term_constraint"_a, "term_amount"_a, "term_mode"_a, "forced"_a = false,
             "stop"_a = false, R"(Book jobs where they are known to be, in order.

Args:
    job: (n,) new numbers.
    request: (n,).
    start: (n,) s; before now only if forced.
    length: (n,) s.
    indptr: (n + 1,) CSR offsets.
    nodes: node indices.
    groups: groups of the requests.
    chunks: chunks, >= 1.
    forced: book them even where they do not fit (running jobs are where they are).
    stop: book none after the first one that does not fit.

Returns:
    (n,) which are booked.)")
        .def("keep_many", &PyBook::keep_many, nb::kw_only(), "job"_a, "request"_a, "start"_a,
             "length"_a, "indptr"_a, "nodes"_a, "groups"_a, "chunks"_a, "term_indptr"_a,
             "term_constraint"_a, "term_amount"_a, "term_mode"_a, "stands"_a, "movable"_a,
             "first"_a = 0,
             R"(Book jobs where they were, in order, or else on other nodes at the same time.

Args:
    start: (n,) s, not before now.
    stands: (n,) which may be booked where they were; the nodes of others are ignored.
    movable: (n,) which may be booked elsewhere; the first other one that does not fit ends
        the call.
    first: the jobs before this one are passed over.

Returns:
    Outcomes of decisions.)")
        .def(
            "settle", &PyBook::settle, nb::kw_only(), "job"_a, "request"_a, "start"_a, "length"_a,
            "term_indptr"_a, "term_constraint"_a, "term_amount"_a, "term_mode"_a, "booked"_a,
            "unsure"_a, "movable"_a, "maximum"_a,
            R"(What ``keep_many`` makes of an empty book, in one that holds the jobs where they were.

Only jobs near what does not fit are looked at.

Args:
    job: (n,) in order; nothing else is booked but running jobs.
    request: (n,) requests.
    start: (n,) s, not before now: where they are booked, or are to be.
    length: (n,) s.
    term_mode: see the class; none is ``CHECK``.
    booked: (n,) which are booked, whether they fit or not (``book_many``, ``forced``).
    unsure: (n,) which are to be looked at although no node of theirs is overbooked.
    movable: (n,) which may be booked elsewhere.
    maximum: jobs that are looked at.

Returns:
    Outcomes of decisions; None: it cannot be told so, and the book is as it was. So it is
    if more than `maximum` jobs would be looked at, or one that asks for chunks of several
    kinds, has terms but no place, is not movable, or takes whole nodes by best fit; or if a
    constraint is exceeded.)")
        .def("book_running", &PyBook::book_running, nb::kw_only(), "job"_a, "run_indptr"_a,
             "run_nodes"_a, "run_use"_a, "run_end"_a, "run_exclusive"_a, "term_indptr"_a,
             "term_constraint"_a, "term_amount"_a, "term_mode"_a,
             R"(Book running jobs by what they hold, from now to their ends (now + 1 at the least).

The ``run_*`` columns are those of ``plan_nodes``.)")
        .def("plan_many", &PyBook::plan_many, nb::kw_only(), "job"_a, "request"_a, "length"_a,
             "not_before"_a, "latest"_a, "last"_a, "term_indptr"_a, "term_constraint"_a,
             "term_amount"_a, "term_mode"_a, "reasons"_a = true, "depth"_a = NEVER,
             R"(Find and book each job in order; one for which there is no start is left out.

Args:
    job: (n,) new numbers.
    request: (n,).
    length: (n,) s.
    not_before: (n,) earliest starts, s.
    latest: (n,) latest starts, s; NEVER: any.
    last: (n,) whether the latest start is wanted.
    reasons: whether to say why jobs do not start now (costs some time).
    depth: once so many of these jobs start later than now, the others start now or are
        left out; ``UNLIMITED``: never.)")
        .def(
            "replan_many", &PyBook::replan_many, "job"_a, "not_before"_a,
            R"(Move each job in order to its earliest start, if that is earlier than the booked one.

One that has started, and one of ``book_running``, stays.

Args:
    job: (n,) booked jobs.
    not_before: (n,) earliest starts, s.

Returns:
    (n,) the starts they have now.)")
        .def("bookings", &PyBook::bookings, "job"_a = nb::none(),
             "Return bookings: of these jobs, or all in order of start, then of booking.")
        .def("free_at", &PyBook::free_at, "time"_a,
             R"(Return what is free at a time, (n_nodes, n_res); 0 on nodes held exclusively.

Negative where a node lost what is booked on it.)")
        .def("holders", &PyBook::holders, "request"_a, "terms"_a, "start"_a, "length"_a,
             R"(Return what blocks a request at [start, start + length).

Returns:
    The jobs that use, at some second then, a resource of which eligible nodes have too
    little for one more chunk, or that count on constraints that cannot hold it; and these
    constraints.)")
        .def("overbooked", &PyBook::overbooked,
             "Whether more is booked at some second than a node has or a constraint allows.")
        .def("mark", &PyBook::mark, "Begin a what-if; marks nest.")
        .def("undo", &PyBook::undo, "mark"_a,
             "Undo everything since the mark, and end it and those within it.")
        .def("keep", &PyBook::keep, "mark"_a, "End the what-if and keep its changes.");
}

} // namespace bridge
