// SPDX-License-Identifier: Apache-2.0
// The part of ListsDecoder that looks for nodes; node_search.cpp and node_choice.cpp by groups.
#include <algorithm>
#include <tuple>

#include "common/times.hpp"
#include "order_search/lists.hpp"

namespace bridge {
namespace {

constexpr int64_t OF_A_GROUP = 50, OF_A_ROOM = 120; // steps: to look into it, to choose of it

// How many of the roomiest nodes hold the tasks; -1: not even all. `rooms` in falling order.
template <typename Rooms, typename Count>
int64_t fewest(const Rooms &rooms, int64_t tasks, const Count &count) {
    int64_t missing = tasks;
    int64_t width = 0;
    for (const auto &one : rooms) {
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

int64_t ListsDecoder::next_fit_in(const Want &want, Need need, size_t group, int64_t from,
                                  int64_t length, int64_t latest) const {
    int64_t start = from;
    for (;;) {
        start = groups_->lines().next_fit(group, need, start, length, latest);
        if (start == NEVER || !classes_.has_blackouts(want.cls)) {
            return start;
        }
        const int64_t open = classes_.next_open(want.cls, (*groups_)[group].node, start, length);
        if (open == start) {
            return start;
        }
        start = open;
    }
}

// The groups whose nodes can take the job then, with their rooms.
void ListsDecoder::find_rooms(const Want &want, int64_t start, int64_t length) {
    rooms_.clear();
    const NodeGroups &groups = *groups_;
    steps_ += OF_A_GROUP * static_cast<int64_t>(groups.size());
    for (uint32_t g = 0; g < groups.size(); ++g) {
        const NodeGroups::Group &group = groups[g];
        const size_t type = classes_.type(group.node);
        if (!groups.inside(g, want.cls) || want.room[type] == 0) {
            continue;
        }
        if (want.tasks == 0) {
            if (next_fit_in(want, want.need(), g, start, length, start) == start) {
                rooms_.push_back({g, 1});
            }
            continue;
        }
        if (classes_.next_open(want.cls, group.node, start, length) == start) {
            groups.lines().least(g, start, end_of(start, length), free_.data());
            const int32_t room = want.room_in(free_.data(), type);
            if (room > 0) {
                rooms_.push_back({g, room});
            }
        }
    }
}

// As NodeChoice::width.
int64_t ListsDecoder::width_in_rooms(const Want &want, const Widths &widths, bool widest) {
    const NodeGroups &groups = *groups_;
    int64_t available = 0;
    int64_t fixed = 0;
    int64_t fixed_tasks = 0;
    for (const Room &one : rooms_) {
        const bool is_fixed = want.requires_node(groups[one.group].node); // then it is alone
        fixed += is_fixed ? 1 : 0;
        fixed_tasks += is_fixed ? one.room : 0;
        available += groups[one.group].size();
    }
    if (fixed < static_cast<int64_t>(want.required_list.size())) {
        return -1;
    }
    if (want.tasks == 0) {
        const int64_t smallest = widths.smallest();
        return widest ? widths.greatest(available) : smallest <= available ? smallest : -1;
    }
    struct Others {
        int32_t room;
        int64_t nodes;
    };
    static thread_local std::vector<Others> others;
    others.clear();
    for (const Room &one : rooms_) {
        if (!want.requires_node(groups[one.group].node)) {
            others.push_back({one.room, groups[one.group].size()});
        }
    }
    std::sort(others.begin(), others.end(),
              [](const Others &a, const Others &b) { return a.room > b.room; });
    const int64_t more =
        want.tasks <= fixed_tasks
            ? 0
            : fewest(others, want.tasks - fixed_tasks, [](const Others &one) { return one.nodes; });
    if (more == -1) {
        return -1;
    }
    const int64_t width =
        next_width(std::max({fixed + more, widths.least, int64_t{1}}), widths.rule);
    if (width > std::min({widths.most, want.tasks, available})) {
        return -1;
    }
    if (want.required != nullptr) {
        return width;
    }
    static thread_local std::vector<RankedRoom> ranked;
    ranked.clear();
    for (const Room &one : rooms_) {
        const NodeGroups::Group &group = groups[one.group];
        ranked.push_back({classes_.rank(group.node), one.room, group.size()});
    }
    return width_by_rank(widths, want.tasks, width, ranked);
}

// As next_with_width.
int64_t ListsDecoder::next_with_groups(size_t alternative, int64_t from, int64_t latest) {
    const Want &want = wants_.of(alternative);
    const NodeGroups &groups = *groups_;
    const int64_t length = problem_.alt_time_limit_s[alternative];
    const int64_t width = wants_.widths(alternative).smallest();
    int64_t ready = 0;
    int64_t required_start = from;
    steps_ += OF_A_GROUP * static_cast<int64_t>(groups.size());
    starts_.clear();
    for (size_t g = 0; g < groups.size(); ++g) {
        const NodeGroups::Group &group = groups[g];
        if (!groups.inside(g, want.cls) || want.room[classes_.type(group.node)] == 0) {
            continue;
        }
        const int64_t start = next_fit_in(want, want.need(), g, from, length, latest);
        if (want.requires_node(group.node)) {
            required_start = std::max(required_start, start);
        }
        if (start == from) {
            ready += group.size();
        } else if (start != NEVER) {
            starts_.emplace_back(start, group.size());
        }
        if (ready >= width && want.required == nullptr) {
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
int64_t ListsDecoder::next_with_rooms(size_t alternative, int64_t from, int64_t latest) {
    const Want &want = wants_.of(alternative);
    const NodeGroups &groups = *groups_;
    const int64_t length = problem_.alt_time_limit_s[alternative];
    find_rooms(want, from, length);
    if (width_in_rooms(want, wants_.widths(alternative), false) != -1) {
        return from;
    }
    int64_t missing = want.tasks;
    for (const Room &one : rooms_) {
        missing -= int64_t{one.room} * groups[one.group].size();
    }
    missing = std::max<int64_t>(missing, 1);
    steps_ += OF_A_GROUP * static_cast<int64_t>(groups.size());
    starts_.clear();
    size_t known = 0; // rooms_ are in the order of the groups
    for (uint32_t g = 0; g < groups.size(); ++g) {
        int32_t room = 0;
        if (known < rooms_.size() && rooms_[known].group == g) {
            room = rooms_[known++].room;
        }
        const NodeGroups::Group &group = groups[g];
        const int32_t most = want.room[classes_.type(group.node)];
        if (!groups.inside(g, want.cls) || room >= most) {
            continue;
        }
        for (size_t c = 0; c < taken_.size(); ++c) {
            taken_[c] = want.base[c] + (room + 1) * want.per_task[c];
        }
        const Need need{taken_.data(), want.need().columns};
        const int64_t start = next_fit_in(want, need, g, from, length, latest);
        if (start != NEVER) {
            starts_.emplace_back(start, int64_t{most - room} * group.size());
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
void ListsDecoder::sort_rooms(const Want &want, const Place &place) {
    const NodeGroups &groups = *groups_;
    steps_ += OF_A_ROOM * static_cast<int64_t>(rooms_.size());
    for (Room &one : rooms_) {
        const int32_t node = groups[one.group].node;
        if (problem_.select == Select::BEST_FIT) {
            if (want.exclusive) {
                const int64_t busy = groups.lines().busy_from(one.group, place.end);
                one.first = classes_.size_score(node);
                one.second = busy == NEVER ? NEVER : busy - place.end;
            } else {
                groups.lines().least(one.group, place.start, place.end, free_.data());
                want.amounts(want.tasks > 0 ? one.room : 0, taken_.data());
                for (size_t c = 0; c < free_.size(); ++c) {
                    free_[c] -= taken_[c];
                }
                one.first = classes_.left_score(node, free_.data() + 1);
            }
        }
        one.rank = classes_.rank(node);
        one.required = want.requires_node(node);
    }
    std::sort(rooms_.begin(), rooms_.end(), [&](const Room &a, const Room &b) {
        return std::make_tuple(!a.required, a.rank, a.first, a.second,
                               groups.place(groups[a.group].begin)) <
               std::make_tuple(!b.required, b.rank, b.first, b.second,
                               groups.place(groups[b.group].begin));
    });
}

// As NodeChoice::choose and spread.
void ListsDecoder::choose_in_rooms(const Want &want, int64_t width, Place &place) {
    const NodeGroups &groups = *groups_;
    sort_rooms(want, place);
    struct Left {
        int32_t room;
        int64_t nodes;
    };
    static thread_local std::vector<Left> left; // candidates not looked at, by falling room
    left.clear();
    for (const Room &one : rooms_) {
        left.push_back({one.room, groups[one.group].size()});
    }
    std::sort(left.begin(), left.end(),
              [](const Left &a, const Left &b) { return a.room > b.room; });
    size_t kinds = 0;
    for (const Left &one : left) {
        if (kinds > 0 && left[kinds - 1].room == one.room) {
            left[kinds - 1].nodes += one.nodes;
        } else {
            left[kinds++] = one;
        }
    }
    left.resize(kinds);

    int64_t to_take = width;
    int64_t missing = want.tasks;
    int64_t spare = want.tasks - width; // tasks beyond one on every node
    place.pieces.clear();
    static thread_local std::vector<uint32_t> next; // of the run: the position to look at next
    for (size_t run = 0; to_take > 0 && run < rooms_.size();) {
        size_t after = run + 1; // a run: rooms that only the planner's order tells apart
        while (after < rooms_.size() && rooms_[after].required == rooms_[run].required &&
               rooms_[after].rank == rooms_[run].rank && rooms_[after].first == rooms_[run].first &&
               rooms_[after].second == rooms_[run].second) {
            ++after;
        }
        next.clear();
        for (size_t r = run; r < after; ++r) {
            next.push_back(groups[rooms_[r].group].begin);
        }
        while (to_take > 0) {
            size_t first = SIZE_MAX;
            uint32_t place_of_first = UINT32_MAX;
            uint32_t place_of_second = UINT32_MAX;
            for (size_t r = run; r < after; ++r) {
                const uint32_t at = next[r - run];
                if (at == groups[rooms_[r].group].end) {
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
            const Room &one = rooms_[first];
            uint32_t &at = next[first - run];
            const auto same = [&](const Left &other) { return other.room == one.room; };
            const auto kind = std::find_if(left.begin(), left.end(), same);
            for (; to_take > 0 && at < groups[one.group].end && groups.place(at) < place_of_second;
                 ++at) {
                --kind->nodes;
                if (want.tasks > 0 && !one.required) {
                    int64_t others = to_take - 1;
                    int64_t most = one.room;
                    for (const Left &other : left) {
                        const int64_t n = std::min(others, other.nodes);
                        most += n * other.room;
                        others -= n;
                    }
                    if (others > 0 || most < missing) {
                        continue;
                    }
                }
                missing -= one.room;
                --to_take;
                const int64_t more = want.tasks > 0 ? std::min<int64_t>(spare, one.room - 1) : 0;
                spare -= more;
                const auto tasks = want.tasks > 0 ? static_cast<int32_t>(1 + more) : 0;
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
