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

constexpr int64_t MOST_WEIGHT = int64_t{1} << 40;
constexpr int64_t MOST_HALVES = 6;

struct PyOrderFound {
    nb::object order;
    nb::object start;
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

PyOrderFound search_orders_py(nb::handle problem, nb::handle unit_indptr, nb::handle weight,
                              nb::handle due, nb::handle orders, int64_t lead, int64_t effort,
                              int64_t steps, int64_t patience, uint64_t seed, const Alarm *alarm,
                              nb::handle latest, nb::handle waited, int64_t halves) {
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
    weights.expect_rows(nodes.n_jobs, "like tasks").within(0, MOST_WEIGHT);
    const Column<int64_t> dues("due", due);
    dues.expect_rows(nodes.n_jobs, "like tasks").at_least(0);
    scalar("lead", lead, 0, static_cast<int64_t>(n_units));
    scalar("effort", effort, 0);
    scalar("steps", steps, 0);
    scalar("patience", patience, 0, int64_t{1} << 30);
    const Column<int32_t> order_rows("orders", orders, 2);
    expect_orders(order_rows, n_units, static_cast<size_t>(lead));
    scalar("halves", halves, 2, MOST_HALVES);
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
    const auto hand_over = [](auto &values) { return nb::cast(to_numpy(std::move(values))); };
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
    nb::enum_<Stopped>(m, "Stopped", nb::is_arithmetic())
        .value("BOUND", Stopped::BOUND)
        .value("EXHAUSTED", Stopped::EXHAUSTED)
        .value("PATIENCE", Stopped::PATIENCE)
        .value("BUDGET", Stopped::BUDGET);
    nb::enum_<Decoding>(m, "Decoding", nb::is_arithmetic())
        .value("LISTS", Decoding::LISTS)
        .value("PLANNER", Decoding::PLANNER);
    nb::class_<PyOrderFound>(m, "OrderFound")
        .def_ro("order", &PyOrderFound::order)
        .def_ro("start", &PyOrderFound::start)
        .def_ro("given_cost", &PyOrderFound::given_cost)
        .def_ro("family_cost", &PyOrderFound::family_cost)
        .def_ro("cost", &PyOrderFound::cost)
        .def_ro("bound", &PyOrderFound::bound)
        .def_ro("decodes", &PyOrderFound::decodes)
        .def_ro("booked", &PyOrderFound::booked)
        .def_ro("steps", &PyOrderFound::steps)
        .def_ro("stopped", &PyOrderFound::stopped)
        .def_ro("decoding", &PyOrderFound::decoding);
    using namespace nb::literals;
    m.def("search_orders", &search_orders_py, "problem"_a, nb::kw_only(), "unit_indptr"_a,
          "weight"_a, "due"_a, "orders"_a, "lead"_a, "effort"_a, "steps"_a, "patience"_a, "seed"_a,
          "alarm"_a = nb::none(), "latest"_a = nb::none(), "waited"_a = nb::none(), "halves"_a = 2);
}

} // namespace bridge
