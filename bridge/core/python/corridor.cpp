// SPDX-License-Identifier: Apache-2.0
// Python binding of choose_widths.
#include "python/module.hpp"

#include <string>

#include "common/columns.hpp"
#include "corridor/choose_widths.hpp"

namespace bridge {
namespace {

constexpr int64_t MAX_WIDTH = int64_t{1} << 20;
constexpr int64_t MAX_W = int64_t{1} << 20;
constexpr int64_t MAX_JOBS = int64_t{1} << 12; // sums are exact as doubles
constexpr int64_t MAX_SUM = int64_t{1} << 50;

struct PyWidthsFound {
    Array<int64_t> width;
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

PyWidthsFound choose_widths_py(Array<int64_t> indptr, Array<int64_t> widths, Array<int64_t> now,
                               Array<int64_t> min_w, Array<int64_t> max_w, int64_t nodes,
                               int64_t lower_w, int64_t upper_w, int64_t effort) {
    const Column<int64_t> now_widths("now", now);
    const size_t n = now_widths.within(0, MAX_WIDTH).rows();
    if (n > static_cast<size_t>(MAX_JOBS)) {
        refuse("now: more than " + std::to_string(MAX_JOBS) + " jobs");
    }
    const Column<int64_t> choices("widths", widths);
    choices.within(1, MAX_WIDTH);
    const Column<int64_t> offsets("indptr", indptr);
    offsets.expect_rows(n + 1, "one more than now").expect_offsets(choices.rows(), "widths");
    expect_choices(offsets, choices, now_widths);
    const Column<int64_t> minimum("min_w", min_w);
    minimum.expect_rows(n, "like now").within(0, MAX_W);
    const Column<int64_t> maximum("max_w", max_w);
    maximum.expect_rows(n, "like now").within(0, MAX_W);
    scalar("nodes", nodes, 0, MAX_SUM);
    scalar("lower_w", lower_w, -MAX_SUM, MAX_SUM);
    scalar("upper_w", upper_w, -MAX_SUM, MAX_SUM);
    scalar("effort", effort, 0);
    const WidthJobs jobs{
        n, offsets.data(), choices.data(), now_widths.data(), minimum.data(), maximum.data()};
    WidthsFound found;
    {
        nb::gil_scoped_release release;
        found = choose_widths(jobs, {nodes, lower_w, upper_w}, effort);
    }
    return {to_numpy(std::move(found.width)),
            found.over_w,
            found.under_w,
            found.steps,
            found.proven,
            found.settled};
}

} // namespace

void define_corridor(nb::module_ &m) {
    using namespace nb::literals;
    nb::class_<PyWidthsFound>(m, "WidthsFound", "What ``choose_widths`` found.")
        .def_ro("width", &PyWidthsFound::width,
                "(n_jobs,); empty: there are too few nodes for the least widths.")
        .def_ro("over_w", &PyWidthsFound::over_w,
                "By how much the most that the jobs draw lies above the upper bound, W.")
        .def_ro("under_w", &PyWidthsFound::under_w,
                "By how much the least that they draw lies below the lower bound, W.")
        .def_ro("steps", &PyWidthsFound::steps, "Widths looked at.")
        .def_ro("proven", &PyWidthsFound::proven,
                "Whether nothing is better in power and idle nodes; False: ``effort`` ended first.")
        .def_ro("settled", &PyWidthsFound::settled, "Whether nothing is better in changes either.");
    m.def("choose_widths", &choose_widths_py, "indptr"_a, "widths"_a, "now"_a, "min_w"_a, "max_w"_a,
          nb::kw_only(), "nodes"_a, "lower_w"_a, "upper_w"_a, "effort"_a,
          R"(Choose one width for each job; branch and bound.

Of all choices that the nodes suffice for, that with the least power above the upper bound; of
these the least below the lower bound, then the most nodes, the fewest changed jobs, and the
fewest changed nodes. Of equal jobs the later one has no fewer nodes. The result depends on the
order of the jobs only where several choices are equal in all of this.

Args:
    indptr: (n_jobs + 1,) job i may have ``widths[indptr[i]:indptr[i + 1]]``.
    widths: (n,) ascending for each job, at least 1.
    now: (n_jobs,) present width, one of them; 0: it has none, and does not count as changed.
    min_w: (n_jobs,) of each of its nodes, beyond what an idle one draws, W; for `lower_w`.
    max_w: (n_jobs,) likewise, for `upper_w`.
    nodes: for all of them together.
    lower_w: what they should draw at least, W; 0 or less: no bound.
    upper_w: what they may draw at most, W.
    effort: most widths looked at.

Raises:
    ValueError: a value is out of range; the text names it.)");
}

} // namespace bridge
