// SPDX-License-Identifier: Apache-2.0
// What a book reports about its bookings: which are stranded, and which block a request.
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

// Bookings that no longer fit on their nodes: in order of start, then of booking, each one that
// does not fit beside those before it.
std::vector<int64_t> Book::stranded_on(const std::vector<int32_t> &positions) {
    const size_t columns = state_.nodes.columns();
    const auto short_of = [&](size_t p) {
        for (size_t s = 0; s < state_.lines.segments(p); ++s) {
            const int64_t *free = state_.lines.free(p, s);
            if (std::any_of(free, free + columns, [](int64_t amount) { return amount < 0; })) {
                return true;
            }
        }
        return false;
    };
    // An exclusive holder takes only occupancy: its line does not show that a node became smaller.
    std::vector<int64_t> jobs;
    NodeLines again(state_.nodes.size(), columns);
    std::vector<bool> looked(state_.nodes.size(), false);
    std::vector<int64_t> free(columns);
    for (const int32_t position : positions) {
        const auto p = static_cast<size_t>(position);
        looked[p] = true;
        again.open(p, state_.now, state_.nodes.capacity(p));
    }
    const bool none_short = std::none_of(positions.begin(), positions.end(), [&](int32_t p) {
        return short_of(static_cast<size_t>(p));
    });
    for (const Booking *booking : in_order()) {
        if (booking->end <= state_.now || (none_short && !booking->exclusive)) {
            continue;
        }
        bool fits = true;
        for (size_t i = 0; i < booking->placed.size() && fits; ++i) {
            const auto p = static_cast<size_t>(booking->placed[i].position);
            if (!looked[p]) {
                continue;
            }
            const int64_t *takes = taken(*booking, i);
            again.least(p, std::max(booking->start, state_.now), booking->end, free.data());
            for (size_t c = 0; c < columns; ++c) {
                fits = fits && (takes[c] == 0 || free[c] >= takes[c]);
            }
            if (booking->exclusive && booking->request >= 0) {
                const Request &request = state_.requests[booking->request];
                const bool pack = request.arrangement == Arrangement::PACK;
                const auto g = static_cast<size_t>(booking->placed[i].group);
                const Group &group = pack ? request.sought.front() : request.groups[g];
                fits = fits && search_.most(group, p) >= (pack ? 1 : booking->placed[i].chunks);
            }
        }
        if (!fits) {
            jobs.push_back(booking->job);
            continue;
        }
        for (size_t i = 0; i < booking->placed.size(); ++i) {
            const auto p = static_cast<size_t>(booking->placed[i].position);
            if (looked[p]) {
                again.add(p, booking->start, booking->end, taken(*booking, i), -1);
            }
        }
    }
    return jobs;
}

// Bookings that check a constraint and exceed it. Bookings that count without checking are always
// kept.
std::vector<int64_t> Book::stranded_under(int32_t id) {
    const CapacityConstraint &constraint = state_.constraints[static_cast<size_t>(id)];
    std::vector<int64_t> jobs;
    if (!constraint.exceeded(state_.now, NEVER)) {
        return jobs;
    }
    const Steps &steps = steps_[static_cast<size_t>(id)];
    CapacityConstraint again(state_.now, steps.starts, steps.amounts);
    const std::vector<const Booking *> all = in_order();
    const auto each = [&](auto visit) {
        for (const Booking *booking : all) {
            for (const Term &term : booking->terms) {
                if (term.constraint == id && booking->end > state_.now) {
                    visit(*booking, term);
                }
            }
        }
    };
    each([&](const Booking &booking, const Term &term) {
        if (term.mode == TermMode::COUNT) {
            again.add(booking.start, booking.end, term.amount);
        }
    });
    each([&](const Booking &booking, const Term &term) {
        if (term.mode == TermMode::COUNT) {
            return;
        }
        const int64_t start = std::max(booking.start, state_.now);
        const int64_t length = booking.end == NEVER ? NEVER : booking.end - start;
        if (again.next_fit(term.amount, start, length, start) != start) {
            jobs.push_back(booking.job);
        } else if (term.mode == TermMode::BOTH) {
            again.add(booking.start, booking.end, term.amount);
        }
    });
    return jobs;
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
            if (search_.most(sought, p) == 0) {
                continue;
            }
            state_.lines.least(p, start, end, free.data());
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
