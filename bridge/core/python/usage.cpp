// SPDX-License-Identifier: Apache-2.0
// Python binding of UsageVector: checks arguments, so that the vector need not.
#include "python/module.hpp"

#include <nanobind/stl/string.h>

#include "common/columns.hpp"
#include "common/times.hpp"
#include "usage/usage_vector.hpp"

namespace bridge {
namespace {

constexpr int64_t MOST = UsageVector::MOST_CHANGE;

void check_interval(const char *first, int64_t start, const char *second, int64_t end) {
    scalar(first, start, 0, NEVER - 1);
    if (end <= start) {
        refuse(std::string(second) + ": " + std::to_string(end) + " is not after " + first + " " +
               std::to_string(start));
    }
}

// Every slot of both, and the time outside them, can be added without overflow.
void check_sum(const UsageVector &a, const UsageVector &b) {
    int64_t most_a = a.maximum(), most_b = b.maximum();
    for (const auto &slot : a.slots()) {
        most_a = std::max<int64_t>(most_a, std::llabs(slot.items));
    }
    for (const auto &slot : b.slots()) {
        most_b = std::max<int64_t>(most_b, std::llabs(slot.items));
    }
    if (most_a + most_b > UsageVector::MOST_ITEMS) {
        refuse("other: more than 2**60 items at one second");
    }
}

template <void (UsageVector::*Change)(int64_t, int64_t, int64_t)>
void change_py(UsageVector &self, int64_t start, int64_t end, int64_t items) {
    check_interval("start", start, "end", end);
    (self.*Change)(start, end, scalar("items", items, 0, MOST));
}

void search_arguments(int64_t items, int64_t length, int64_t from, int64_t until) {
    scalar("items", items, 1, MOST);
    scalar("length", length, 1);
    check_interval("start", from, "end", until);
}

nb::tuple slots_py(const UsageVector &self) {
    std::vector<int64_t> start, end, items;
    for (const auto &slot : self.slots()) {
        start.push_back(slot.start);
        end.push_back(slot.end);
        items.push_back(slot.items);
    }
    return nb::make_tuple(to_numpy(std::move(start)), to_numpy(std::move(end)),
                          to_numpy(std::move(items)));
}

std::string text(const UsageVector &self) {
    std::string out = "UsageVector(" + std::to_string(self.available()) + " of " +
                      std::to_string(self.maximum()) +
                      (self.stores() == Stores::USED ? " available, used:" : " available, free:");
    size_t shown = 0;
    for (const auto &slot : self.slots()) {
        if (++shown > 8) {
            return out + " ... " + std::to_string(self.slots().size()) + " slots)";
        }
        out += " [" + std::to_string(slot.start) + ", " +
               (slot.end == NEVER ? "never" : std::to_string(slot.end)) + ") " +
               std::to_string(slot.items);
    }
    return out + ")";
}

} // namespace

void define_usage(nb::module_ &m) {
    using namespace nb::literals;
    nb::enum_<Stores>(m, "Stores", nb::is_arithmetic())
        .value("USED", Stores::USED)
        .value("FREE", Stores::FREE);
    nb::class_<UsageVector> type(m, "UsageVector");
    type.attr("__hash__") = nb::none(); // mutable
    type.def(
            "__init__",
            [](UsageVector *self, int64_t maximum, int64_t stores, int64_t min_distance_s) {
                scalar("maximum", maximum, 0, MOST);
                scalar("stores", stores, 0, 1);
                scalar("min_distance_s", min_distance_s, 1);
                new (self) UsageVector(maximum, static_cast<Stores>(stores), min_distance_s);
            },
            "maximum"_a, nb::kw_only(), "stores"_a = static_cast<int64_t>(Stores::USED),
            "min_distance_s"_a = 1)
        .def_prop_ro("maximum", &UsageVector::maximum)
        .def_prop_ro("available", &UsageVector::available)
        .def_prop_ro("defect", &UsageVector::defect)
        .def_prop_ro("min_distance_s", &UsageVector::min_distance_s)
        .def_prop_ro("stores", &UsageVector::stores)
        .def("__len__", [](const UsageVector &self) { return self.slots().size(); })
        .def("__eq__", [](const UsageVector &a, const UsageVector &b) { return a == b; })
        .def("__eq__", [](const UsageVector &, nb::handle) { return false; })
        .def("__repr__", &text)
        .def("copy", [](const UsageVector &self) { return UsageVector(self); })
        .def("slots", &slots_py)
        .def(
            "set_defect",
            [](UsageVector &self, int64_t defect) {
                self.set_defect(scalar("defect", defect, 0, self.maximum()));
            },
            "defect"_a)
        .def("increment", &change_py<&UsageVector::increment>, "start"_a, "end"_a, "items"_a)
        .def("decrement", &change_py<&UsageVector::decrement>, "start"_a, "end"_a, "items"_a)
        .def("book", &change_py<&UsageVector::book>, "start"_a, "end"_a, "items"_a)
        .def("revoke", &change_py<&UsageVector::revoke>, "start"_a, "end"_a, "items"_a)
        .def(
            "used_at",
            [](const UsageVector &self, int64_t time) {
                return self.used_at(scalar("time", time, 0, NEVER - 1));
            },
            "time"_a)
        .def(
            "free_at",
            [](const UsageVector &self, int64_t time) {
                return self.available() - self.used_at(scalar("time", time, 0, NEVER - 1));
            },
            "time"_a)
        .def(
            "least_free",
            [](const UsageVector &self, int64_t start, int64_t end) {
                check_interval("start", start, "end", end);
                return self.least_free(start, end);
            },
            "start"_a, "end"_a)
        .def(
            "earliest",
            [](const UsageVector &self, int64_t items, int64_t length, int64_t start, int64_t end) {
                search_arguments(items, length, start, end);
                return self.earliest(items, length, start, end);
            },
            "items"_a, "length"_a, "start"_a = 0, "end"_a = NEVER)
        .def(
            "free_slots",
            [](const UsageVector &self, int64_t items, int64_t length, int64_t start, int64_t end) {
                search_arguments(items, length, start, end);
                return self.free_slots(items, length, start, end);
            },
            "items"_a, "length"_a, "start"_a = 0, "end"_a = NEVER)
        .def(
            "free_steps",
            [](const UsageVector &self, int64_t start, int64_t end) {
                check_interval("start", start, "end", end);
                std::vector<int64_t> starts, free;
                self.free_steps(start, end, starts, free);
                return nb::make_tuple(to_numpy(std::move(starts)), to_numpy(std::move(free)));
            },
            "start"_a = 0, "end"_a = NEVER)
        .def(
            "__add__",
            [](const UsageVector &a, const UsageVector &b) {
                check_sum(a, b);
                return a.plus(b);
            },
            nb::is_operator())
        .def(
            "__sub__",
            [](const UsageVector &a, const UsageVector &b) {
                check_sum(a, b);
                return a.minus(b);
            },
            nb::is_operator())
        .def(
            "__and__", [](const UsageVector &a, const UsageVector &b) { return a.intersect(b); },
            nb::is_operator())
        .def("min_free", &UsageVector::min_free, "limit"_a)
        .def(
            "in_units_of",
            [](const UsageVector &self, int64_t items) {
                return self.in_units_of(scalar("items", items, 1, MOST));
            },
            "items"_a)
        .def("as_used", [](const UsageVector &self) { return self.as(Stores::USED); })
        .def("as_free", [](const UsageVector &self) { return self.as(Stores::FREE); })
        .def(
            "repeat",
            [](const UsageVector &self, int64_t items, int64_t start, int64_t end, int64_t period) {
                scalar("items", items, 0, MOST);
                scalar("period", period, 1);
                check_interval("start", start, "end", end);
                scalar("end", end, 1, NEVER - 1);
                return self.repeat(items, start, end, period);
            },
            "items"_a, "start"_a, "end"_a, "period"_a);
}

} // namespace bridge
