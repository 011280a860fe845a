// SPDX-License-Identifier: Apache-2.0
// The part of ListsDecoder that chooses nodes; node_search.cpp and node_choice.cpp for groups.
#include <algorithm>
#include <tuple>

#include "common/completable.hpp"
#include "common/times.hpp"
#include "order_search/lists.hpp"

namespace bridge {
namespace {

constexpr int64_t OF_A_GROUP = 50, OF_A_CANDIDATE = 120; // steps: to visit it, to choose from it

// The smallest number of nodes that hold the tasks; -1: all are too few. `capacities` in descending
// order.
template <typename Capacities, typename Count>
int64_t fewest(const Capacities &capacities, int64_t tasks, const Count &count) {
    int64_t missing = tasks;
    int64_t width = 0;
    for (const auto &one : capacities) {
        const int64_t nodes = count(one);
        const int64_t needed = (missing + one.room - 1) / one.room;
        if (needed <= nodes) {
            return width + needed;
        }
        missing -= nodes * one.room;
        width += nodes;
    }
    return -1;
}

} // namespace

int64_t ListsDecoder::next_fit_in(const NodeDemand &demand, Need need, size_t group, int64_t from,
                                  int64_t length, int64_t latest) const {
    int64_t start = from;
    for (;;) {
        start = groups_->lines().next_fit(group, need, start, length, latest);
        if (start == NEVER || !classes_.has_blackouts(demand.cls)) {
            return start;
        }
        const int64_t open = classes_.next_open(demand.cls, (*groups_)[group].node, start, length);
        if (open == start) {
            return start;
        }
        start = open;
    }
}

// The groups whose nodes can take the job then, with their capacities in tasks.
void ListsDecoder::find_candidates(const NodeDemand &demand, int64_t start, int64_t length) {
    group_candidates_.clear();
    const NodeGroups &groups = *groups_;
    steps_ += OF_A_GROUP * static_cast<int64_t>(groups.size());
    for (uint32_t g = 0; g < groups.size(); ++g) {
        const NodeGroups::Group &group = groups[g];
        const size_t type = classes_.type(group.node);
        if (!groups.inside(g, demand.cls) || demand.room[type] == 0) {
            continue;
        }
        if (demand.tasks == 0) {
            if (next_fit_in(demand, demand.need(), g, start, length, start) == start) {
                group_candidates_.push_back({g, 1});
            }
            continue;
        }
        if (classes_.next_open(demand.cls, group.node, start, length) == start) {
            groups.lines().minimum(g, start, end_of(start, length), free_.data());
            const int32_t room = demand.room_in(free_.data(), type);
            if (room > 0) {
                group_candidates_.push_back({g, room});
            }
        }
    }
}

// As NodeChoice::width.
int64_t ListsDecoder::width_of_candidates(const NodeDemand &demand, const Widths &widths,
                                          bool widest) {
    const NodeGroups &groups = *groups_;
    int64_t available = 0;
    int64_t fixed = 0;
    int64_t fixed_tasks = 0;
    for (const GroupCandidate &one : group_candidates_) {
        const bool is_fixed = demand.requires_node(groups[one.group].node); // then it is alone
        fixed += is_fixed ? 1 : 0;
        fixed_tasks += is_fixed ? one.room : 0;
        available += groups[one.group].size();
    }
    if (fixed < static_cast<int64_t>(demand.required_list.size())) {
        return -1;
    }
    if (demand.tasks == 0) {
        const int64_t smallest = widths.smallest();
        return widest ? widths.greatest(available) : smallest <= available ? smallest : -1;
    }
    struct Others {
        int32_t room;
        int64_t nodes;
    };
    static thread_local std::vector<Others> others;
    others.clear();
    for (const GroupCandidate &one : group_candidates_) {
        if (!demand.requires_node(groups[one.group].node)) {
            others.push_back({one.room, groups[one.group].size()});
        }
    }
    std::sort(others.begin(), others.end(),
              [](const Others &a, const Others &b) { return a.room > b.room; });
    const int64_t more = demand.tasks <= fixed_tasks
                             ? 0
                             : fewest(others, demand.tasks - fixed_tasks,
                                      [](const Others &one) { return one.nodes; });
    if (more == -1) {
        return -1;
    }
    const int64_t width =
        next_width(std::max({fixed + more, widths.minimum, int64_t{1}}), widths.rule);
    if (width > std::min({widths.maximum, demand.tasks, available})) {
        return -1;
    }
    if (demand.required != nullptr) {
        return width;
    }
    static thread_local std::vector<RankedCapacity> ranked;
    ranked.clear();
    for (const GroupCandidate &one : group_candidates_) {
        const NodeGroups::Group &group = groups[one.group];
        ranked.push_back({classes_.rank(group.node), one.room, group.size()});
    }
    return width_by_rank(widths, demand.tasks, width, ranked);
}

// As next_with_width.
int64_t ListsDecoder::next_with_groups(size_t alternative, int64_t from, int64_t latest) {
    const NodeDemand &demand = demands_.of(alternative);
    const NodeGroups &groups = *groups_;
    const int64_t length = problem_.alt_time_limit_s[alternative];
    const int64_t width = demands_.widths(alternative).smallest();
    int64_t ready = 0;
    int64_t required_start = from;
    steps_ += OF_A_GROUP * static_cast<int64_t>(groups.size());
    starts_.clear();
    for (size_t g = 0; g < groups.size(); ++g) {
        const NodeGroups::Group &group = groups[g];
        if (!groups.inside(g, demand.cls) || demand.room[classes_.type(group.node)] == 0) {
            continue;
        }
        const int64_t start = next_fit_in(demand, demand.need(), g, from, length, latest);
        if (demand.requires_node(group.node)) {
            required_start = std::max(required_start, start);
        }
        if (start == from) {
            ready += group.size();
        } else if (start != NEVER) {
            starts_.emplace_back(start, group.size());
        }
        if (ready >= width && demand.required == nullptr) {
            return from;
        }
    }
    if (required_start > from || ready >= width) {
        return required_start;
    }
    std::sort(starts_.begin(), starts_.end());
    for (const auto &[start, nodes] : starts_) {
        ready += nodes;
        if (ready >= width) {
            return start;
        }
    }
    return NEVER;
}

// As next_with_tasks.
int64_t ListsDecoder::next_with_candidates(size_t alternative, int64_t from, int64_t latest) {
    const NodeDemand &demand = demands_.of(alternative);
    const NodeGroups &groups = *groups_;
    const int64_t length = problem_.alt_time_limit_s[alternative];
    find_candidates(demand, from, length);
    if (width_of_candidates(demand, demands_.widths(alternative), false) != -1) {
        return from;
    }
    int64_t missing = demand.tasks;
    for (const GroupCandidate &one : group_candidates_) {
        missing -= int64_t{one.room} * groups[one.group].size();
    }
    missing = std::max<int64_t>(missing, 1);
    steps_ += OF_A_GROUP * static_cast<int64_t>(groups.size());
    starts_.clear();
    size_t known = 0; // group_candidates_ are in the order of the groups
    for (uint32_t g = 0; g < groups.size(); ++g) {
        int32_t room = 0;
        if (known < group_candidates_.size() && group_candidates_[known].group == g) {
            room = group_candidates_[known++].room;
        }
        const NodeGroups::Group &group = groups[g];
        const int32_t maximum = demand.room[classes_.type(group.node)];
        if (!groups.inside(g, demand.cls) || room >= maximum) {
            continue;
        }
        for (size_t c = 0; c < taken_.size(); ++c) {
            taken_[c] = demand.base[c] + (room + 1) * demand.per_task[c];
        }
        const Need need{taken_.data(), demand.need().columns};
        const int64_t start = next_fit_in(demand, need, g, from, length, latest);
        if (start != NEVER) {
            starts_.emplace_back(start, int64_t{maximum - room} * group.size());
        }
    }
    std::sort(starts_.begin(), starts_.end());
    for (const auto &[start, gain] : starts_) {
        missing -= gain;
        if (missing <= 0) {
            return start;
        }
    }
    return NEVER;
}

// As NodeChoice::sort_by_fit, required nodes first; among equals by the planner's order.
void ListsDecoder::sort_candidates(const NodeDemand &demand, const Placement &place) {
    const NodeGroups &groups = *groups_;
    steps_ += OF_A_CANDIDATE * static_cast<int64_t>(group_candidates_.size());
    for (GroupCandidate &one : group_candidates_) {
        const int32_t node = groups[one.group].node;
        if (problem_.select == Select::BEST_FIT) {
            if (demand.exclusive) {
                const int64_t busy = groups.lines().busy_from(one.group, place.end);
                one.first = classes_.size_score(node);
                one.second = busy == NEVER ? NEVER : busy - place.end;
            } else {
                groups.lines().minimum(one.group, place.start, place.end, free_.data());
                demand.amounts(demand.tasks > 0 ? one.room : 0, taken_.data());
                for (size_t c = 0; c < free_.size(); ++c) {
                    free_[c] -= taken_[c];
                }
                one.first = classes_.left_score(node, free_.data() + 1);
            }
        }
        one.rank = classes_.rank(node);
        one.required = demand.requires_node(node);
    }
    std::sort(group_candidates_.begin(), group_candidates_.end(),
              [&](const GroupCandidate &a, const GroupCandidate &b) {
                  return std::make_tuple(!a.required, a.rank, a.first, a.second,
                                         groups.place(groups[a.group].begin)) <
                         std::make_tuple(!b.required, b.rank, b.first, b.second,
                                         groups.place(groups[b.group].begin));
              });
}

// As NodeChoice::choose and spread.
void ListsDecoder::choose_candidates(const NodeDemand &demand, int64_t width, Placement &place) {
    const NodeGroups &groups = *groups_;
    sort_candidates(demand, place);
    static thread_local CompletableSet set; // of those not required
    set.clear();
    int64_t to_take = width;
    int64_t missing = demand.tasks;
    for (const GroupCandidate &one : group_candidates_) {
        if (one.required) { // then it is alone
            --to_take;
            missing -= one.room;
        } else if (demand.tasks > 0) {
            set.add(one.rank, one.room, groups[one.group].size());
        }
    }
    set.seek(to_take, missing);

    to_take = width;
    int64_t spare = demand.tasks - width; // tasks beyond one on each node
    place.pieces.clear();
    static thread_local std::vector<uint32_t> next; // of the run: the position to visit next
    for (size_t run = 0; to_take > 0 && run < group_candidates_.size();) {
        size_t after = run + 1; // a run: capacities that only the planner's order tells apart
        while (after < group_candidates_.size() &&
               group_candidates_[after].required == group_candidates_[run].required &&
               group_candidates_[after].rank == group_candidates_[run].rank &&
               group_candidates_[after].first == group_candidates_[run].first &&
               group_candidates_[after].second == group_candidates_[run].second) {
            ++after;
        }
        next.clear();
        for (size_t r = run; r < after; ++r) {
            next.push_back(groups[group_candidates_[r].group].begin);
        }
        while (to_take > 0) {
            size_t first = SIZE_MAX;
            uint32_t place_of_first = UINT32_MAX;
            uint32_t place_of_second = UINT32_MAX;
            for (size_t r = run; r < after; ++r) {
                const uint32_t at = next[r - run];
                if (at == groups[group_candidates_[r].group].end) {
                    continue;
                }
                const uint32_t where = groups.place(at);
                if (where < place_of_first) {
                    place_of_second = place_of_first;
                    place_of_first = where;
                    first = r;
                } else {
                    place_of_second = std::min(place_of_second, where);
                }
            }
            if (first == SIZE_MAX) {
                break;
            }
            const GroupCandidate &one = group_candidates_[first];
            uint32_t &at = next[first - run];
            for (; to_take > 0 && at < groups[one.group].end && groups.place(at) < place_of_second;
                 ++at) {
                if (demand.tasks > 0 && !one.required && !set.has(one.rank, one.room)) {
                    continue;
                }
                --to_take;
                const int64_t more = demand.tasks > 0 ? std::min<int64_t>(spare, one.room - 1) : 0;
                spare -= more;
                const auto tasks = demand.tasks > 0 ? static_cast<int32_t>(1 + more) : 0;
                if (!place.pieces.empty() && place.pieces.back().end == at &&
                    place.pieces.back().tasks == tasks) {
                    ++place.pieces.back().end;
                } else {
                    place.pieces.push_back({at, at + 1, tasks});
                }
            }
        }
        run = after;
    }
}

} // namespace bridge
