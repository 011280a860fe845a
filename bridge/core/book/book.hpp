// SPDX-License-Identifier: Apache-2.0
// The use of every node, and in total, over time. python/book/book.cpp documents the interface.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "book/search/search.hpp"
#include "common/number_map.hpp"

namespace bridge {

// What the last search found: the booking could not start earlier.
struct Searched {
    int64_t from = NEVER; // no start in [from, its start) was possible; NEVER: not searched
    size_t rises = 0;     // rises of the nodes that were applied, in `epoch`
    uint64_t epoch = 0;
    uint64_t constraint_rises = 0; // of the constraints that it checks, summed
};

// What a booking holds. A raw one (of a job that ran before its request was known) has no request:
// each of its `placed` is followed by its own amounts in `raw`, one per column.
struct Booking {
    int64_t job;
    int64_t start;
    int64_t end;
    int32_t request; // -1: raw
    bool exclusive;
    uint64_t order; // of booking
    std::vector<Term> terms;
    std::vector<Placed> placed;
    std::vector<int64_t> raw;
    Searched searched{};
};

// Starts that rises may have made possible for all jobs of one length with equal chunks (or with
// one request of several kinds of chunks): when a chunk may start on the node of each rise.
struct Shadow {
    size_t begin = 0; // the rises from `begin` up to `taken` are known
    size_t taken = 0;
    uint64_t epoch = NO_EPOCH;
    struct Start {
        size_t rise;
        int64_t start; // the rise allows starts in [start, until)
        int64_t until;
    };
    std::vector<Start> starts; // in order of rises; one rise may have several
    size_t spared = 0;         // searches avoided

    static constexpr uint64_t NO_EPOCH = UINT64_MAX;
};

struct BookFound {
    int64_t start; // NEVER: none
    std::vector<Placed> placed;
};

class Book {
  public:
    Book(int64_t now, BookNodes nodes);

    BookState &state() { return state_; }
    const BookState &state() const { return state_; }
    BookSearch &search() { return search_; }

    // --- nodes and constraints ---
    int32_t add_class(std::vector<int32_t> positions);
    // Replaces the nodes of a class and keeps all bookings. Not allowed while a mark is set, or for
    // a class that has closed times.
    void set_class(int32_t cls, std::vector<int32_t> positions);
    int32_t close(int32_t cls, int64_t start, int64_t end, std::vector<int32_t> positions);
    void reopen(int32_t closure);
    int32_t add_constraint(const std::vector<int64_t> &starts, const std::vector<int64_t> &amounts);
    // Replaces a step function; what counts on it stays.
    void set_constraint(int32_t constraint, const std::vector<int64_t> &starts,
                        const std::vector<int64_t> &amounts);
    void advance(int64_t now);

    // --- bookings ---
    BookFound find(int32_t request, int64_t length, Terms terms, int64_t earliest, int64_t latest,
                   bool last);
    // Whether nodes and constraints can hold it there; each node once per group.
    bool holds(int32_t request, int64_t start, int64_t length, Terms terms,
               const std::vector<Placed> &placed);
    void book(Booking booking);
    Booking revoke(int64_t job);
    const Booking *booking(int64_t job) const;
    Booking *booking(int64_t job);
    // Gives back on the nodes what a booking takes (sign 1), or takes it again (-1). Only the lines
    // change; in between, caches are stale and searches are not allowed.
    void lift(const Booking &booking, int64_t sign);
    // Moves a booking to an earlier start if possible; returns whether it moved. Its address stays
    // the same.
    bool replan(Booking &booking, int64_t earliest);
    // What is known of a booking after a search from `earliest`.
    Searched searched(int64_t earliest, const std::vector<Term> &terms) const;
    // Whether more is booked at some second than a node has or a constraint allows.
    bool overbooked() const;
    size_t size() const { return slots_.size(); }
    std::vector<const Booking *> in_order() const; // by start, then by booking

    // --- blocking jobs ---
    struct Holders {
        std::vector<int64_t> jobs;
        std::vector<int32_t> constraints;
    };
    Holders holders(int32_t request, Terms terms, int64_t start, int64_t length);

    // --- what-if ---
    int64_t mark();
    void undo(int64_t mark);
    void keep(int64_t mark);
    bool marked() const { return !marks_.empty(); }
    int64_t marks() const { return static_cast<int64_t>(marks_.size()); }

  private:
    struct Closure {
        int32_t cls;
        int64_t start;
        int64_t end;
        std::vector<int32_t> positions;
        bool closed;
    };
    enum class Did { BOOK, REVOKE, CLOSE, REOPEN, CONSTRAINT };
    struct Entry {
        Did did;
        int64_t id;                   // job, closure or constraint
        Booking booking;              // REVOKE
        std::vector<int64_t> amounts; // CONSTRAINT
        std::vector<int64_t> starts;  // CONSTRAINT
    };
    struct Steps {
        std::vector<int64_t> starts;
        std::vector<int64_t> amounts;
    };

    BookState state_;
    BookSearch search_;
    std::vector<Closure> closures_;
    std::vector<Steps> steps_; // of the constraints
    std::vector<Booking> bookings_;
    std::vector<uint32_t> free_slots_;
    NumberMap slots_; // job -> index in bookings_
    uint64_t next_order_ = 0;
    std::vector<size_t> marks_; // sizes of the journal
    std::vector<Entry> journal_;
    bool undoing_ = false;
    std::vector<int64_t> taken_; // (columns,) scratch
    Spans chances_;              // possible earlier starts of a booking, ascending; empty: unknown
    std::map<std::pair<int32_t, int64_t>, Shadow> shadows_; // by chunk and length

    void journal(Entry entry);
    void write(const Booking &booking, int64_t start, int64_t end, int64_t sign);
    void rises(const Booking &booking, int64_t from);
    // Whether only rises since its last search can make a start in [from, its start) possible.
    bool still_searched(const Booking &booking, int64_t from) const;
    // If so: a lower bound on a start in [from, its start); its start or later: there is none. Sets
    // `chances_`.
    int64_t first_chance(const Booking &booking, int64_t from);
    // The same for starts on its own nodes at which the job would overlap its present booking.
    int64_t first_beside_itself(const Booking &booking) const;
    // Adds the starts that the shadow's next rise allows, from `first` on.
    void take_in_one(Shadow &shadow, int32_t request, int64_t length, int64_t first);
    // The earliest start before its own that rises since its last search allow, on the nodes of
    // these rises; NEVER: none.
    int64_t first_after_rises(Shadow &shadow, const Booking &booking);
    // Applies new rises, but not too many at a time; returns whether all from `since` on are known.
    bool take_in(Shadow &shadow, int32_t request, int64_t length, size_t since);
    // Whether too few whole nodes are free for it at every start in [from, until) and `chances_`.
    bool too_few_free(const Booking &booking, int64_t from, int64_t until);
    uint64_t constraint_rises(const std::vector<Term> &terms) const;
    const int64_t *taken(const Booking &booking, size_t i);
    void apply_closures(int32_t cls);
};

} // namespace bridge
