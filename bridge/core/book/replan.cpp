// SPDX-License-Identifier: Apache-2.0
// Moves bookings to earlier starts, and detects without a search that one cannot move.
//
// Free amounts fall while jobs are booked. If a booking could not start earlier at its last search,
// it can now only if a node with a rise since then (something was given back) holds one of its
// chunks at the new start. There are two cases. The node holds the chunk for the whole length
// beside all bookings; jobs with equal chunks share these results (Shadow). Or it is one of the
// booking's own nodes and holds the chunk up to the present start; from then on the booking's own
// amounts are free.
#include "book/book.hpp"

#include <algorithm>

namespace bridge {
namespace {

int64_t length_of(const Booking &booking) {
    return booking.end == NEVER ? NEVER : booking.end - booking.start;
}

// Sorts spans, and makes one of those that overlap: the nodes of a job rise at the same time.
void unite_overlapping(Spans &spans) {
    std::sort(spans.begin(), spans.end());
    size_t last = 0;
    for (size_t i = 1; i < spans.size(); ++i) {
        if (spans[i].first <= spans[last].second) {
            spans[last].second = std::max(spans[last].second, spans[i].second);
        } else {
            spans[++last] = spans[i];
        }
    }
    spans.resize(std::min(spans.size(), last + 1));
}

// Checking one rise takes as long as searching this many nodes.
constexpr size_t NODES_PER_RISE = 4;
constexpr size_t FEW_RISES = 16;
constexpr size_t MAX_SHADOWS = size_t{1} << 16;
constexpr size_t MAX_BEHIND = 16; // as a multiple of a few rises
constexpr size_t MAX_STARTS = 1024;

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

bool Book::still_searched(const Booking &booking, int64_t from) const {
    const Searched &known = booking.searched;
    return from >= known.from && known.epoch == state_.rises.epoch() &&
           known.constraint_rises == constraint_rises(booking.terms);
}

int64_t Book::first_chance(const Booking &booking, int64_t from) {
    const Searched &known = booking.searched;
    if (shadows_.size() > MAX_SHADOWS) {
        shadows_.clear();
    }
    const std::vector<Group> &sought = state_.requests[booking.request].sought;
    const int32_t alike = sought.size() == 1 ? sought.front().shape : -1 - booking.request;
    const int64_t length = length_of(booking);
    Shadow &shadow = shadows_[{alike, length}];
    if (!take_in(shadow, booking.request, length, known.rises)) {
        return from;
    }
    const int64_t beside = first_beside_itself(booking);
    const int64_t start = std::max(from, std::min(first_after_rises(shadow, booking), beside));
    if (start >= booking.start) {
        ++shadow.spared;
    } else if (known.from <= state_.now) {
        chances_.clear();
        for (auto at = shadow.starts.rbegin();
             at != shadow.starts.rend() && at->rise >= known.rises; ++at) {
            if (at->start < booking.start) {
                chances_.emplace_back(at->start, std::min(at->until, booking.start));
            }
        }
        if (beside < booking.start) {
            chances_.emplace_back(beside, booking.start);
        }
        unite_overlapping(chances_);
    }
    return start;
}

int64_t Book::first_beside_itself(const Booking &booking) const {
    const int64_t length = length_of(booking);
    int64_t first = NEVER;
    int32_t before = -1;
    for (const Placed &placed : booking.placed) {
        if (placed.position == before ||
            state_.rises.since(placed.position) <= booking.searched.rises) {
            continue;
        }
        before = placed.position;
        for (const Group &sought : state_.requests[booking.request].sought) {
            const int64_t held =
                std::max(state_.lines.held_since(static_cast<size_t>(placed.position),
                                                 state_.requests.shape(sought.shape).line_need(),
                                                 booking.start),
                         first_reaching(booking.start, length));
            if (held < std::min(first, booking.start) &&
                state_.rises.any(placed.position, booking.searched.rises, held, booking.start)) {
                first = held;
            }
        }
    }
    return first;
}

int64_t Book::first_after_rises(Shadow &shadow, const Booking &booking) {
    const int64_t length = length_of(booking);
    for (;;) {
        Shadow::Start *first = nullptr;
        for (auto at = shadow.starts.rbegin();
             at != shadow.starts.rend() && at->rise >= booking.searched.rises; ++at) {
            if (first == nullptr || at->start < first->start) {
                first = &*at;
            }
        }
        if (first == nullptr || first->start >= booking.start) {
            return NEVER;
        }
        // Its node may have been booked again.
        const Rises::Rise &rise = state_.rises[first->rise];
        const int64_t from = std::max(first->start, state_.now);
        const int64_t start =
            from < first->until
                ? search_.start_on(booking.request, static_cast<size_t>(rise.position), length,
                                   from, first->until - 1)
                : NEVER;
        if (start == from) {
            return start;
        }
        first->start = start;
        if (start == NEVER) {
            shadow.starts.erase(shadow.starts.begin() + (first - shadow.starts.data()));
        }
    }
}

bool Book::take_in(Shadow &shadow, int32_t request, int64_t length, size_t since) {
    const size_t count = state_.rises.count();
    const size_t few = std::max(FEW_RISES, state_.nodes.size() / NODES_PER_RISE);
    const auto begin = [&](size_t rises) {
        shadow.epoch = state_.rises.epoch();
        shadow.begin = shadow.taken = rises;
        shadow.starts.clear();
    };
    if (shadow.epoch != state_.rises.epoch() || since < shadow.begin) {
        begin(since);
    }
    size_t until = count;
    if (count - shadow.taken > few * MAX_BEHIND) {
        begin(count);
        return false;
    }
    if (count - shadow.taken > few * (1 + shadow.spared)) { // more than the searches would cost
        shadow.spared /= 2;
        until = shadow.taken + few;
    }
    for (; shadow.taken < until; ++shadow.taken) {
        const Rises::Rise &rise = state_.rises[shadow.taken];
        const int64_t first = std::max(state_.now, first_reaching(rise.from, length));
        if (first < rise.until) {
            take_in_one(shadow, request, length, first);
        }
    }
    if (shadow.starts.size() > MAX_STARTS) {
        const auto half = shadow.starts.begin() + MAX_STARTS / 2;
        shadow.begin = half->rise + 1;
        shadow.starts.erase(shadow.starts.begin(), half + 1);
    }
    return until == count && since >= shadow.begin;
}

void Book::take_in_one(Shadow &shadow, int32_t request, int64_t length, int64_t first) {
    const Rises::Rise &rise = state_.rises[shadow.taken];
    const auto p = static_cast<size_t>(rise.position);
    const std::vector<Group> &sought = state_.requests[request].sought;
    while (first < rise.until) {
        const int64_t start = search_.start_on(request, p, length, first, rise.until - 1);
        if (start == NEVER) {
            return;
        }
        first = rise.until;
        if (sought.size() == 1) {
            const LineNeed need = state_.requests.shape(sought.front().shape).line_need();
            const int64_t end = state_.lines.held_until(p, need, start);
            first = end == NEVER ? first : std::min(first, first_reaching(end, length));
        }
        shadow.starts.push_back({shadow.taken, start, first});
    }
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

bool Book::too_few_free(const Booking &booking, int64_t from, int64_t until) {
    const std::vector<Group> &sought = state_.requests[booking.request].sought;
    const WholeNodes whole =
        sought.size() == 1 ? search_.whole_nodes(sought.front()) : WholeNodes{nullptr, 0};
    if (whole.free == nullptr) {
        return false;
    }
    const int64_t length = length_of(booking);
    // Its own nodes are free from its start to its end, and the moved job would end earlier.
    const auto any = [&](int64_t since, int64_t till) {
        return since < till && whole.any(since, length, till, booking.start);
    };
    return chances_.empty()
               ? !any(from, until)
               : std::none_of(chances_.begin(), chances_.end(), [&](const auto &chance) {
                     return any(std::max(from, chance.first), std::min(until, chance.second));
                 });
}

bool Book::replan(Booking &booking, int64_t earliest) {
    int64_t from = std::max(earliest, state_.now);
    int64_t until = booking.start;
    if (booking.request < 0 || until <= from) {
        return false;
    }
    chances_.clear();
    const int64_t length = length_of(booking);
    const Searched &known = booking.searched;
    const bool still = still_searched(booking, from);
    if (still) { // the moved job must overlap a rise since the last search
        if (known.rises == state_.rises.count()) {
            return false;
        }
        const auto [first, last] = state_.rises.reach(known.rises);
        from = std::max(from, first_reaching(first, length));
        until = std::min(until, last);
        if (from >= until) {
            booking.searched.rises = state_.rises.count();
            return false;
        }
        if (known.from <= state_.now) {
            chances_.emplace_back(from, until);
        }
    }
    if (too_few_free(booking, from, until)) {
        booking.searched = searched(earliest, booking.terms);
        return false;
    }
    if (still) {
        from = first_chance(booking, from);
        if (from >= until) {
            booking.searched.rises = state_.rises.count();
            return false;
        }
        if (too_few_free(booking, from, until)) {
            booking.searched = searched(earliest, booking.terms);
            return false;
        }
    }
    const Terms terms{booking.terms.data(), booking.terms.size()};
    write(booking, booking.start, booking.end, -1);
    const int64_t start = search_.earliest_start(booking.request, length, terms, from, until - 1,
                                                 {booking.start, booking.end, &booking.placed,
                                                  chances_.empty() ? nullptr : &chances_,
                                                  !chances_.empty() && !booking.terms.empty()});
    if (start == NEVER) {
        write(booking, booking.start, booking.end, 1);
        booking.searched = searched(earliest, booking.terms);
        return false;
    }
    std::vector<Placed> placed;
    search_.map(booking.request, start, length, placed);
    rises(booking, booking.start);
    journal({Did::REVOKE, booking.job, marks_.empty() ? Booking{} : booking, {}, {}});
    booking.start = start;
    booking.end = end_of(start, length);
    booking.placed = std::move(placed);
    booking.searched = searched(earliest, booking.terms); // the search could use its own place
    write(booking, booking.start, booking.end, 1);
    journal({Did::BOOK, booking.job, {}, {}, {}});
    return true;
}

} // namespace bridge
