// SPDX-License-Identifier: Apache-2.0
// Python binding of choose_widths.
#include "python/module.hpp"

#include <string>

#include "common/columns.hpp"
#include "corridor/choose_widths.hpp"

namespace bridge {
namespace {

constexpr int64_t MOST_WIDTH = int64_t{1} << 20;
constexpr int64_t MOST_W = int64_t{1} << 20;
constexpr int64_t MOST_JOBS = int64_t{1} << 12; // sums are exact as doubles
constexpr int64_t MOST_SUM = int64_t{1} << 50;

struct PyWidthsFound {
    nb::object width;
    int64_t over_w;
    int64_t under_w;
    int64_t steps;
    bool proven;
    bool settled;
};

void expect_choices(const Column<int64_t> &indptr, const Column<int64_t> &widths,
                    const Column<int64_t> &now) {
    for (size_t job = 0; job < now.rows(); ++job) {
        const std::string which = "job " + std::to_string(job);
        if (indptr[job] == indptr[job + 1]) {
            refuse("indptr: " + which + " has no width");
        }
        bool present = now[job] == 0;
        for (int64_t at = indptr[job]; at < indptr[job + 1]; ++at) {
            const auto k = static_cast<size_t>(at);
            present |= widths[k] == now[job];
            if (at > indptr[job] && widths[k] <= widths[k - 1]) {
                refuse("widths: those of " + which + " do not ascend");
            }
        }
        if (!present) {
            refuse("now: " + which + " may not have its present width");
        }
    }
}

PyWidthsFound choose_widths_py(nb::handle indptr, nb::handle widths, nb::handle now,
                               nb::handle least_w, nb::handle most_w, int64_t nodes,
                               int64_t lower_w, int64_t upper_w, int64_t effort) {
    const Column<int64_t> now_widths("now", now);
    const size_t n = now_widths.within(0, MOST_WIDTH).rows();
    if (n > static_cast<size_t>(MOST_JOBS)) {
        refuse("now: more than " + std::to_string(MOST_JOBS) + " jobs");
    }
    const Column<int64_t> choices("widths", widths);
    choices.within(1, MOST_WIDTH);
    const Column<int64_t> offsets("indptr", indptr);
    offsets.expect_rows(n + 1, "one more than now").expect_offsets(choices.rows(), "widths");
    expect_choices(offsets, choices, now_widths);
    const Column<int64_t> least("least_w", least_w);
    least.expect_rows(n, "like now").within(0, MOST_W);
    const Column<int64_t> most("most_w", most_w);
    most.expect_rows(n, "like now").within(0, MOST_W);
    scalar("nodes", nodes, 0, MOST_SUM);
    scalar("lower_w", lower_w, -MOST_SUM, MOST_SUM);
    scalar("upper_w", upper_w, -MOST_SUM, MOST_SUM);
    scalar("effort", effort, 0);
    const WidthJobs jobs{
        n, offsets.data(), choices.data(), now_widths.data(), least.data(), most.data()};
    WidthsFound found;
    {
        nb::gil_scoped_release release;
        found = choose_widths(jobs, {nodes, lower_w, upper_w}, effort);
    }
    return {nb::cast(to_numpy(std::move(found.width))),
            found.over_w,
            found.under_w,
            found.steps,
            found.proven,
            found.settled};
}

} // namespace

void define_corridor(nb::module_ &m) {
    using namespace nb::literals;
    nb::class_<PyWidthsFound>(m, "WidthsFound")
        .def_ro("width", &PyWidthsFound::width)
        .def_ro("over_w", &PyWidthsFound::over_w)
        .def_ro("under_w", &PyWidthsFound::under_w)
        .def_ro("steps", &PyWidthsFound::steps)
        .def_ro("proven", &PyWidthsFound::proven)
        .def_ro("settled", &PyWidthsFound::settled);
    m.def("choose_widths", &choose_widths_py, "indptr"_a, "widths"_a, "now"_a, "least_w"_a,
          "most_w"_a, nb::kw_only(), "nodes"_a, "lower_w"_a, "upper_w"_a, "effort"_a);
}

} // namespace bridge
