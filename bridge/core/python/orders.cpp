// SPDX-License-Identifier: Apache-2.0
// Python binding of search_orders.
#include "python/module.hpp"

#include <string>

#include "common/columns.hpp"
#include "common/times.hpp"
#include "order_search/order_search.hpp"
#include "python/single_pass/node_arguments.hpp"

namespace bridge {
namespace {

constexpr int64_t MAX_WEIGHT = int64_t{1} << 40;
constexpr int64_t MAX_HALVES = 6;

struct PyOrderFound {
    Array<int32_t> order;
    Array<int64_t> start;
    double given_cost;
    double family_cost;
    double cost;
    double bound;
    int64_t decodes;
    int64_t booked;
    int64_t steps;
    Stopped stopped;
    Decoding decoding;
};

void expect_orders(const Column<int32_t> &orders, size_t n_units, size_t lead) {
    orders.expect_columns(n_units, "one per unit");
    if (orders.rows() == 0) {
        refuse("orders: there is none");
    }
    std::vector<size_t> seen(n_units, SIZE_MAX);
    for (size_t row = 0; row < orders.rows(); ++row) {
        for (size_t k = 0; k < n_units; ++k) {
            const int32_t unit = orders[row * n_units + k];
            if (unit < 0 || static_cast<size_t>(unit) >= n_units ||
                seen[static_cast<size_t>(unit)] == row || (k < lead && unit != orders[k])) {
                refuse("orders: row " + std::to_string(row) +
                       " does not name every unit once, the lead first");
            }
            seen[static_cast<size_t>(unit)] = row;
        }
    }
}

PyOrderFound search_orders_py(nb::handle problem, Array<int64_t> unit_indptr, Array<int64_t> weight,
                              Array<int64_t> due, Array<int32_t> orders, int64_t lead,
                              int64_t effort, int64_t steps, int64_t patience, uint64_t seed,
                              const Alarm *alarm, Array<int64_t> latest, Array<int64_t> waited,
                              int64_t halves) {
    const NodeArguments arguments(problem);
    const NodeProblem &nodes = arguments.problem();
    scalar("depth", nodes.depth, UNLIMITED);
    const Column<int64_t> units("unit_indptr", unit_indptr);
    units.expect_offsets(nodes.n_jobs, "tasks");
    const size_t n_units = units.rows() - 1;
    for (size_t unit = 0; unit < n_units; ++unit) {
        if (units[unit] == units[unit + 1]) {
            refuse("unit_indptr: unit " + std::to_string(unit) + " has no job");
        }
    }
    const Column<int64_t> weights("weight", weight);
    weights.expect_rows(nodes.n_jobs, "like tasks").within(0, MAX_WEIGHT);
    const Column<int64_t> dues("due", due);
    dues.expect_rows(nodes.n_jobs, "like tasks").at_least(0);
    scalar("lead", lead, 0, static_cast<int64_t>(n_units));
    scalar("effort", effort, 0);
    scalar("steps", steps, 0);
    scalar("patience", patience, 0, int64_t{1} << 30);
    const Column<int32_t> order_rows("orders", orders, 2);
    expect_orders(order_rows, n_units, static_cast<size_t>(lead));
    scalar("halves", halves, 2, MAX_HALVES);
    std::vector<int64_t> any(nodes.n_jobs, NEVER);
    std::vector<int64_t> none(nodes.n_jobs, 0);
    const auto column_of = [&](const char *name, nb::handle given, std::vector<int64_t> &usual) {
        if (given.is_none()) {
            return usual.data();
        }
        const Column<int64_t> column(name, given);
        column.expect_rows(nodes.n_jobs, "like tasks").at_least(0);
        usual.assign(column.data(), column.data() + nodes.n_jobs);
        return usual.data();
    };
    const OrderJobs jobs{n_units,
                         static_cast<size_t>(lead),
                         units.data(),
                         weights.data(),
                         dues.data(),
                         column_of("latest", latest, any),
                         column_of("waited", waited, none),
                         halves,
                         order_rows.rows(),
                         order_rows.data()};
    const OrderBudget budget{effort, steps, patience, seed, alarm};
    OrderFound found;
    {
        nb::gil_scoped_release release;
        found = search_orders(nodes, jobs, budget);
    }
    const auto hand_over = [](auto &values) { return to_numpy(std::move(values)); };
    return {hand_over(found.order),
            hand_over(found.start),
            found.given_cost,
            found.family_cost,
            found.cost,
            found.bound,
            found.decodes,
            found.booked,
            found.steps,
            found.stopped,
            found.decoding};
}

} // namespace

void define_search_orders(nb::module_ &m) {
    nb::enum_<Stopped>(m, "Stopped", nb::is_arithmetic(), "Why a search ended.")
        .value("BOUND", Stopped::BOUND,
               "The bound is met: no plan that books the lead first costs less.")
        .value("EXHAUSTED", Stopped::EXHAUSTED, "All orders were tried: none costs less.")
        .value("PATIENCE", Stopped::PATIENCE, "No improvement for the allowed number of changes.")
        .value("BUDGET", Stopped::BUDGET);
    nb::enum_<Decoding>(m, "Decoding", nb::is_arithmetic(), "How orders were decoded.")
        .value("LISTS", Decoding::LISTS,
               "On flat lists with undo: thousands of jobs a millisecond.")
        .value(
            "PLANNER", Decoding::PLANNER,
            R"(By the planner of ``plan_nodes`` itself, again from the first job that changed: some jobs use
the same nodes whole and others share them, or jobs request counters.)");
    nb::class_<PyOrderFound>(m, "OrderFound", "What ``search_orders`` found.")
        .def_ro("order", &PyOrderFound::order, "(n_units,) units, the lead first.")
        .def_ro("start", &PyOrderFound::start, "(n_jobs,) s, in that order; NEVER: none.")
        .def_ro("given_cost", &PyOrderFound::given_cost, "Cost of the first order.")
        .def_ro("family_cost", &PyOrderFound::family_cost,
                "Cost of the best order before the search.")
        .def_ro("cost", &PyOrderFound::cost,
                R"(Cost of `order`: the sum of weight * max(0, start - due), or by `halves`.

2**108 for each start after its latest one, which it could keep behind the lead alone;
2**100 for each job without a start that could have one behind the lead alone.)")
        .def_ro("bound", &PyOrderFound::bound, "No plan that books the lead first costs less.")
        .def_ro("decodes", &PyOrderFound::decodes, "Orders tried, most of them in part.")
        .def_ro("booked", &PyOrderFound::booked, "Jobs booked for them.")
        .def_ro("steps", &PyOrderFound::steps,
                "Work, in steps of about a nanosecond; the same on every machine.")
        .def_ro("stopped", &PyOrderFound::stopped)
        .def_ro("decoding", &PyOrderFound::decoding);
    using namespace nb::literals;
    m.def("search_orders", &search_orders_py, "problem"_a, nb::kw_only(), "unit_indptr"_a,
          "weight"_a, "due"_a, "orders"_a, "lead"_a, "effort"_a, "steps"_a, "patience"_a, "seed"_a,
          "alarm"_a = nb::none(), "latest"_a = nb::none(), "waited"_a = nb::none(), "halves"_a = 2,
          R"(Search for the order of units whose plan costs least.

The first of `orders` is always decoded; then the others, then changes of the best, until the
bound is met, there was no improvement for long, or the budget is spent. With at most 7 units
behind the lead every order is tried instead.

Args:
    problem: as for ``plan_nodes``; depth UNLIMITED.
    unit_indptr: (n_units + 1,) unit u is the jobs [unit_indptr[u], unit_indptr[u + 1]).
    weight: (n_jobs,) cost of a second of delay, 0 to 2**40.
    due: (n_jobs,) delay counts from here, s.
    orders: (n_orders, n_units) initial orders, one at least.
    lead: number of units that come first, as in the first order.
    effort: most jobs to book; 0: no bound.
    steps: most steps of the decoder; 0: no bound. The same effort, steps and seed give the same
        order everywhere, if there is no alarm.
    patience: consecutive changes without improvement, per unit, that end the search.
    seed: of the changes.
    alarm: ends the search when it expires; None: no time limit.
    latest: (n_jobs,) latest starts, s; NEVER: none. No order is kept that breaks more of them
        than the first one. None: no job has one.
    waited: (n_jobs,) s that a job has waited at `due`, >= 0; None: nothing.
    halves: twice the exponent of waits, 2 to 6: a wait of x costs weight * 3600 * (x / 3600)
        ** (halves / 2), less what `waited` costs.

Returns:
    Order, starts, cost and bound.

Raises:
    ValueError: a column has the wrong dtype, shape or value; the text names it.)");
}

} // namespace bridge
