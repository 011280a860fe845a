// SPDX-License-Identifier: Apache-2.0
#include "book/book.hpp"

#include <algorithm>

namespace bridge {
namespace {

// Beyond this many rises, applying them to a known result one by one does not pay.
constexpr size_t MAX_RISES = size_t{1} << 18;

} // namespace

Book::Book(int64_t now, BookNodes nodes)
    : state_{now, std::move(nodes), {0, 0}, {}, {}, {}, {}, {}}, search_(state_),
      taken_(state_.nodes.columns()) {
    state_.lines = NodeLines(state_.nodes.size(), state_.nodes.columns());
    for (size_t p = 0; p < state_.nodes.size(); ++p) {
        state_.lines.open(p, now, state_.nodes.capacity(p));
    }
}

void Book::journal(Entry entry) {
    if (!marks_.empty() && !undoing_) {
        journal_.push_back(std::move(entry));
    }
}

int32_t Book::add_class(std::vector<int32_t> positions) {
    return state_.requests.add_class(std::move(positions), state_.nodes.size());
}

int32_t Book::add_constraint(const std::vector<int64_t> &starts,
                             const std::vector<int64_t> &amounts) {
    state_.constraints.emplace_back(state_.now, starts, amounts);
    state_.constraint_rises.push_back(0);
    steps_.push_back({starts, amounts});
    return static_cast<int32_t>(steps_.size()) - 1;
}

void Book::set_class(int32_t cls, std::vector<int32_t> positions) {
    std::vector<bool> before(state_.nodes.size(), false);
    for (const int32_t p : state_.requests.cls(cls).positions()) {
        before[static_cast<size_t>(p)] = true;
    }
    for (const int32_t p : positions) {
        if (!before[static_cast<size_t>(p)]) {
            state_.rises.push(p, state_.now, NEVER);
        }
    }
    state_.requests.set_class(cls, std::move(positions), state_.nodes.size());
    state_.free_nodes.drop(cls);
    search_.touch();
}

void Book::apply_closures(int32_t cls) {
    std::vector<std::pair<int32_t, Interval>> closed;
    for (const Closure &closure : closures_) {
        if (closure.cls == cls && closure.closed) {
            for (const int32_t p : closure.positions) {
                closed.push_back({p, {closure.start, closure.end}});
            }
        }
    }
    state_.requests.cls(cls).set_closed(closed);
    search_.touch();
}

int32_t Book::close(int32_t cls, int64_t start, int64_t end, std::vector<int32_t> positions) {
    const auto id = static_cast<int32_t>(closures_.size());
    closures_.push_back({cls, start, end, std::move(positions), true});
    apply_closures(cls);
    journal({Did::CLOSE, id, {}, {}, {}});
    return id;
}

void Book::reopen(int32_t id) {
    Closure &closure = closures_[static_cast<size_t>(id)];
    if (!closure.closed) {
        return;
    }
    closure.closed = false;
    apply_closures(closure.cls);
    for (const int32_t p : closure.positions) {
        state_.rises.push(p, closure.start, closure.end);
    }
    journal({Did::REOPEN, id, {}, {}, {}});
}

void Book::set_constraint(int32_t id, const std::vector<int64_t> &starts,
                          const std::vector<int64_t> &amounts) {
    Steps &steps = steps_[static_cast<size_t>(id)];
    journal({Did::CONSTRAINT, id, {}, std::move(steps.amounts), std::move(steps.starts)});
    steps = {starts, amounts};
    state_.constraints[static_cast<size_t>(id)].set(starts, amounts);
    ++state_.constraint_rises[static_cast<size_t>(id)];
}

void Book::advance(int64_t now) {
    state_.now = now;
    search_.touch();
    for (size_t p = 0; p < state_.nodes.size(); ++p) {
        state_.lines.trim(p, now);
    }
    state_.free_nodes.trim(now);
    for (CapacityConstraint &constraint : state_.constraints) {
        constraint.trim(now);
    }
}

// What a booking takes of the node of its i-th placement.
const int64_t *Book::taken(const Booking &booking, size_t i) {
    const size_t columns = state_.nodes.columns();
    if (booking.request < 0) {
        return booking.raw.data() + i * columns;
    }
    const Request &request = state_.requests[booking.request];
    const Placed &placed = booking.placed[i];
    if (booking.exclusive) { // the first group on a node takes it whole
        const bool first = i == 0 || booking.placed[i - 1].position != placed.position;
        std::fill(taken_.begin(), taken_.end(), 0);
        taken_.back() = first ? WHOLE : 0;
        return taken_.data();
    }
    const Group &group = request.groups[static_cast<size_t>(placed.group)];
    const std::vector<int64_t> &want = state_.requests.shape(group.shape).want;
    for (size_t c = 0; c < columns; ++c) {
        taken_[c] = placed.chunks * want[c];
    }
    return taken_.data();
}

void Book::write(const Booking &booking, int64_t start, int64_t end, int64_t sign) {
    for (size_t i = 0; i < booking.placed.size(); ++i) {
        const auto p = static_cast<size_t>(booking.placed[i].position);
        const int64_t *amounts = taken(booking, i);
        const bool whole = booking.exclusive && amounts[taken_.size() - 1] > 0;
        if (whole && sign > 0) {
            state_.free_nodes.change(p, start, end, sign, state_.lines, state_.requests);
        }
        state_.lines.add(p, start, end, amounts, -sign);
        if (whole && sign < 0) {
            state_.free_nodes.change(p, start, end, sign, state_.lines, state_.requests);
        }
    }
    state_.free_nodes.apply(start, end, sign);
    for (const Term &term : booking.terms) {
        if (term.mode != TermMode::CHECK) {
            state_.constraints[static_cast<size_t>(term.constraint)].add(start, end,
                                                                         sign * term.amount);
        }
    }
    search_.touch();
}

void Book::lift(const Booking &booking, int64_t sign) {
    for (size_t i = 0; i < booking.placed.size(); ++i) {
        state_.lines.add(static_cast<size_t>(booking.placed[i].position), booking.start,
                         booking.end, taken(booking, i), sign);
    }
}

void Book::rises(const Booking &booking, int64_t from) {
    if (state_.rises.count() > MAX_RISES) {
        state_.rises.clear();
        search_.forget();
    }
    for (const Placed &placed : booking.placed) {
        state_.rises.push(placed.position, std::max(from, state_.now), booking.end);
    }
    state_.free_nodes.rise(std::max(from, state_.now), booking.end);
    for (const Term &term : booking.terms) {
        ++state_.constraint_rises[static_cast<size_t>(term.constraint)];
    }
}

void Book::book(Booking booking) {
    if (!undoing_) {
        booking.order = next_order_++;
    }
    write(booking, booking.start, booking.end, 1);
    journal({Did::BOOK, booking.job, {}, {}, {}});
    uint32_t slot = 0;
    if (free_slots_.empty()) {
        slot = static_cast<uint32_t>(bookings_.size());
        bookings_.emplace_back();
    } else {
        slot = free_slots_.back();
        free_slots_.pop_back();
    }
    slots_.insert(booking.job, slot);
    bookings_[slot] = std::move(booking);
}

Booking Book::revoke(int64_t job) {
    const uint32_t slot = slots_.find(job);
    Booking booking = std::move(bookings_[slot]);
    free_slots_.push_back(slot);
    slots_.erase(job);
    write(booking, booking.start, booking.end, -1);
    if (booking.end > state_.now) {
        rises(booking, booking.start);
    }
    if (!marks_.empty() && !undoing_) {
        journal({Did::REVOKE, job, booking, {}, {}});
    }
    return booking;
}

const Booking *Book::booking(int64_t job) const {
    const uint32_t slot = slots_.find(job);
    return slot == NumberMap::NONE ? nullptr : &bookings_[slot];
}

Booking *Book::booking(int64_t job) {
    const uint32_t slot = slots_.find(job);
    return slot == NumberMap::NONE ? nullptr : &bookings_[slot];
}

BookFound Book::find(int32_t request, int64_t length, Terms terms, int64_t earliest, int64_t latest,
                     bool last) {
    BookFound found{NEVER, {}};
    if (last) {
        const int64_t start = search_.latest_start(request, length, terms, latest, earliest);
        found.start = start < 0 ? NEVER : start;
    } else {
        found.start = search_.earliest_start(request, length, terms, earliest, latest);
    }
    if (found.start != NEVER) {
        search_.map(request, found.start, length, found.placed);
    }
    return found;
}

bool Book::holds(int32_t id, int64_t start, int64_t length, Terms terms,
                 const std::vector<Placed> &placed) {
    for (const Term &term : terms) {
        if (term.mode != TermMode::COUNT &&
            state_.constraints[static_cast<size_t>(term.constraint)].next_fit(
                term.amount, start, length, start) != start) {
            return false;
        }
    }
    const Request &request = state_.requests[id];
    const size_t columns = state_.nodes.columns();
    std::vector<int64_t> missing;
    for (const Group &group : request.groups) {
        missing.push_back(group.count);
    }
    if (request.arrangement == Arrangement::PACK) {
        const bool one = std::all_of(placed.begin(), placed.end(), [&](const Placed &part) {
            missing[static_cast<size_t>(part.group)] -= part.chunks;
            return part.position == placed.front().position;
        });
        return one &&
               std::all_of(missing.begin(), missing.end(), [](int64_t m) { return m == 0; }) &&
               search_.room(request.sought.front(), static_cast<size_t>(placed.front().position),
                            start, length, 1) == 1;
    }
    std::vector<int64_t> free(columns);
    for (size_t i = 0; i < placed.size(); ++i) {
        const auto p = static_cast<size_t>(placed[i].position);
        const auto g = static_cast<size_t>(placed[i].group);
        const Group &group = request.groups[g];
        const bool first = i == 0 || placed[i - 1].position != placed[i].position;
        if (first) {
            state_.lines.minimum(p, start, end_of(start, length), free.data());
            if (request.exclusive && free[columns - 1] == WHOLE) {
                std::copy_n(state_.nodes.capacity(p), columns, free.data());
            } else if (request.exclusive) {
                return false;
            }
        }
        if (search_.room(group, p, start, length, placed[i].chunks) != placed[i].chunks ||
            (!first && request.arrangement == Arrangement::SCATTER) ||
            (request.arrangement == Arrangement::SCATTER && placed[i].chunks != 1)) {
            return false;
        }
        const std::vector<int64_t> &want = state_.requests.shape(group.shape).want;
        for (size_t c = 0; c < columns; ++c) {
            free[c] -= placed[i].chunks * want[c];
            if (want[c] > 0 && free[c] < 0) {
                return false;
            }
        }
        missing[g] -= placed[i].chunks;
    }
    return std::all_of(missing.begin(), missing.end(), [](int64_t m) { return m == 0; });
}

int64_t Book::mark() {
    marks_.push_back(journal_.size());
    return static_cast<int64_t>(marks_.size()) - 1;
}

void Book::keep(int64_t mark) {
    marks_.resize(static_cast<size_t>(mark));
    if (marks_.empty()) {
        journal_.clear();
    }
}

void Book::undo(int64_t mark) {
    const size_t from = marks_[static_cast<size_t>(mark)];
    undoing_ = true;
    while (journal_.size() > from) {
        Entry entry = std::move(journal_.back());
        journal_.pop_back();
        const auto id = static_cast<size_t>(entry.id);
        switch (entry.did) {
        case Did::BOOK:
            revoke(entry.id);
            break;
        case Did::REVOKE:
            book(std::move(entry.booking));
            break;
        case Did::CLOSE:
            reopen(static_cast<int32_t>(id));
            break;
        case Did::REOPEN:
            closures_[id].closed = true;
            apply_closures(closures_[id].cls);
            break;
        case Did::CONSTRAINT:
            steps_[id] = {std::move(entry.starts), std::move(entry.amounts)};
            state_.constraints[id].set(steps_[id].starts, steps_[id].amounts);
            ++state_.constraint_rises[id];
            break;
        }
    }
    undoing_ = false;
    keep(mark);
}

} // namespace bridge
