// SPDX-License-Identifier: Apache-2.0
// Python bindings of group_numbers and group_objects.
#include "python/module.hpp"

#include <cstdint>
#include <vector>

#include "common/columns.hpp"

namespace bridge {
namespace {

// The first row of each group, and the group of each row.
using Grouped = Tuple<Array<int64_t>, Array<int64_t>>;

// Numbers keys in order of appearance. Open addressing; twice as many slots as keys.
class Groups {
  public:
    explicit Groups(size_t n) : which_(n) {
        while (slots_ < 2 * n) {
            slots_ *= 2;
        }
        group_.assign(slots_, -1);
    }
    void add(size_t at, uint64_t key) {
        size_t slot = static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> 32) & (slots_ - 1);
        while (group_[slot] >= 0 && keys_[static_cast<size_t>(group_[slot])] != key) {
            slot = (slot + 1) & (slots_ - 1);
        }
        if (group_[slot] < 0) {
            group_[slot] = static_cast<int64_t>(keys_.size());
            keys_.push_back(key);
            first_.push_back(static_cast<int64_t>(at));
        }
        which_[at] = group_[slot];
    }
    Grouped result() {
        return nb::make_tuple(to_numpy(std::move(first_)), to_numpy(std::move(which_)));
    }

  private:
    size_t slots_ = 16;
    std::vector<int64_t> group_; // by slot; -1: none
    std::vector<uint64_t> keys_;
    std::vector<int64_t> first_;
    std::vector<int64_t> which_;
};

Grouped group_numbers(Array<int64_t> key) {
    const Column<int64_t> keys("key", key);
    Groups groups(keys.rows());
    for (size_t at = 0; at < keys.rows(); ++at) {
        groups.add(at, static_cast<uint64_t>(keys[at]));
    }
    return groups.result();
}

Grouped group_objects(const nb::list &objects) {
    Groups groups(objects.size());
    for (size_t at = 0; at < objects.size(); ++at) {
        const PyObject *object = PyList_GET_ITEM(objects.ptr(), static_cast<Py_ssize_t>(at));
        groups.add(at, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(object)));
    }
    return groups.result();
}

} // namespace

void define_grouping(nb::module_ &m) {
    using namespace nb::literals;
    m.def("group_numbers", &group_numbers, "key"_a,
          R"(Number the groups of equal keys in order of appearance. O(n).

Returns:
    (n_groups,) the first position of each group, ascending; (n,) the group of each key.)");
    m.def("group_objects", &group_objects, "objects"_a,
          "The same, of objects: those are equal that are one and the same.");
}

} // namespace bridge
