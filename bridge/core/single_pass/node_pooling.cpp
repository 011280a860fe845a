// SPDX-License-Identifier: Apache-2.0
// The part of NodePlanner that decides which nodes may be planned as a count.
//
// 1. An alternative may be pooled if the job needs whole nodes, names none, no blackout closes
// nodes
//    of its class, and every node that is large enough holds the same number of its tasks.
// 2. Its nodes are then a pool, if no job before distinguished between them: pools are equal or
//    disjoint. A job is pooled on all its possible alternatives or on none.
// 3. A job that is not pooled dissolves the pools it touches: their bookings get their nodes, and
// all
//    these nodes are planned individually from then on. No start changes by this.
#include <algorithm>

#include "single_pass/node_planner.hpp"

namespace bridge {
std::vector<int32_t> NodePlanner::large_enough(const NodeDemand &demand) const {
    std::vector<int32_t> nodes;
    for (const int32_t node : classes_.nodes(demand.cls)) {
        if (demand.room[classes_.type(node)] > 0) {
            nodes.push_back(node);
        }
    }
    return nodes;
}

bool NodePlanner::may_pool(size_t alternative) {
    const NodeDemand &demand = demands_.of(alternative);
    return demand.exclusive && demand.required == nullptr && !classes_.has_blackouts(demand.cls) &&
           demand.uniform_room > 0;
}

// The least number of nodes; for tasks that is the only one.
int64_t NodePlanner::pool_width(size_t alternative) {
    const NodeDemand &demand = demands_.of(alternative);
    Widths widths = demands_.widths(alternative);
    if (demand.tasks > 0) {
        const int64_t full = (demand.tasks + demand.uniform_room - 1) / demand.uniform_room;
        widths.minimum = std::max(widths.minimum, full);
    }
    return widths.smallest();
}

// The pool that is exactly these nodes, FREE if no job has asked for any of them, else FIXED.
int32_t NodePlanner::pool_of(const std::vector<int32_t> &nodes) const {
    const int32_t pool = node_pool_[static_cast<size_t>(nodes.front())];
    for (const int32_t node : nodes) {
        if (node_pool_[static_cast<size_t>(node)] != pool) {
            return FIXED;
        }
    }
    const bool whole =
        pool < 0 || pools_[static_cast<size_t>(pool)]->members().size() == nodes.size();
    return whole ? pool : FIXED;
}

int32_t NodePlanner::make_pool(std::vector<int32_t> nodes) {
    const auto pool = static_cast<int32_t>(pools_.size());
    for (const int32_t node : nodes) {
        node_pool_[static_cast<size_t>(node)] = pool;
    }
    if (problem_.select == Select::BEST_FIT) {
        std::stable_sort(nodes.begin(), nodes.end(), [&](int32_t a, int32_t b) {
            return std::make_pair(classes_.rank(a), classes_.size_score(a)) <
                   std::make_pair(classes_.rank(b), classes_.size_score(b));
        });
    }
    pools_.push_back(std::make_unique<NodePool>(problem_.now, std::move(nodes), held_until_,
                                                pool_widths_, pool_limits_));
    return pool;
}

// The options, if earlier jobs with the same demands settled them; else none.
std::vector<NodePlanner::Option> NodePlanner::pooled_before(const std::vector<size_t> &possible) {
    std::vector<Option> options;
    size_t fixed = 0;
    for (const size_t a : possible) {
        NodeDemand &demand = demands_.of(a);
        if (demand.pool >= 0 && !pools_[static_cast<size_t>(demand.pool)]) {
            demand.pool = FIXED;
        }
        if (demand.pool == FREE) {
            return {};
        }
        fixed += demand.pool == FIXED ? 1 : 0;
        options.push_back({a, demand.pool});
    }
    return fixed == 0 || fixed == options.size() ? options : std::vector<Option>{};
}

std::vector<NodePlanner::Option> NodePlanner::options_of(const std::vector<size_t> &possible) {
    std::vector<Option> options = pooled_before(possible);
    if (!options.empty()) {
        return options;
    }
    std::vector<std::vector<int32_t>> nodes;
    bool pooled = true;
    for (const size_t a : possible) {
        nodes.push_back(large_enough(demands_.of(a)));
        options.push_back({a, may_pool(a) ? pool_of(nodes.back()) : FIXED});
        pooled &= options.back().pool != FIXED;
    }
    for (size_t i = 0; pooled && i < options.size(); ++i) {
        int32_t pool = pool_of(nodes[i]); // again: the previous option may have made it
        if (pool == FREE) {
            pool = make_pool(nodes[i]);
        }
        options[i].pool = pool;
        pooled &= pool != FIXED;
    }
    for (size_t i = 0; i < options.size(); ++i) {
        if (!pooled) {
            options[i].pool = FIXED;
            fix(nodes[i]);
        }
        demands_.of(options[i].alternative).pool = options[i].pool;
    }
    return options;
}

void NodePlanner::fix(const std::vector<int32_t> &nodes) {
    open_timelines();
    for (const int32_t node : nodes) {
        const int32_t pool = node_pool_[static_cast<size_t>(node)];
        if (pool >= 0) {
            dissolve(static_cast<size_t>(pool));
        }
        node_pool_[static_cast<size_t>(node)] = FIXED;
    }
}

void NodePlanner::dissolve(size_t index) {
    const std::unique_ptr<NodePool> pool = std::move(pools_[index]);
    for (const int32_t node : pool->members()) {
        node_pool_[static_cast<size_t>(node)] = FIXED;
    }
    std::vector<std::vector<int32_t>> nodes;
    std::vector<int32_t *> into;
    for (const NodePool::Booking &booking : pool->bookings()) {
        nodes.emplace_back(static_cast<size_t>(booking.width));
        into.push_back(nodes.back().data());
    }
    pool->map(into);
    for (size_t b = 0; b < nodes.size(); ++b) {
        const NodePool::Booking &booking = pool->bookings()[b];
        chosen_[booking.job] = spread_in_pool(booking, nodes[b].data());
        book_nodes(demands_.of(booking.alternative), booking.start, booking.end,
                   chosen_[booking.job]);
    }
}

// Writes the nodes of a pool's bookings to the result.
void NodePlanner::write_pool(const NodePool &pool) {
    std::vector<int32_t *> into;
    for (const NodePool::Booking &booking : pool.bookings()) {
        into.push_back(result_.nodes.data() + result_.indptr[booking.job]);
    }
    pool.map(into);
    for (size_t b = 0; b < into.size(); ++b) {
        const NodePool::Booking &booking = pool.bookings()[b];
        if (demands_.of(booking.alternative).tasks > 0) {
            chosen_[booking.job] = spread_in_pool(booking, into[b]); // written with the others
        } else if (!std::is_sorted(into[b], into[b] + booking.width)) {
            std::sort(into[b], into[b] + booking.width);
        }
    }
}

std::vector<Chosen> NodePlanner::spread_in_pool(const NodePool::Booking &booking,
                                                const int32_t *nodes) {
    const NodeDemand &demand = demands_.of(booking.alternative);
    std::vector<Candidate> taken;
    for (int64_t i = 0; i < booking.width; ++i) {
        taken.push_back({nodes[i], demand.uniform_room});
    }
    return NodeChoice::spread(demand, taken);
}

} // namespace bridge
