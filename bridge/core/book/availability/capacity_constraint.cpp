// SPDX-License-Identifier: Apache-2.0
#include "book/availability/capacity_constraint.hpp"

#include <algorithm>

namespace bridge {

CapacityConstraint::CapacityConstraint(int64_t now, const std::vector<int64_t> &starts,
                                       const std::vector<int64_t> &amounts) {
    slots_.push_back({now, UNBOUNDED, 0});
    set(starts, amounts);
}

void CapacityConstraint::set(const std::vector<int64_t> &starts,
                             const std::vector<int64_t> &amounts) {
    const int64_t now = slots_.front().begin;
    for (const int64_t start : starts) {
        if (start > now && start != NEVER) {
            cut(start);
        }
    }
    size_t step = 0;
    for (Slot &slot : slots_) {
        while (step + 1 < starts.size() && starts[step + 1] <= slot.begin) {
            ++step;
        }
        slot.amount = amounts[step];
    }
    const auto same = [](const Slot &a, const Slot &b) { return a.same(b); };
    slots_.erase(std::unique(slots_.begin(), slots_.end(), same), slots_.end());
}

size_t CapacityConstraint::slot_at(int64_t time) const {
    size_t base = 0;
    for (size_t n = slots_.size(); n > 1;) {
        const size_t half = n / 2;
        base += slots_[base + half].begin <= time ? half : 0;
        n -= half;
    }
    return base;
}

size_t CapacityConstraint::cut(int64_t time) {
    const size_t i = slot_at(time);
    if (slots_[i].begin == time) {
        return i;
    }
    Slot slot = slots_[i];
    slot.begin = time;
    slots_.insert(slots_.begin() + static_cast<std::ptrdiff_t>(i) + 1, slot);
    return i + 1;
}

void CapacityConstraint::merge(size_t slot) {
    if (slot > 0 && slot < slots_.size() && slots_[slot].same(slots_[slot - 1])) {
        slots_.erase(slots_.begin() + static_cast<std::ptrdiff_t>(slot));
    }
}

void CapacityConstraint::add(int64_t start, int64_t end, int64_t amount) {
    start = std::max(start, slots_.front().begin);
    if (end <= start) {
        return;
    }
    const size_t first = cut(start);
    const size_t last = end == NEVER ? slots_.size() : cut(end);
    for (size_t i = first; i < last; ++i) {
        slots_[i].used += amount;
    }
    merge(last);
    merge(first);
}

int64_t CapacityConstraint::next_fit(int64_t amount, int64_t from, int64_t length,
                                     int64_t latest) const {
    if (from > latest) {
        return NEVER;
    }
    const size_t n = slots_.size();
    int64_t start = from;
    for (size_t i = slot_at(from);;) {
        while (!slots_[i].holds(amount)) {
            if (++i == n || slots_[i].begin > latest) {
                return NEVER;
            }
            start = slots_[i].begin;
        }
        const int64_t end = end_of(start, length);
        do {
            if (++i == n || slots_[i].begin >= end) {
                return start;
            }
        } while (slots_[i].holds(amount));
    }
}

int64_t CapacityConstraint::last_fit(int64_t amount, int64_t from, int64_t length,
                                     int64_t earliest) const {
    if (from < earliest) {
        return -1;
    }
    const int64_t end = end_of(from, length);
    int64_t start = from;
    for (size_t i = slot_at(end == NEVER ? NEVER : end - 1);; --i) {
        if (!slots_[i].holds(amount)) {
            start = std::min(start, slots_[i].begin - length);
            if (start < earliest) {
                return -1;
            }
        } else if (slots_[i].begin <= start) {
            return start;
        }
        if (i == 0) {
            return -1;
        }
    }
}

bool CapacityConstraint::ever_holds(int64_t amount) const {
    return std::any_of(slots_.begin(), slots_.end(),
                       [&](const Slot &slot) { return slot.amount >= amount; });
}

bool CapacityConstraint::exceeded(int64_t start, int64_t end) const {
    for (size_t i = slot_at(std::max(start, slots_.front().begin));
         i < slots_.size() && slots_[i].begin < end; ++i) {
        if (!slots_[i].holds(0)) {
            return true;
        }
    }
    return false;
}

void CapacityConstraint::trim(int64_t now) {
    slots_.erase(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(slot_at(now)));
    slots_.front().begin = now;
}

} // namespace bridge
