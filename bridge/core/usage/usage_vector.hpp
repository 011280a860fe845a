// SPDX-License-Identifier: Apache-2.0
// The used, or free, items of one resource over time: the RUSV of OpenCCS.
//
// A flat sequence of slots, sorted and disjoint. Seconds without a slot are completely free: no
// item is used, `available` items are free. A change visits the slots that it overlaps and moves
// those behind them in one memory move; a search is one pass. A plan of weeks has hundreds of
// slots, which fit in the L1 cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/times.hpp"

namespace bridge {

enum class Stores { USED = 0, FREE = 1 };

class UsageVector {
  public:
    struct Slot {
        int64_t start;
        int64_t end; // NEVER: without end
        int64_t items;
        bool operator==(const Slot &other) const {
            return start == other.start && end == other.end && items == other.items;
        }
    };

    // Items of one change, and of a whole vector at one second.
    static constexpr int64_t MOST_CHANGE = int64_t{1} << 48;
    static constexpr int64_t MOST_ITEMS = int64_t{1} << 60;

    // Slots of a repeated template.
    static constexpr int64_t MOST_REPEATED = int64_t{1} << 24;

    UsageVector(int64_t maximum, Stores stores, int64_t min_distance_s);

    int64_t maximum() const { return maximum_; }
    int64_t available() const { return maximum_ - defect_; }
    int64_t defect() const { return defect_; }
    int64_t min_distance_s() const { return min_distance_s_; }
    Stores stores() const { return stores_; }
    const std::vector<Slot> &slots() const { return slots_; }
    bool operator==(const UsageVector &other) const;

    // Items are lost or returned; the used ones stay used.
    void set_defect(int64_t defect);

    // Adds `items` (>= 0) over [start, end); the second function subtracts them.
    void increment(int64_t start, int64_t end, int64_t items) { change(start, end, items); }
    void decrement(int64_t start, int64_t end, int64_t items) { change(start, end, -items); }

    // The same, whichever way items are stored.
    void book(int64_t start, int64_t end, int64_t items) { change(start, end, sign() * items); }
    void revoke(int64_t start, int64_t end, int64_t items) { change(start, end, -sign() * items); }

    int64_t used_at(int64_t time) const;
    int64_t least_free(int64_t start, int64_t end) const;

    // The earliest start in [from, until) of a run of `length` seconds, all before `until`, with
    // `items` free; NEVER if there is none.
    int64_t earliest(int64_t items, int64_t length, int64_t from, int64_t until) const;

    UsageVector plus(const UsageVector &other) const;
    UsageVector minus(const UsageVector &other) const;
    UsageVector min_free(const UsageVector &limit) const;
    UsageVector intersect(const UsageVector &other) const;
    UsageVector free_slots(int64_t items, int64_t length, int64_t from, int64_t until) const;
    UsageVector in_units_of(int64_t items) const;
    UsageVector as(Stores stores) const;
    // This vector as the template of one period: its slots lie in [0, period).
    UsageVector repeat(int64_t items, int64_t from, int64_t until, int64_t period) const;

    // The changes of the free items in [from, until): (instant, free from there on), the first at
    // `from`.
    void free_steps(int64_t from, int64_t until, std::vector<int64_t> &starts,
                    std::vector<int64_t> &free) const;

  private:
    int64_t maximum_;
    int64_t defect_ = 0;
    int64_t min_distance_s_;
    Stores stores_;
    int64_t bound_ = 0; // no slot holds more than this, or less than its negative
    std::vector<Slot> slots_;
    std::vector<Slot> fresh_; // kept between changes to reuse its memory

    int64_t sign() const { return stores_ == Stores::USED ? 1 : -1; }
    int64_t outside() const { return stores_ == Stores::USED ? 0 : available(); }
    bool completely_free(int64_t items) const {
        return stores_ == Stores::USED ? items <= 0 : items >= available();
    }
    int64_t to_free(int64_t items) const {
        return stores_ == Stores::USED ? available() - items : items;
    }
    void change(int64_t start, int64_t end, int64_t items);
    void emit(std::vector<Slot> &out, Slot slot) const;
    void make_room(int64_t items);
    std::vector<Slot>::const_iterator first_ending_after(int64_t time) const;
    UsageVector like(int64_t maximum, int64_t defect, Stores stores) const;

    // Calls visit(start, end, items) for each piece of [from, until), seconds outside slots too.
    template <typename Visit> void walk(int64_t from, int64_t until, Visit visit) const;
    // Fills `out` second by second with combine(a's items, b's items).
    template <typename Combine>
    static void merge(const UsageVector &a, const UsageVector &b, UsageVector &out,
                      Combine combine);
};

} // namespace bridge
