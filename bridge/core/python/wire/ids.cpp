// SPDX-License-Identifier: Apache-2.0
// Python binding of match_ids.
//
// Tables of successive cycles share the text objects of their common jobs, mostly in the same
// order. So texts are first compared as objects: with the next one, then in a table of addresses. A
// dictionary is made only for the rest.
#include "python/module.hpp"

#include <cstdint>
#include <vector>

#include "common/columns.hpp"

namespace bridge {
namespace {

// The objects of a list or tuple, which must outlive this.
struct Objects {
    nb::object held;
    PyObject **at;
    size_t n;

    Objects(nb::handle values, const char *name) : held(nb::borrow(values)), at(nullptr), n(0) {
        if (!PyList_Check(values.ptr()) && !PyTuple_Check(values.ptr())) {
            refuse(std::string(name) + ": expected a list or a tuple");
        }
        at = PySequence_Fast_ITEMS(values.ptr());
        n = static_cast<size_t>(PySequence_Fast_GET_SIZE(values.ptr()));
    }
};

// Where each object is, by its address.
class Addresses {
  public:
    explicit Addresses(const Objects &all) : all_(all) {
        while (slots_ < 2 * all.n) {
            slots_ *= 2;
        }
        row_.assign(slots_, -1);
        for (size_t row = 0; row < all.n; ++row) {
            size_t slot = first_slot(all.at[row]);
            while (row_[slot] >= 0) {
                slot = (slot + 1) & (slots_ - 1);
            }
            row_[slot] = static_cast<int64_t>(row);
        }
    }
    int64_t find(const PyObject *object) const {
        size_t slot = first_slot(object);
        while (row_[slot] >= 0 && all_.at[row_[slot]] != object) {
            slot = (slot + 1) & (slots_ - 1);
        }
        return row_[slot];
    }

  private:
    const Objects &all_;
    size_t slots_ = 16;
    std::vector<int64_t> row_; // by slot; -1: none

    size_t first_slot(const PyObject *object) const {
        const uint64_t mixed = (reinterpret_cast<uintptr_t>(object) >> 4) * 0x9E3779B97F4A7C15u;
        return static_cast<size_t>(mixed >> 32) & (slots_ - 1);
    }
};

Array<int64_t> match_ids(nb::handle former, nb::handle ids) {
    const Objects before(former, "former");
    const Objects now(ids, "ids");
    std::vector<int64_t> row(now.n, -1);
    std::vector<size_t> left;
    std::vector<bool> matched(before.n, false);
    size_t next = 0;
    std::vector<Addresses> addresses; // made when it is needed
    for (size_t i = 0; i < now.n; ++i) {
        int64_t found = -1;
        if (next < before.n && before.at[next] == now.at[i]) {
            found = static_cast<int64_t>(next);
        } else if (before.n > 0) {
            if (addresses.empty()) {
                addresses.emplace_back(before);
            }
            found = addresses.front().find(now.at[i]);
        }
        if (found < 0) {
            left.push_back(i);
            continue;
        }
        row[i] = found;
        matched[static_cast<size_t>(found)] = true;
        next = static_cast<size_t>(found) + 1;
    }
    if (!left.empty()) {
        nb::dict rest;
        for (size_t at = 0; at < before.n; ++at) {
            if (!matched[at]) {
                rest[nb::handle(before.at[at])] = at;
            }
        }
        for (const size_t i : left) {
            PyObject *found = PyDict_GetItemWithError(rest.ptr(), now.at[i]);
            if (found == nullptr && PyErr_Occurred() != nullptr) {
                throw nb::python_error();
            }
            if (found != nullptr) {
                row[i] = PyLong_AsLongLong(found);
            }
        }
    }
    return to_numpy(std::move(row));
}

} // namespace

void define_ids(nb::module_ &m) {
    using namespace nb::literals;
    m.def("match_ids", &match_ids, "former"_a, "ids"_a,
          R"(Find jobs in the table of an earlier cycle. O(n), fast where both share the texts.

Args:
    former: a list or tuple of ids, none of them twice.
    ids: a list or tuple of n ids.

Returns:
    (n,) the position of each among the former ones; -1: it is not among them.

Raises:
    ValueError: not a list or tuple.)");
}

} // namespace bridge
