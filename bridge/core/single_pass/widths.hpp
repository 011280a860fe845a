// SPDX-License-Identifier: Apache-2.0
// How many nodes a job may have, and how many it needs for its tasks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "single_pass/node_problem.hpp"

namespace bridge {

// The smallest width >= `width` that satisfies the rule.
inline int64_t next_width(int64_t width, WidthRule rule) {
    switch (rule) {
    case WidthRule::POWER_OF_TWO: {
        int64_t power = 1;
        while (power < width) {
            power *= 2;
        }
        return power;
    }
    case WidthRule::EVEN:
        return width + (width & 1);
    case WidthRule::ODD:
        return width | 1;
    case WidthRule::CUBIC: {
        int64_t root = 1;
        while (root * root * root < width) {
            ++root;
        }
        return root * root * root;
    }
    case WidthRule::ANY:
        break;
    }
    return width;
}

struct Widths {
    int64_t minimum; // >= 1
    int64_t maximum;
    WidthRule rule;

    // The smallest allowed width, or -1.
    int64_t smallest() const {
        const int64_t width = next_width(minimum, rule);
        return width <= maximum ? width : -1;
    }
    // The greatest allowed width <= `limit`, or -1.
    int64_t greatest(int64_t limit) const {
        const int64_t top = std::min(maximum, limit);
        if (rule == WidthRule::ANY || rule == WidthRule::EVEN || rule == WidthRule::ODD) {
            const int64_t width = next_width(top, rule) == top ? top : top - 1;
            return width >= minimum && width >= 1 ? width : -1;
        }
        int64_t best = -1;
        for (int64_t width = next_width(minimum, rule); width <= top;
             width = next_width(width + 1, rule)) {
            best = width;
        }
        return best;
    }
};

// The smallest allowed width of a set that holds `tasks`, or -1: all the `fixed` nodes, which
// together hold `fixed_tasks`, and the others with the largest capacity. `others` holds the
// capacity of each (>= 1) and is sorted in place. No more nodes than tasks.
inline int64_t width_for_tasks(const Widths &widths, int64_t tasks, int64_t fixed,
                               int64_t fixed_tasks, std::vector<int32_t> &others) {
    const int64_t maximum =
        std::min({widths.maximum, tasks, fixed + static_cast<int64_t>(others.size())});
    const Widths allowed{std::max({widths.minimum, fixed, int64_t{1}}), maximum, widths.rule};
    std::sort(others.begin(), others.end(), std::greater<>());
    int64_t held = fixed_tasks;
    int64_t taken = 0;
    for (int64_t width = allowed.smallest(); width != -1 && width <= maximum;
         width = next_width(width + 1, widths.rule)) {
        for (; fixed + taken < width; ++taken) {
            held += others[static_cast<size_t>(taken)];
        }
        if (held >= tasks) {
            return width;
        }
    }
    return -1;
}

// Nodes of one rank that each hold this many tasks (>= 1).
struct RankedCapacity {
    int32_t rank;
    int32_t room;
    int64_t nodes;
};

// The smallest allowed width of a set that has all nodes of the lower ranks, and those of the last
// rank with the largest capacity; `fewest` (of any nodes) if the bounds allow no such set.
// `capacities` hold the tasks together and are sorted in place.
inline int64_t width_by_rank(const Widths &widths, int64_t tasks, int64_t fewest,
                             std::vector<RankedCapacity> &capacities) {
    std::sort(capacities.begin(), capacities.end(),
              [](const RankedCapacity &a, const RankedCapacity &b) {
                  return a.rank != b.rank ? a.rank < b.rank : a.room > b.room;
              });
    int64_t available = 0;
    for (const RankedCapacity &one : capacities) {
        available += one.nodes;
    }
    int64_t missing = tasks;
    int64_t width = 0;
    for (size_t i = 0; i < capacities.size() && missing > 0;) {
        int64_t held = 0;
        int64_t nodes = 0;
        size_t after = i;
        for (; after < capacities.size() && capacities[after].rank == capacities[i].rank; ++after) {
            held += capacities[after].nodes * capacities[after].room;
            nodes += capacities[after].nodes;
        }
        if (held < missing) {
            missing -= held;
            width += nodes;
            i = after;
            continue;
        }
        for (; missing > 0; ++i) {
            const int64_t needed = (missing + capacities[i].room - 1) / capacities[i].room;
            const int64_t taken = std::min(needed, capacities[i].nodes);
            missing -= taken * capacities[i].room;
            width += taken;
        }
    }
    width = next_width(std::max({width, widths.minimum, fewest}), widths.rule);
    return width <= std::min({widths.maximum, tasks, available}) ? width : fewest;
}

} // namespace bridge
