// SPDX-License-Identifier: Apache-2.0
// The Python module: checks columns, releases the interpreter, returns vectors.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <optional>
#include <stdexcept>

#include "common/columns.hpp"
#include "common/times.hpp"
#include "counts/counts.hpp"
#include "counts/replay.hpp"
#include "hostlist/hostlist.hpp"
#include "python/module.hpp"

namespace bridge {
namespace {

template <typename Result, typename Work> Result unlocked(Work work) {
    nb::gil_scoped_release release;
    return work();
}

Array<int64_t> plan_counts_py(int64_t now, int64_t capacity, Array<int64_t> running_end,
                              Array<int64_t> running_count, Array<int64_t> count,
                              Array<int64_t> time_limit, Array<int64_t> not_before, int64_t depth) {
    scalar("now", now, 0, NEVER - 1);
    scalar("capacity", capacity, 0, MAX_COUNT);
    scalar("depth", depth, 0);
    const Column<int64_t> ends("running_end", running_end);
    const Column<int64_t> held("running_count", running_count);
    const Column<int64_t> counts("count", count);
    const Column<int64_t> limits("time_limit", time_limit);
    const Column<int64_t> earliest("not_before", not_before);
    held.expect_rows(ends.rows(), "like running_end").within(0, MAX_COUNT);
    counts.at_least(1);
    limits.expect_rows(counts.rows(), "like count").at_least(1);
    earliest.expect_rows(counts.rows(), "like count");
    std::vector<CountProfile::Holder> running;
    int64_t sum = 0;
    for (size_t i = 0; i < ends.rows(); ++i) {
        running.push_back({ends[i], held[i]});
        sum += held[i];
        if (sum > MAX_COUNT) {
            refuse("running_count: the sum is more than " + std::to_string(MAX_COUNT));
        }
    }
    std::vector<int64_t> start(counts.rows());
    unlocked<void>([&] {
        plan_counts(now, capacity, std::move(running),
                    {counts.rows(), counts.data(), limits.data(), earliest.data()}, depth,
                    start.data());
    });
    return to_numpy(std::move(start));
}

std::pair<Array<int64_t>, Array<int32_t>> map_counts_py(int64_t n_nodes, Array<int64_t> start,
                                                        Array<int64_t> end, Array<int64_t> count,
                                                        Array<int64_t> running_end,
                                                        Array<int64_t> running_indptr,
                                                        Array<int32_t> running_nodes) {
    scalar("n_nodes", n_nodes, 0, MAX_COUNT);
    const Column<int64_t> starts("start", start);
    const Column<int64_t> ends("end", end);
    const Column<int64_t> counts("count", count);
    const Column<int64_t> held_until("running_end", running_end);
    const Column<int64_t> indptr("running_indptr", running_indptr);
    const Column<int32_t> nodes("running_nodes", running_nodes);
    starts.at_least(UNPLANNED);
    ends.expect_rows(starts.rows(), "like start");
    counts.expect_rows(starts.rows(), "like start").within(1, MAX_COUNT);
    for (size_t j = 0; j < starts.rows(); ++j) {
        if (starts[j] != UNPLANNED && starts[j] != NEVER && ends[j] <= starts[j]) {
            refuse("end: job " + std::to_string(j) + " ends at " + std::to_string(ends[j]) +
                   ", not after its start at " + std::to_string(starts[j]));
        }
    }
    indptr.expect_rows(held_until.rows() + 1, "one more than running_end")
        .expect_offsets(nodes.rows(), "running_nodes");
    nodes.within(0, static_cast<int32_t>(n_nodes) - 1);
    std::vector<NodeHolder> running;
    for (size_t i = 0; i < held_until.rows(); ++i) {
        running.push_back({held_until[i], nodes.data() + indptr[i],
                           static_cast<size_t>(indptr[i + 1] - indptr[i])});
    }
    std::vector<int64_t> offsets(1, 0);
    for (size_t j = 0; j < starts.rows(); ++j) {
        const bool placed = starts[j] != UNPLANNED && starts[j] != NEVER;
        offsets.push_back(offsets[j] + (placed ? counts[j] : 0));
    }
    Buffer<int32_t> mapped(static_cast<size_t>(offsets.back()));
    unlocked<void>([&] {
        std::vector<int32_t *> into;
        for (size_t j = 0; j < starts.rows(); ++j) {
            into.push_back(mapped.data() + offsets[j]);
        }
        map_counts(static_cast<size_t>(n_nodes), starts.rows(), starts.data(), ends.data(),
                   counts.data(), running, into.data());
    });
    return {to_numpy(std::move(offsets)), to_numpy(std::move(mapped))};
}

// Results: arrays made once, read as attributes.
struct PyReplay {
    Array<int64_t> start;
    Array<int64_t> decision_ns;
    Array<int64_t> promises;
    size_t decisions;
};

PyReplay replay_counts_py(Array<int64_t> submit, Array<int64_t> runtime, Array<int64_t> time_limit,
                          Array<int64_t> count, int64_t capacity, int64_t depth,
                          Array<int64_t> order) {
    scalar("capacity", capacity, 0, MAX_COUNT);
    scalar("depth", depth, 0);
    const Column<int64_t> submits("submit", submit);
    const Column<int64_t> runtimes("runtime", runtime);
    const Column<int64_t> limits("time_limit", time_limit);
    const Column<int64_t> counts("count", count);
    constexpr int64_t max_seconds = int64_t{1} << 40; // sums over a trace must not overflow
    submits.within(0, max_seconds);
    runtimes.expect_rows(submits.rows(), "like submit").within(1, max_seconds);
    limits.expect_rows(submits.rows(), "like submit").at_least(1);
    counts.expect_rows(submits.rows(), "like submit").at_least(1);
    std::optional<Column<int64_t>> orders;
    if (!order.is_none()) {
        orders.emplace("order", order);
        orders->expect_rows(submits.rows(), "like submit");
    }
    ReplayResult result = unlocked<ReplayResult>([&] {
        return replay_counts({submits.rows(), submits.data(), runtimes.data(), limits.data(),
                              counts.data(), orders ? orders->data() : nullptr},
                             capacity, depth);
    });
    const size_t decisions = result.decision_ns.size();
    constexpr size_t fields = sizeof(Promise) / sizeof(int64_t);
    std::vector<int64_t> promises(result.promises.size() * fields);
    if (!promises.empty()) {
        std::memcpy(promises.data(), result.promises.data(), promises.size() * sizeof(int64_t));
    }
    return {to_numpy(std::move(result.start)), to_numpy(std::move(result.decision_ns)),
            to_numpy(std::move(promises)), decisions};
}

std::string fold_py(const HostlistFolder &folder, Array<int32_t> nodes) {
    const Column<int32_t> indices("nodes", nodes);
    indices.within(0, static_cast<int32_t>(folder.size()) - 1);
    return folder.fold(indices.data(), indices.rows());
}

std::vector<std::string> fold_many_py(const HostlistFolder &folder, Array<int64_t> indptr,
                                      Array<int32_t> nodes) {
    const Column<int64_t> offsets("indptr", indptr);
    const Column<int32_t> indices("nodes", nodes);
    offsets.expect_offsets(indices.rows(), "nodes");
    indices.within(0, static_cast<int32_t>(folder.size()) - 1);
    std::vector<std::string> lists;
    lists.reserve(offsets.rows() - 1);
    for (size_t i = 0; i + 1 < offsets.rows(); ++i) {
        lists.push_back(folder.fold(indices.data() + offsets[i],
                                    static_cast<size_t>(offsets[i + 1] - offsets[i])));
    }
    return lists;
}

} // namespace

NB_MODULE(_core, m) {
    // Objects that Python still holds at exit are no leak.
    nb::set_leak_warnings(false);
    m.doc() = R"(The C++ planning kernels: when can each job start, and on which nodes.

Terms: a *job* is an amount for a length of time; a *profile* is the free amount from now on;
*booked* means subtracted from the profile; the *depth* is the number of jobs that may hold a
reservation (1 is EASY, ``UNLIMITED`` is conservative backfilling).

Rules that hold for every function:

1. Times and lengths are int64 seconds; intervals are half-open, ``[start, end)``.
2. Jobs are planned in the order given. A job that fits now for its whole time limit starts now.
   Otherwise, while fewer than ``depth`` jobs hold a reservation, it is booked at its earliest
   feasible start. Beyond that it is left ``UNPLANNED``, unless it fits now.
3. A running job whose expected end is not in the future is expected to end at ``now + 1``.
4. Ends saturate at ``NEVER``. A job that could start only after something that ends at ``NEVER``
   gets the start ``NEVER``.
5. The same input gives the same output.
6. Columns must be C-contiguous NumPy arrays of exactly the stated dtype. A wrong dtype, shape or
   value raises ``ValueError`` whose text starts with the argument's name.
7. The interpreter lock is released while a kernel runs.

``NEVER`` (int64 maximum) is a start that will not come: the job cannot run even on the emptied
system, or only after something that never ends. ``UNPLANNED`` (-1): no start was searched, as the
job is beyond the reservation depth. ``UNLIMITED`` is a depth that no queue reaches.)";
    m.attr("NEVER") = NEVER;
    m.attr("UNPLANNED") = UNPLANNED;
    m.attr("UNLIMITED") = UNLIMITED;
    nb::register_exception_translator([](const std::exception_ptr &error, void *) {
        try {
            std::rethrow_exception(error);
        } catch (const std::invalid_argument &invalid) {
            PyErr_SetString(PyExc_ValueError, invalid.what());
        }
    });

    using namespace nb::literals;
    m.def(
        "plan_counts", &plan_counts_py, "now"_a, "capacity"_a, "running_end"_a, "running_count"_a,
        "count"_a, "time_limit"_a, "not_before"_a, "depth"_a,
        R"(Plan jobs that request an amount of one countable resource (nodes, processors, licences).

About 0.2 us a job for queues as they are found, 1 to 3 us where nearly all jobs differ.

Args:
    now: the time of the plan, s.
    capacity: the total amount, at most 2**30.
    running_end: (n_running,) expected ends, s; NEVER for one that does not end.
    running_count: (n_running,) amounts held, >= 0. They may exceed the capacity together
        (nodes lost): then nothing starts until enough of them have ended.
    count: (n_jobs,) amounts wanted, >= 1.
    time_limit: (n_jobs,) lengths, s, >= 1.
    not_before: (n_jobs,) earliest allowed starts, s; anything <= now means none.
    depth: how many jobs may hold a reservation, >= 0.

Returns:
    (n_jobs,) starts: now, later, UNPLANNED, or NEVER.

Raises:
    ValueError: a column has the wrong dtype, shape or value; the text names it.)");
    m.def("map_counts", &map_counts_py, "n_nodes"_a, "start"_a, "end"_a, "count"_a, "running_end"_a,
          "running_indptr"_a, "running_nodes"_a,
          R"(Give planned whole-node jobs concrete nodes by a sweep over time.

At each instant the jobs that end return their nodes first; then those that start take the
lowest free indices, in the order given. This always succeeds when the counts fit at every
second, because whole interchangeable nodes form an interval graph.

Args:
    n_nodes: number of nodes.
    start: (n_jobs,) s; UNPLANNED and NEVER get no nodes.
    end: (n_jobs,) s, > start where there is a start (ignored elsewhere).
    count: (n_jobs,) nodes wanted, >= 1.
    running_end: (n_running,) when running jobs give their nodes back, s. They hold them from
        the beginning of time; one that ends before the first start is free by then.
    running_indptr: (n_running + 1,) CSR offsets into ``running_nodes``.
    running_nodes: node indices held. Two running jobs may hold the same node; it is free when
        the last of them has ended.

Returns:
    ``(indptr, nodes)``: job j holds ``nodes[indptr[j]:indptr[j + 1]]``, ascending.

Raises:
    ValueError: a column is malformed, or the jobs oversubscribe the nodes at some second.)");
    nb::class_<PyReplay>(m, "Replay", "What ``replay_counts`` found.")
        .def_ro("start", &PyReplay::start, "(n_jobs,) s; NEVER for a job larger than the capacity.")
        .def_ro("decision_ns", &PyReplay::decision_ns,
                "(n_decisions,) nanoseconds each scheduling pass took, in time order.")
        .def_ro("promises", &PyReplay::promises,
                "(7 * n_jobs,) the promise of each job while it waited: ``bridge.state.accuracy``.")
        .def_ro("decisions", &PyReplay::decisions,
                "Number of scheduling passes: one per second with an event and a job waiting.");
    m.def("replay_counts", &replay_counts_py, "submit"_a, "runtime"_a, "time_limit"_a, "count"_a,
          "capacity"_a, "depth"_a, "order"_a.none() = nb::none(),
          R"(Replay a whole trace: an event loop that plans the queue as ``plan_counts`` does.

At every second in which jobs end or arrive, all of them are taken first; then the queue is
planned once, from nothing, and the jobs whose start is now start.

Args:
    submit: (n_jobs,) arrival, s, >= 0.
    runtime: (n_jobs,) what the jobs really take, s, >= 1. The caller caps it at the time limit
        if jobs are killed there; a job that overruns is expected to end in the next second.
    time_limit: (n_jobs,) run time that the plan assumes, s, >= 1.
    count: (n_jobs,) processors, >= 1.
    capacity: processors there are, at most 2**30.
    depth: how many jobs may hold a reservation: 1 is EASY, UNLIMITED conservative.
    order: (n_jobs,) the queue is sorted by this, ascending, then by arrival and index;
        None is first come, first served.

Returns:
    Starts and decision times.

Raises:
    ValueError: a column has the wrong dtype, shape or value; the text names it.)");
    define_plan_nodes(m);
    define_alarm(m);
    define_search_orders(m);
    define_book(m);
    define_tree(m);
    define_neural(m);
    define_judge(m);
    define_requests(m);
    define_corridor(m);
    nb::class_<HostlistFolder>(m, "HostlistFolder",
                               R"(Writes sets of nodes as Slurm hostlists: ``n[001-064,070],big1``.

Names are folded over their trailing digits; names that differ before them, or in zero padding,
stand apart. The order is that of first appearance of each such family, numbers ascending.)")
        .def(nb::init<const std::vector<std::string> &>(), "names"_a,
             R"(Learn the names of all nodes.

Args:
    names: one name per node index.

Raises:
    ValueError: a name is empty, occurs twice, or contains ``[``, ``]``, ``,`` or a space.)")
        .def("fold", &fold_py, "nodes"_a, R"(Write one set.

Args:
    nodes: node indices in any order; repeats count once.

Returns:
    The hostlist; empty for no nodes.

Raises:
    ValueError: an index is out of range.)")
        .def("fold_many", &fold_many_py, "indptr"_a, "nodes"_a,
             R"(Write a CSR of sets, as ``plan_nodes`` returns it.

Args:
    indptr: (n_sets + 1,) offsets into ``nodes``.
    nodes: node indices.

Returns:
    One hostlist per set.

Raises:
    ValueError: the offsets do not ascend within ``nodes``, or an index is out of range.)");
    define_grouping(m);
    define_ids(m);
    define_status_lists(m);
    define_announcements(m);
}

} // namespace bridge
