// SPDX-License-Identifier: Apache-2.0
#include "usage/usage_vector.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace bridge {
namespace {

bool lasts(int64_t start, int64_t end, int64_t length) {
    return end == NEVER || end - start >= length;
}

int64_t floor_divide(int64_t value, int64_t by) {
    return value >= 0 ? value / by : -((-value + by - 1) / by);
}

} // namespace

UsageVector::UsageVector(int64_t maximum, Stores stores, int64_t min_distance_s)
    : maximum_(maximum), min_distance_s_(min_distance_s), stores_(stores) {}

bool UsageVector::operator==(const UsageVector &other) const {
    return maximum_ == other.maximum_ && defect_ == other.defect_ && stores_ == other.stores_ &&
           min_distance_s_ == other.min_distance_s_ && slots_ == other.slots_;
}

UsageVector UsageVector::like(int64_t maximum, int64_t defect, Stores stores) const {
    UsageVector made(maximum, stores, min_distance_s_);
    made.defect_ = defect;
    return made;
}

std::vector<UsageVector::Slot>::const_iterator UsageVector::first_ending_after(int64_t time) const {
    return std::upper_bound(slots_.begin(), slots_.end(), time,
                            [](int64_t t, const Slot &slot) { return t < slot.end; });
}

// Appends a slot unless it is completely free; merges it with the one before if they are equal and
// close. Half-open slots that touch are 0 s apart, the paper's closed ones 1 s.
void UsageVector::emit(std::vector<Slot> &out, Slot slot) const {
    if (slot.start >= slot.end || completely_free(slot.items)) {
        return;
    }
    if (!out.empty() && out.back().items == slot.items &&
        slot.start - out.back().end < min_distance_s_) {
        out.back().end = slot.end;
    } else {
        out.push_back(slot);
    }
}

// Throws before anything is changed if something could overflow.
void UsageVector::make_room(int64_t items) {
    if (bound_ + items > MOST_ITEMS) {
        bound_ = std::llabs(outside());
        for (const Slot &slot : slots_) {
            bound_ = std::max<int64_t>(bound_, std::llabs(slot.items));
        }
        if (bound_ + items > MOST_ITEMS) {
            throw std::invalid_argument("items: more than 2**60 at one second");
        }
    }
    bound_ += items;
}

void UsageVector::change(int64_t start, int64_t end, int64_t items) {
    make_room(std::llabs(items));
    const auto first = static_cast<size_t>(first_ending_after(start) - slots_.begin());
    size_t last = first; // behind the last slot that overlaps
    std::vector<Slot> &fresh = fresh_;
    fresh.clear();
    // The neighbours may be merged, so they are written again.
    const size_t from = first > 0 ? first - 1 : first;
    if (from < first) {
        fresh.push_back(slots_[from]);
    }
    int64_t at = start;
    for (; last < slots_.size() && slots_[last].start < end; ++last) {
        const Slot &old = slots_[last];
        if (old.start < start) {
            emit(fresh, {old.start, start, old.items});
        } else {
            emit(fresh, {at, old.start, outside() + items});
        }
        at = std::min(old.end, end);
        emit(fresh, {std::max(old.start, start), at, old.items + items});
        if (old.end > end) {
            emit(fresh, {end, old.end, old.items});
        }
    }
    emit(fresh, {at, end, outside() + items});
    if (last < slots_.size()) {
        emit(fresh, slots_[last++]);
    }
    const size_t replaced = last - from;
    const size_t kept = std::min(replaced, fresh.size());
    const auto place = slots_.begin() + static_cast<std::ptrdiff_t>(from);
    std::copy_n(fresh.begin(), kept, place);
    const auto behind = place + static_cast<std::ptrdiff_t>(kept);
    if (fresh.size() > replaced) {
        slots_.insert(behind, fresh.begin() + static_cast<std::ptrdiff_t>(kept), fresh.end());
    } else {
        slots_.erase(behind, slots_.begin() + static_cast<std::ptrdiff_t>(last));
    }
}

void UsageVector::set_defect(int64_t defect) {
    const int64_t fewer = stores_ == Stores::FREE ? defect - defect_ : 0;
    make_room(std::llabs(fewer));
    defect_ = defect;
    fresh_.clear();
    for (const Slot &slot : slots_) {
        emit(fresh_, {slot.start, slot.end, slot.items - fewer});
    }
    slots_.swap(fresh_);
}

int64_t UsageVector::used_at(int64_t time) const {
    const auto slot = first_ending_after(time);
    const bool inside = slot != slots_.end() && slot->start <= time;
    return available() - to_free(inside ? slot->items : outside());
}

int64_t UsageVector::least_free(int64_t start, int64_t end) const {
    int64_t least = MOST_ITEMS;
    walk(start, end, [&](int64_t, int64_t, int64_t items) {
        least = std::min(least, to_free(items));
        return true;
    });
    return least;
}

template <typename Visit> void UsageVector::walk(int64_t from, int64_t until, Visit visit) const {
    int64_t at = from;
    for (auto slot = first_ending_after(from); slot != slots_.end() && slot->start < until;
         ++slot) {
        if (at < slot->start && !visit(at, slot->start, outside())) {
            return;
        }
        const int64_t begin = std::max(slot->start, from);
        at = std::min(slot->end, until);
        if (!visit(begin, at, slot->items)) {
            return;
        }
    }
    if (at < until) {
        visit(at, until, outside());
    }
}

template <typename Combine>
void UsageVector::merge(const UsageVector &a, const UsageVector &b, UsageVector &out,
                        Combine combine) {
    const std::vector<Slot> &left = a.slots_, &right = b.slots_;
    out.slots_.reserve(left.size() + right.size() + 1);
    size_t i = 0, j = 0;
    for (int64_t at = 0; at < NEVER;) {
        const bool in_left = i < left.size() && left[i].start <= at;
        const bool in_right = j < right.size() && right[j].start <= at;
        const int64_t left_end = i == left.size() ? NEVER : (in_left ? left[i].end : left[i].start);
        const int64_t right_end =
            j == right.size() ? NEVER : (in_right ? right[j].end : right[j].start);
        const int64_t end = std::min(left_end, right_end);
        out.emit(out.slots_, {at, end,
                              combine(in_left ? left[i].items : a.outside(),
                                      in_right ? right[j].items : b.outside())});
        i += in_left && left_end == end;
        j += in_right && right_end == end;
        at = end;
    }
    out.bound_ = MOST_ITEMS; // computed when it matters
}

UsageVector UsageVector::plus(const UsageVector &other) const {
    const bool systems = other.stores_ == Stores::FREE;
    if (systems && stores_ == Stores::USED) {
        throw std::invalid_argument("other: free items cannot be added to used ones");
    }
    UsageVector sum = systems ? like(maximum_ + other.maximum_, defect_ + other.defect_, stores_)
                              : like(maximum_, defect_, stores_);
    merge(*this, other, sum, [](int64_t a, int64_t b) { return a + b; });
    return sum;
}

UsageVector UsageVector::minus(const UsageVector &other) const {
    const bool systems = other.stores_ == Stores::FREE;
    if (systems && stores_ == Stores::USED) {
        throw std::invalid_argument("other: free items cannot be taken from used ones");
    }
    if (systems &&
        (other.maximum_ > maximum_ || other.defect_ > defect_ || other.available() > available())) {
        throw std::invalid_argument("other: is not a part of this vector's system");
    }
    UsageVector rest = systems ? like(maximum_ - other.maximum_, defect_ - other.defect_, stores_)
                               : like(maximum_, defect_, stores_);
    merge(*this, other, rest, [](int64_t a, int64_t b) { return a - b; });
    return rest;
}

UsageVector UsageVector::min_free(const UsageVector &limit) const {
    UsageVector view = like(maximum_, defect_, stores_);
    merge(*this, limit, view, [&](int64_t own, int64_t left) {
        const int64_t free = std::min(to_free(own), limit.to_free(left));
        return stores_ == Stores::USED ? available() - free : free;
    });
    return view;
}

UsageVector UsageVector::intersect(const UsageVector &other) const {
    if (stores_ != Stores::FREE || other.stores_ != Stores::FREE) {
        throw std::invalid_argument("other: both vectors of an intersection store free items");
    }
    const UsageVector &smaller = available() <= other.available() ? *this : other;
    UsageVector both = like(smaller.maximum_, smaller.defect_, stores_);
    merge(*this, other, both, [](int64_t a, int64_t b) { return std::min(a, b); });
    return both;
}

UsageVector UsageVector::free_slots(int64_t items, int64_t length, int64_t from,
                                    int64_t until) const {
    UsageVector found = like(maximum_, defect_, Stores::FREE);
    std::vector<Slot> run; // adjacent pieces with enough free items so far
    int64_t closed = 0;    // nothing is found from here to the begin of the run
    int64_t begin = from;
    const auto finish = [&](int64_t end) {
        if (begin < end && lasts(begin, end, length)) {
            found.emit(found.slots_, {closed, begin, 0});
            for (const Slot &piece : run) {
                found.emit(found.slots_, piece);
            }
            closed = end;
        }
        run.clear();
    };
    walk(from, until, [&](int64_t start, int64_t end, int64_t stored) {
        const int64_t free = to_free(stored);
        if (free >= items) {
            run.push_back({start, end, free});
        } else {
            finish(start);
            begin = end;
        }
        return true;
    });
    finish(until);
    found.emit(found.slots_, {closed, NEVER, 0});
    found.bound_ = MOST_ITEMS;
    return found;
}

int64_t UsageVector::earliest(int64_t items, int64_t length, int64_t from, int64_t until) const {
    int64_t begin = from;
    bool open = from < until;
    walk(from, until, [&](int64_t, int64_t end, int64_t stored) {
        if (to_free(stored) >= items) {
            return !lasts(begin, end, length);
        }
        begin = end;
        open = end < until;
        return true;
    });
    return open && lasts(begin, until, length) ? begin : NEVER;
}

UsageVector UsageVector::in_units_of(int64_t items) const {
    const int64_t units = floor_divide(available(), items);
    const int64_t most = floor_divide(maximum_, items);
    UsageVector counted = like(most, most - units, Stores::FREE);
    for (const Slot &slot : slots_) {
        counted.emit(counted.slots_,
                     {slot.start, slot.end, floor_divide(to_free(slot.items), items)});
    }
    counted.bound_ = MOST_ITEMS;
    return counted;
}

UsageVector UsageVector::as(Stores stores) const {
    UsageVector made = like(maximum_, defect_, stores);
    for (const Slot &slot : slots_) {
        const int64_t free = to_free(slot.items);
        made.emit(made.slots_,
                  {slot.start, slot.end, stores == Stores::FREE ? free : available() - free});
    }
    made.bound_ = MOST_ITEMS;
    return made;
}

UsageVector UsageVector::repeat(int64_t items, int64_t from, int64_t until, int64_t period) const {
    if (!slots_.empty() && slots_.back().end > period) {
        throw std::invalid_argument("period: the template's slots do not lie in [0, period)");
    }
    const int64_t periods = (until - from) / period + 2;
    if (periods > MOST_REPEATED / static_cast<int64_t>(slots_.size() + 1)) {
        throw std::invalid_argument("period: more than 2**24 slots in [start, end)");
    }
    UsageVector made = like(maximum_, defect_, stores_);
    for (int64_t offset = from - from % period; offset < until && !slots_.empty();) {
        for (const Slot &slot : slots_) {
            made.emit(made.slots_, {std::max(end_of(offset, slot.start), from),
                                    std::min(end_of(offset, slot.end), until), items});
        }
        offset = end_of(offset, period);
    }
    made.bound_ = std::llabs(items);
    return made;
}

void UsageVector::free_steps(int64_t from, int64_t until, std::vector<int64_t> &starts,
                             std::vector<int64_t> &free) const {
    walk(from, until, [&](int64_t start, int64_t, int64_t items) {
        const int64_t now_free = to_free(items);
        if (free.empty() || free.back() != now_free) {
            starts.push_back(start);
            free.push_back(now_free);
        }
        return true;
    });
}

} // namespace bridge
