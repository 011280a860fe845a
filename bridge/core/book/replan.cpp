// SPDX-License-Identifier: Apache-2.0
// Moves bookings to earlier starts, and tells without a search when one cannot move.
//
// Free amounts fall while jobs are booked. A booking that could not start earlier when it was
// searched can do so now only if some node on which something was given back since (a rise) holds a
// chunk of it at such a start; otherwise the start was possible before, too. Jobs with equal
// requests share what is known of rises (Shadow).
#include "book/book.hpp"

#include <algorithm>

namespace bridge {
namespace {

int64_t length_of(const Booking &booking) {
    return booking.end == NEVER ? NEVER : booking.end - booking.start;
}

// Checking one rise takes as long as searching this many nodes.
constexpr size_t NODES_PER_RISE = 4;
constexpr size_t FEW_RISES = 16;
constexpr size_t MOST_SHADOWS = size_t{1} << 16;

} // namespace

uint64_t Book::constraint_rises(const std::vector<Term> &terms) const {
    uint64_t sum = 0;
    for (const Term &term : terms) {
        if (term.mode != TermMode::COUNT) {
            sum += state_.constraint_rises[static_cast<size_t>(term.constraint)];
        }
    }
    return sum;
}

Searched Book::searched(int64_t earliest, const std::vector<Term> &terms) const {
    return {std::max(earliest, state_.now), state_.rises.count(), state_.rises.epoch(),
            constraint_rises(terms)};
}

bool Book::may_move(const Booking &booking, int64_t earliest) {
    const Searched &known = booking.searched;
    if (std::max(earliest, state_.now) < known.from || known.epoch != state_.rises.epoch() ||
        known.constraint_rises != constraint_rises(booking.terms)) {
        return true;
    }
    for (const Placed &placed : booking.placed) { // a booking does not block itself
        if (state_.rises.since(placed.position) > known.rises) {
            return true;
        }
    }
    if (shadows_.size() > MOST_SHADOWS) {
        shadows_.clear();
    }
    const int64_t length = length_of(booking);
    Shadow &shadow = shadows_[{booking.request, length}];
    const auto begin = [&](size_t since) {
        shadow.since = shadow.taken = since;
        shadow.epoch = known.epoch;
        shadow.earliest = NEVER;
    };
    if (shadow.epoch != known.epoch || shadow.since > known.rises) {
        begin(known.rises);
    }
    if (!take_in(shadow, booking.request, length)) {
        begin(state_.rises.count());
        return true;
    }
    if (shadow.earliest < booking.start && shadow.since < known.rises) {
        begin(known.rises); // without the rises before those that matter here
        if (!take_in(shadow, booking.request, length)) {
            begin(state_.rises.count());
            return true;
        }
    }
    const bool may = shadow.earliest < booking.start;
    shadow.spared += may ? 0 : 1;
    return may;
}

bool Book::take_in(Shadow &shadow, int32_t request, int64_t length) {
    const size_t few = std::max(FEW_RISES, state_.nodes.size() / NODES_PER_RISE);
    if (state_.rises.count() - shadow.taken > few * (1 + shadow.spared)) {
        shadow.spared /= 2;
        return false;
    }
    for (; shadow.taken < state_.rises.count(); ++shadow.taken) {
        const Rises::Rise &rise = state_.rises[shadow.taken];
        const int64_t first = std::max(state_.now, first_reaching(rise.from, length));
        const int64_t last = std::min(shadow.earliest, rise.until) - 1;
        if (first <= last) {
            const int64_t start =
                search_.start_on(request, static_cast<size_t>(rise.position), length, first, last);
            shadow.earliest = std::min(shadow.earliest, start);
        }
    }
    return true;
}

bool Book::overbooked() const {
    for (size_t p = 0; p < state_.nodes.size(); ++p) {
        const int64_t *free = state_.lines.free(p, 0);
        const size_t n = state_.lines.segments(p) * state_.nodes.columns();
        if (std::any_of(free, free + n, [](int64_t amount) { return amount < 0; })) {
            return true;
        }
    }
    return std::any_of(state_.constraints.begin(), state_.constraints.end(),
                       [&](const CapacityConstraint &constraint) {
                           return constraint.exceeded(state_.now, NEVER);
                       });
}

bool Book::replan(int64_t job, int64_t earliest) {
    const auto at = slots_.find(job);
    Booking &booking = bookings_[at->second];
    if (booking.request < 0 || booking.start <= std::max(earliest, state_.now)) {
        return false;
    }
    if (!may_move(booking, earliest)) {
        return false;
    }
    const int64_t length = length_of(booking);
    const Terms terms{booking.terms.data(), booking.terms.size()};
    write(booking, booking.start, booking.end, -1);
    const int64_t start = search_.next(booking.request, length, terms, earliest, booking.start - 1,
                                       {booking.start, booking.end, &booking.placed});
    if (start == NEVER) {
        write(booking, booking.start, booking.end, 1);
        booking.searched = searched(earliest, booking.terms);
        return false;
    }
    std::vector<Placed> placed;
    search_.map(booking.request, start, length, placed);
    rises(booking, booking.start);
    journal({Did::REVOKE, job, marks_.empty() ? Booking{} : booking, {}, {}});
    booking.start = start;
    booking.end = end_of(start, length);
    booking.placed = std::move(placed);
    booking.searched = searched(earliest, booking.terms); // its own place was open to it
    write(booking, booking.start, booking.end, 1);
    journal({Did::BOOK, job, {}, {}, {}});
    return true;
}

} // namespace bridge
