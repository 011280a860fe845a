// SPDX-License-Identifier: Apache-2.0
#include "common/segments.hpp"

#include <algorithm>

namespace bridge {

// The segment that begins at `time`, inserted if necessary.
size_t Segments::cut(size_t columns, int64_t time) {
    const size_t i = at(time);
    if (begin[i] == time) {
        return i;
    }
    const auto next = static_cast<std::ptrdiff_t>(i) + 1;
    begin.insert(begin.begin() + next, time);
    free.insert(free.begin() + next * static_cast<std::ptrdiff_t>(columns), columns, 0);
    std::copy_n(free.data() + i * columns, columns, free.data() + (i + 1) * columns);
    return i + 1;
}

void Segments::merge(size_t columns, size_t segment) {
    if (segment == 0 || segment >= begin.size()) {
        return;
    }
    const auto width = static_cast<std::ptrdiff_t>(columns);
    const auto own = free.begin() + static_cast<std::ptrdiff_t>(segment) * width;
    if (std::equal(own, own + width, own - width)) {
        begin.erase(begin.begin() + static_cast<std::ptrdiff_t>(segment));
        free.erase(own, own + width);
    }
}

} // namespace bridge
