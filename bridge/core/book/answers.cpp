// SPDX-License-Identifier: Apache-2.0
// What a book reports about its bookings: in order, and which block a request.
#include "book/book.hpp"

#include <algorithm>

namespace bridge {

std::vector<const Booking *> Book::in_order() const {
    std::vector<const Booking *> all;
    all.reserve(slots_.size());
    slots_.each([&](uint32_t slot) { all.push_back(&bookings_[slot]); });
    std::sort(all.begin(), all.end(), [](const Booking *a, const Booking *b) {
        return a->start != b->start ? a->start < b->start : a->order < b->order;
    });
    return all;
}

// Blocking on a node: jobs that use, while the request would run, a resource of which too little is
// left for one more chunk. Blocking under a constraint: jobs that count on it, if it cannot hold
// the amount.
Book::Holders Book::holders(int32_t id, Terms terms, int64_t start, int64_t length) {
    Holders found;
    const int64_t end = end_of(start, length);
    const size_t columns = state_.nodes.columns();
    const Request &request = state_.requests[id];
    std::vector<bool> lacks(state_.nodes.size() * columns, false);
    std::vector<int64_t> free(columns);
    for (const Group &sought : request.sought) {
        const Shape &shape = state_.requests.shape(sought.shape);
        for (const int32_t position : shape.positions()) {
            const auto p = static_cast<size_t>(position);
            if (search_.maximum(sought, p) == 0) {
                continue;
            }
            state_.lines.minimum(p, start, end, free.data());
            const LineNeed need = shape.line_need();
            for (size_t i = 0; i < need.n; ++i) {
                if (free[need.columns[i]] < need.amounts[i]) {
                    lacks[p * columns + need.columns[i]] = true;
                }
            }
        }
    }
    for (const Term &term : terms) {
        if (term.mode != TermMode::COUNT &&
            state_.constraints[static_cast<size_t>(term.constraint)].next_fit(
                term.amount, start, length, start) != start) {
            found.constraints.push_back(term.constraint);
        }
    }
    for (const Booking *booking : in_order()) {
        if (booking->start >= end || booking->end <= start) {
            continue;
        }
        bool stands = false;
        for (size_t i = 0; i < booking->placed.size() && !stands; ++i) {
            const auto p = static_cast<size_t>(booking->placed[i].position);
            const int64_t *takes = taken(*booking, i);
            for (size_t c = 0; c < columns && !stands; ++c) {
                stands = lacks[p * columns + c] && takes[c] > 0;
            }
        }
        for (const Term &term : booking->terms) {
            stands = stands || (term.mode != TermMode::CHECK &&
                                std::find(found.constraints.begin(), found.constraints.end(),
                                          term.constraint) != found.constraints.end());
        }
        if (stands) {
            found.jobs.push_back(booking->job);
        }
    }
    return found;
}

} // namespace bridge
