// SPDX-License-Identifier: Apache-2.0
// The latest start, and the nodes for one sought group.
#include "book/search/choice.hpp"
#include "book/search/search.hpp"

#include <algorithm>

namespace bridge {

int64_t BookSearch::last_start(const Group &sought, const Shape &shape, size_t position,
                               int64_t from, int64_t length, int64_t earliest) {
    if (maximum(sought, position) == 0) {
        return -1;
    }
    int64_t start = from;
    for (int64_t before = NEVER; before != start && start >= earliest;) {
        before = start;
        start = state_.lines.last_fit(position, shape.line_need(), start, length, earliest);
        if (start >= earliest) {
            start = state_.requests.last_open(shape, position, start, length);
        }
    }
    return start < earliest ? -1 : start;
}

// The latest start of one sought group: next_several, backwards, without known results.
int64_t BookSearch::last_of(const Group &sought, int64_t length, int64_t from, int64_t earliest) {
    const Shape &shape = state_.requests.shape(sought.shape);
    for (int64_t start = from; start >= earliest;) {
        int64_t missing = sought.count;
        gains_.clear();
        for (const int32_t position : shape.positions()) {
            const auto p = static_cast<size_t>(position);
            const int64_t maximum = std::min(this->maximum(sought, p), sought.count);
            const int64_t fits = last_start(sought, shape, p, start, length, earliest);
            if (fits < 0) {
                continue;
            }
            if (fits < start) {
                gains_.emplace_back(fits, maximum);
                continue;
            }
            const int64_t here = room(sought, p, start, length, maximum);
            missing -= here;
            if (here < maximum) { // more chunks fit only if the job ends before a change within it
                const int64_t change = state_.lines.change_before(p, end_of(start, length));
                if (change >= length) {
                    gains_.emplace_back(std::min(start - 1, change - length), maximum - here);
                }
            }
        }
        if (missing <= 0) {
            return start;
        }
        std::sort(gains_.rbegin(), gains_.rend());
        start = -1;
        for (const auto &[time, gain] : gains_) {
            missing -= gain;
            if (missing <= 0) {
                start = time;
                break;
            }
        }
    }
    return -1;
}

int64_t BookSearch::last_on_nodes(int32_t id, int64_t length, int64_t from, int64_t earliest) {
    const Request &request = state_.requests[id];
    std::vector<Placed> unused;
    int64_t start = from;
    while (start >= earliest) {
        const int64_t before = start;
        for (const Group &sought : request.sought) {
            if (start >= earliest) {
                start = last_of(sought, length, start, earliest);
            }
        }
        if (start == before) {
            if (request.sought.size() == 1 || map_groups(request, start, length, unused)) {
                return start;
            }
            start = change_before(request, start, length);
        }
    }
    return -1;
}

// The latest start before `time` at which the job's end coincides with a change.
int64_t BookSearch::change_before(const Request &request, int64_t time, int64_t length) const {
    const int64_t end = end_of(time, length);
    int64_t change = -1;
    for (const Group &sought : request.sought) {
        const Shape &shape = state_.requests.shape(sought.shape);
        for (const int32_t position : shape.positions()) {
            const auto p = static_cast<size_t>(position);
            change = std::max(change, state_.lines.change_before(p, end));
            for (const int32_t c : shape.classes) {
                change = std::max(change, state_.requests.cls(c).change_before(p, end));
            }
        }
    }
    return change < length ? -1 : std::min(time - 1, change - length);
}

int64_t BookSearch::latest_start(int32_t request, int64_t length, Terms terms, int64_t from,
                                 int64_t earliest) {
    earliest = std::max(earliest, state_.now);
    int64_t start = from;
    while (start >= earliest) {
        const int64_t before = start;
        for (const Term &term : terms) {
            if (term.mode != TermMode::COUNT && start >= earliest) {
                start = state_.constraints[static_cast<size_t>(term.constraint)].last_fit(
                    term.amount, start, length, earliest);
            }
        }
        if (start >= earliest) {
            start = last_on_nodes(request, length, start, earliest);
        }
        if (start == before) {
            return start;
        }
    }
    return -1;
}

int64_t BookSearch::room(const Group &sought, size_t position, int64_t start, int64_t length,
                         int64_t maximum) {
    const Shape &shape = state_.requests.shape(sought.shape);
    maximum = std::min(maximum, this->maximum(sought, position));
    if (maximum <= 0 || state_.requests.next_open(shape, position, start, length) != start) {
        return 0;
    }
    if (maximum == 1 || shape.exclusive) {
        const bool fits =
            state_.lines.next_fit(position, shape.line_need(), start, length, start) == start;
        return fits ? maximum : 0;
    }
    return state_.lines.room(position, shape.line_need(), start, length, maximum).times;
}

// The first nodes in order that hold a chunk each.
bool BookSearch::seat_first(const Group &sought, int64_t start, int64_t length) {
    seats_.clear();
    const auto full = [&](int32_t position, int64_t fits) {
        if (fits > 0) {
            seats_.push_back({position, 1});
        }
        return static_cast<int64_t>(seats_.size()) == sought.count;
    };
    if (found_.start == start && found_.length == length && found_.sought == sought) {
        return sought.count == 1 ? full(found_.position, 1)
                                 : std::any_of(parts_.begin(), parts_.end(), [&](const Part &part) {
                                       return full(part.position, part.room);
                                   });
    }
    const std::vector<int32_t> &positions = state_.requests.shape(sought.shape).positions();
    return std::any_of(positions.begin(), positions.end(), [&](int32_t p) {
        return full(p, room(sought, static_cast<size_t>(p), start, length, 1));
    });
}

// The fewest nodes that hold all chunks, as NodeChoice of the single pass takes them.
bool BookSearch::seat_fewest(const Group &sought, int64_t start, int64_t length) {
    const Shape &shape = state_.requests.shape(sought.shape);
    const BookNodes &nodes = state_.nodes;
    seats_.clear();
    int64_t held = 0;
    for (const int32_t position : shape.positions()) {
        const auto p = static_cast<size_t>(position);
        const int64_t fits = room(sought, p, start, length, sought.count);
        if (fits == 0) {
            continue;
        }
        seats_.push_back({position, fits});
        held += fits;
        const auto lowest = static_cast<size_t>(seats_.front().position);
        if (!nodes.best_fit() && fits == sought.count && nodes.rank(p) == nodes.rank(lowest)) {
            seats_ = {seats_.back()}; // nothing precedes the first node that holds all
            return true;
        }
    }
    if (held < sought.count) {
        return false;
    }
    if (nodes.best_fit()) {
        sort_by_fit(state_, shape, start, length, seats_);
    }
    seats_ = fewest_seats(state_, seats_, sought.count);
    return true;
}

bool BookSearch::map_one(const Request &request, int64_t start, int64_t length,
                         std::vector<Placed> &placed) {
    const Group &sought = request.sought.front();
    const bool in_order =
        !state_.nodes.best_fit() && std::min(sought.count, sought.max_per_node) == 1;
    if (!(in_order ? seat_first(sought, start, length) : seat_fewest(sought, start, length))) {
        return false;
    }
    int64_t left = sought.count - static_cast<int64_t>(seats_.size()); // beyond one on each
    for (const Seat &seat : seats_) {
        const int64_t more = std::min(left, seat.room - 1);
        left -= more;
        if (request.arrangement != Arrangement::PACK) {
            placed.push_back({seat.position, 0, static_cast<int32_t>(1 + more)});
            continue;
        }
        for (size_t g = 0; g < request.groups.size(); ++g) {
            placed.push_back({seat.position, static_cast<int32_t>(g),
                              static_cast<int32_t>(request.groups[g].count)});
        }
    }
    return true;
}

bool BookSearch::map(int32_t id, int64_t start, int64_t length, std::vector<Placed> &placed) {
    const Request &request = state_.requests[id];
    placed.clear();
    return request.sought.size() == 1 ? map_one(request, start, length, placed)
                                      : map_groups(request, start, length, placed);
}

} // namespace bridge
