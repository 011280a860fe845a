// SPDX-License-Identifier: Apache-2.0
// The Python module: checks columns, releases the interpreter, returns vectors. _core.pyi documents
// every function.
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

nb::object plan_counts_py(int64_t now, int64_t capacity, nb::handle running_end,
                          nb::handle running_count, nb::handle count, nb::handle time_limit,
                          nb::handle not_before, int64_t depth) {
    scalar("now", now, 0, NEVER - 1);
    scalar("capacity", capacity, 0, MOST_COUNT);
    scalar("depth", depth, 0);
    const Column<int64_t> ends("running_end", running_end);
    const Column<int64_t> held("running_count", running_count);
    const Column<int64_t> counts("count", count);
    const Column<int64_t> limits("time_limit", time_limit);
    const Column<int64_t> earliest("not_before", not_before);
    held.expect_rows(ends.rows(), "like running_end").within(0, MOST_COUNT);
    counts.at_least(1);
    limits.expect_rows(counts.rows(), "like count").at_least(1);
    earliest.expect_rows(counts.rows(), "like count");
    std::vector<CountProfile::Holder> running;
    int64_t sum = 0;
    for (size_t i = 0; i < ends.rows(); ++i) {
        running.push_back({ends[i], held[i]});
        sum += held[i];
        if (sum > MOST_COUNT) {
            refuse("running_count: the sum is more than " + std::to_string(MOST_COUNT));
        }
    }
    std::vector<int64_t> start(counts.rows());
    unlocked<void>([&] {
        plan_counts(now, capacity, std::move(running),
                    {counts.rows(), counts.data(), limits.data(), earliest.data()}, depth,
                    start.data());
    });
    return nb::cast(to_numpy(std::move(start)));
}

std::pair<nb::object, nb::object> map_counts_py(int64_t n_nodes, nb::handle start, nb::handle end,
                                                nb::handle count, nb::handle running_end,
                                                nb::handle running_indptr,
                                                nb::handle running_nodes) {
    scalar("n_nodes", n_nodes, 0, MOST_COUNT);
    const Column<int64_t> starts("start", start);
    const Column<int64_t> ends("end", end);
    const Column<int64_t> counts("count", count);
    const Column<int64_t> held_until("running_end", running_end);
    const Column<int64_t> indptr("running_indptr", running_indptr);
    const Column<int32_t> nodes("running_nodes", running_nodes);
    starts.at_least(UNPLANNED);
    ends.expect_rows(starts.rows(), "like start");
    counts.expect_rows(starts.rows(), "like start").within(1, MOST_COUNT);
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
    return {nb::cast(to_numpy(std::move(offsets))), nb::cast(to_numpy(std::move(mapped)))};
}

// Results: arrays made once, read as attributes.
struct PyReplay {
    nb::object start;
    nb::object decision_ns;
    nb::object promises;
    size_t decisions;
};

PyReplay replay_counts_py(nb::handle submit, nb::handle runtime, nb::handle time_limit,
                          nb::handle count, int64_t capacity, int64_t depth, nb::handle order) {
    scalar("capacity", capacity, 0, MOST_COUNT);
    scalar("depth", depth, 0);
    const Column<int64_t> submits("submit", submit);
    const Column<int64_t> runtimes("runtime", runtime);
    const Column<int64_t> limits("time_limit", time_limit);
    const Column<int64_t> counts("count", count);
    constexpr int64_t most_seconds = int64_t{1} << 40; // sums over a trace must not overflow
    submits.within(0, most_seconds);
    runtimes.expect_rows(submits.rows(), "like submit").within(1, most_seconds);
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
    return {nb::cast(to_numpy(std::move(result.start))),
            nb::cast(to_numpy(std::move(result.decision_ns))),
            nb::cast(to_numpy(std::move(promises))), decisions};
}

std::string fold_py(const HostlistFolder &folder, nb::handle nodes) {
    const Column<int32_t> indices("nodes", nodes);
    indices.within(0, static_cast<int32_t>(folder.size()) - 1);
    return folder.fold(indices.data(), indices.rows());
}

std::vector<std::string> fold_many_py(const HostlistFolder &folder, nb::handle indptr,
                                      nb::handle nodes) {
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
    m.doc() = "The C++ planning kernels; see _core.pyi.";
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
    m.def("plan_counts", &plan_counts_py, "now"_a, "capacity"_a, "running_end"_a, "running_count"_a,
          "count"_a, "time_limit"_a, "not_before"_a, "depth"_a);
    m.def("map_counts", &map_counts_py, "n_nodes"_a, "start"_a, "end"_a, "count"_a, "running_end"_a,
          "running_indptr"_a, "running_nodes"_a);
    nb::class_<PyReplay>(m, "Replay")
        .def_ro("start", &PyReplay::start)
        .def_ro("decision_ns", &PyReplay::decision_ns)
        .def_ro("promises", &PyReplay::promises)
        .def_ro("decisions", &PyReplay::decisions);
    m.def("replay_counts", &replay_counts_py, "submit"_a, "runtime"_a, "time_limit"_a, "count"_a,
          "capacity"_a, "depth"_a, "order"_a.none() = nb::none());
    define_plan_nodes(m);
    define_alarm(m);
    define_search_orders(m);
    define_book(m);
    define_tree(m);
    define_neural(m);
    define_judge(m);
    define_requests(m);
    define_corridor(m);
    nb::class_<HostlistFolder>(m, "HostlistFolder")
        .def(nb::init<const std::vector<std::string> &>(), "names"_a)
        .def("fold", &fold_py, "nodes"_a)
        .def("fold_many", &fold_many_py, "indptr"_a, "nodes"_a);
    define_grouping(m);
    define_ids(m);
    define_status_lists(m);
    define_announcements(m);
}

} // namespace bridge
