// SPDX-License-Identifier: Apache-2.0
// The part of NodePlanner that searches for starts.
//
// The earliest start of a job on k individual nodes: let f(i, t) be the earliest start >= t on node
// i alone. No start before the k-th smallest f(., t) is possible, and t itself is one if it equals
// that. So t climbs from one k-th smallest to the next.
#include <algorithm>

#include "single_pass/node_planner.hpp"

namespace bridge {
namespace {

constexpr size_t OWN_LIST_FROM = 4; // alternatives with the same want

} // namespace

int64_t NodePlanner::next_fit(const NodeDemand &demand, Need need, int32_t node, int64_t from,
                              int64_t length, int64_t latest) const {
    int64_t start = from;
    for (;;) {
        start = timelines_.next_fit(static_cast<size_t>(node), need, start, length, latest);
        if (start == NEVER || !classes_.has_blackouts(demand.cls)) {
            return start;
        }
        const int64_t open = classes_.next_open(demand.cls, node, start, length);
        if (open == start) {
            return start;
        }
        start = open;
    }
}

int32_t NodePlanner::room_in(const NodeDemand &demand, int32_t node, int64_t start,
                             int64_t length) const {
    if (classes_.next_open(demand.cls, node, start, length) != start) {
        return 0;
    }
    static thread_local std::vector<int64_t> free;
    free.resize(timelines_.columns());
    timelines_.minimum(static_cast<size_t>(node), start, end_of(start, length), free.data());
    return demand.room_in(free.data(), classes_.type(node));
}

std::vector<Candidate> NodePlanner::candidates_at(const NodeDemand &demand, int64_t start,
                                                  int64_t length, size_t enough) const {
    std::vector<Candidate> candidates;
    for (const int32_t node : classes_.nodes(demand.cls)) {
        if (candidates.size() == enough) {
            break;
        }
        if (demand.room[classes_.type(node)] == 0) {
            continue;
        }
        if (demand.tasks > 0) {
            const int32_t room = room_in(demand, node, start, length);
            if (room > 0) {
                candidates.push_back({node, room});
            }
        } else if (next_fit(demand, demand.need(), node, start, length, start) == start) {
            candidates.push_back({node, 1});
        }
    }
    return candidates;
}

NodePlanner::Look NodePlanner::look(size_t job, const Option &option) {
    Look look;
    if (option.pool >= 0) {
        look_at_pool(*pools_[static_cast<size_t>(option.pool)], option.alternative, look);
    } else {
        look_at_nodes(option.alternative, look);
    }
    if (look.why == Blocked::STARTS_NOW || look.why == Blocked::PLANNED_START) {
        if (counter_lacking_now(job) >= 0) {
            look.why = Blocked::COUNTER;
        } else if (counters_free(job, problem_.now, problem_.alt_time_limit_s[option.alternative],
                                 problem_.now) == NEVER) {
            look.why = Blocked::PLANNED_START;
        }
    }
    return look;
}

void NodePlanner::look_at_pool(const NodePool &pool, size_t alternative, Look &look) {
    const int64_t end = end_of(problem_.now, problem_.alt_time_limit_s[alternative]);
    const int64_t smallest = pool_width(alternative);
    look.fit = std::max<int64_t>(pool.free_until(end), 0);
    if (look.fit >= smallest) {
        const bool counts_tasks = demands_.of(alternative).tasks > 0;
        look.width = counts_tasks ? smallest : demands_.widths(alternative).greatest(look.fit);
    } else {
        look.why = pool.free_now() >= smallest ? Blocked::PLANNED_START : Blocked::NODES_BUSY;
    }
}

// The demand's own list if several alternatives share it, else one for the whole class.
NowList &NodePlanner::list_now(NodeDemand &demand) {
    NowList &list = demand.alternatives.size() >= OWN_LIST_FROM ? demand.now
                    : demand.exclusive                          ? idle_[demand.cls]
                                                                : open_[demand.cls];
    if (!list.made) {
        list.nodes = classes_.nodes(demand.cls);
        list.made = true;
    }
    return list;
}

void NodePlanner::look_at_nodes(size_t alternative, Look &look) {
    NodeDemand &demand = demands_.of(alternative);
    const int64_t length = problem_.alt_time_limit_s[alternative];
    const size_t columns = timelines_.columns();
    NowList &list = list_now(demand);
    std::vector<int32_t> &nodes = list.nodes;
    const bool own = &list == &demand.now;
    std::vector<Candidate> free_now;
    std::vector<Candidate> open_now; // and not in a blackout
    size_t kept = 0;
    for (const int32_t node : nodes) {
        const int64_t *free = free_now_.data() + static_cast<size_t>(node) * columns;
        const int32_t room = demand.room_in(free, classes_.type(node));
        if (own ? room > 0 : free[0] >= demand.one[0]) { // else excluded for good
            nodes[kept++] = node;
        }
        if (room == 0) {
            continue;
        }
        free_now.push_back({node, room});
        if (classes_.next_open(demand.cls, node, problem_.now, length) != problem_.now) {
            continue;
        }
        open_now.push_back({node, room});
        if (planned_later_[static_cast<size_t>(node)] == 0) {
            look.candidates.push_back({node, room}); // free amounts only grow there
        } else if (demand.tasks > 0) {
            const int32_t room_throughout = room_in(demand, node, problem_.now, length);
            if (room_throughout > 0) {
                look.candidates.push_back({node, room_throughout});
            }
        } else if (timelines_.next_fit(static_cast<size_t>(node), demand.need(), problem_.now,
                                       length, problem_.now) == problem_.now) {
            look.candidates.push_back({node, room});
        }
    }
    nodes.resize(kept);
    look.fit = static_cast<int64_t>(look.candidates.size());
    const Widths &widths = demands_.widths(alternative);
    look.width = choice_.width(demand, widths, look.candidates, true);
    if (look.width == -1) {
        look.why = width_to_take(demand, widths, free_now, true) == -1   ? Blocked::NODES_BUSY
                   : width_to_take(demand, widths, open_now, true) == -1 ? Blocked::BLACKOUT
                                                                         : Blocked::PLANNED_START;
    }
}

int64_t NodePlanner::counters_free(size_t job, int64_t from, int64_t length, int64_t latest) const {
    int64_t start = from;
    for (size_t k = 0, agreed = 0; agreed < problem_.n_counters; k = (k + 1) % counters_.size()) {
        const int64_t wanted = problem_.job_counter[job * problem_.n_counters + k];
        const int64_t before = start;
        if (wanted > 0) {
            start = counters_[k].earliest(start, wanted, length, latest).start;
            if (start == NEVER) {
                return NEVER;
            }
        }
        agreed = start == before ? agreed + 1 : 1;
    }
    return start;
}

int32_t NodePlanner::counter_lacking_now(size_t job) const {
    for (size_t k = 0; k < problem_.n_counters; ++k) {
        const int64_t wanted = problem_.job_counter[job * problem_.n_counters + k];
        if (wanted > 0 && counters_[k].minimum(problem_.now, problem_.now + 1) < wanted) {
            return static_cast<int32_t>(k);
        }
    }
    return -1;
}

int64_t NodePlanner::earliest(size_t job, const Option &option, int64_t from, int64_t latest) {
    const size_t a = option.alternative;
    NodeDemand &demand = demands_.of(a);
    const int64_t length = problem_.alt_time_limit_s[a];
    const bool held_back = problem_.not_before[job] > problem_.now;
    NodePool *pool = option.pool >= 0 ? pools_[static_cast<size_t>(option.pool)].get() : nullptr;
    const int64_t width = pool != nullptr ? pool_width(a) : demands_.dominance_count(demand, a);
    Dominance &dominance = pool != nullptr ? pool->dominance() : demands_.dominance(demand);
    const int64_t known = std::max(from, dominance.bound(width, length));
    int64_t start = known;
    RecentStarts &recent = recent_[demand.cls];
    std::vector<int64_t> amounts;
    if (pool == nullptr) {
        amounts = demand.one;
        amounts.push_back(demands_.widths(a).smallest());
        amounts.push_back(length);
        start = std::max(start, recent.bound(amounts.data()));
        first_start_.assign(classes_.nodes(demand.cls).size(), 0);
    }
    const int64_t sought_from = start;
    for (bool agreed = false; !agreed;) {
        const int64_t before = start;
        if (start <= latest) {
            start = counters_free(job, start, length, latest);
        }
        if (start <= latest) {
            start = pool != nullptr    ? pool->earliest(start, width, length, latest)
                    : demand.tasks > 0 ? next_with_tasks(demand, a, start, latest)
                                       : next_with_width(demand, a, start, latest);
        }
        agreed = start > latest || start == before;
    }
    // Beyond `latest` only that is known; a start delayed by something else bounds nothing.
    const int64_t learnt = start > latest ? std::max<int64_t>(latest, 1) : start;
    if (!held_back && learnt > known && (pool == nullptr || !demand.counters)) {
        dominance.record(width, length, learnt);
    }
    if (!held_back && learnt > sought_from && pool == nullptr && demand.plain()) {
        recent.record(amounts.data(), learnt);
    }
    return start > latest ? NEVER : start;
}

// A lower bound > `from` for the earliest start >= `from` on the least number of nodes; `from`
// itself if that is one; NEVER beyond `latest`. `first_start_` holds for each node the time before
// which it cannot take the job.
int64_t NodePlanner::next_with_width(const NodeDemand &demand, size_t alternative, int64_t from,
                                     int64_t latest) {
    const int64_t length = problem_.alt_time_limit_s[alternative];
    const auto width = static_cast<size_t>(demands_.widths(alternative).smallest());
    int64_t required_start = from;
    for (const int32_t node : demand.required_list) {
        required_start =
            std::max(required_start, next_fit(demand, demand.need(), node, from, length, latest));
    }
    if (required_start > from) {
        return required_start;
    }
    const std::vector<int32_t> &nodes = classes_.nodes(demand.cls);
    std::vector<int64_t> smallest; // a max-heap of `width`
    size_t ready = 0;
    for (size_t i = 0; i < nodes.size(); ++i) {
        if (demand.room[classes_.type(nodes[i])] == 0) {
            continue;
        }
        const int64_t useful = smallest.size() == width ? smallest.front() - 1 : latest;
        if (first_start_[i] > useful) {
            continue;
        }
        const int64_t start = next_fit(demand, demand.need(), nodes[i],
                                       std::max(from, first_start_[i]), length, useful);
        first_start_[i] = start == NEVER ? useful + 1 : start;
        if (start == NEVER) {
            continue;
        }
        if (start == from && ++ready == width) {
            return from;
        }
        if (smallest.size() == width) {
            std::pop_heap(smallest.begin(), smallest.end());
            smallest.pop_back();
        }
        smallest.push_back(start);
        std::push_heap(smallest.begin(), smallest.end());
    }
    return smallest.size() == width ? smallest.front() : NEVER;
}

// The same for a job with tasks. If the nodes at `from` cannot hold them, some must gain capacity;
// no start is possible before those that could, each gaining the most it ever can, make up the
// difference.
int64_t NodePlanner::next_with_tasks(const NodeDemand &demand, size_t alternative, int64_t from,
                                     int64_t latest) {
    const int64_t length = problem_.alt_time_limit_s[alternative];
    const std::vector<Candidate> candidates = candidates_at(demand, from, length, SIZE_MAX);
    if (width_to_take(demand, demands_.widths(alternative), candidates, false) != -1) {
        return from;
    }
    int64_t missing = demand.tasks;
    std::vector<int32_t> capacities(problem_.n_nodes, 0);
    for (const Candidate &candidate : candidates) {
        capacities[static_cast<size_t>(candidate.node)] = candidate.room;
        missing -= candidate.room;
    }
    missing = std::max<int64_t>(missing, 1);
    std::vector<std::pair<int64_t, int64_t>> gains; // earliest time, greatest gain
    std::vector<int64_t> amounts(timelines_.columns());
    for (const int32_t node : classes_.nodes(demand.cls)) {
        const int32_t room = capacities[static_cast<size_t>(node)];
        const int32_t maximum = demand.room[classes_.type(node)];
        if (room >= maximum) {
            continue;
        }
        for (size_t c = 0; c < amounts.size(); ++c) {
            amounts[c] = demand.base[c] + (room + 1) * demand.per_task[c];
        }
        const Need need{amounts.data(), demand.need().columns};
        const int64_t start = next_fit(demand, need, node, from, length, latest);
        if (start != NEVER) {
            gains.emplace_back(start, maximum - room);
        }
    }
    std::sort(gains.begin(), gains.end());
    for (const auto &[start, gain] : gains) {
        missing -= gain;
        if (missing <= 0) {
            return start;
        }
    }
    return NEVER;
}

} // namespace bridge
