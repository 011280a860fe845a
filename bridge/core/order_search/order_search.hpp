// SPDX-License-Identifier: Apache-2.0
// Searches for the order of jobs whose plan costs least.
//
// Words: a *unit* is one job, or several that stay together (tasks of an array); the *lead* are
// units that come first in every order; to *decode* an order is to book its jobs one after the
// other, each at its earliest start; the *least* start of a job is the one directly behind the
// lead; its *excess* is its cost beyond that.
//
// 1. The given order is decoded first, then a family of others, then, for few units, every order.
//    Otherwise orders are changed at random, and a change that costs no more is kept.
// 2. Decoding begins at the first difference to the kept order. It ends when the cost is too high
//    or when the rest is placed as before.
// 3. A start after a job's `latest` is a *breach*; it costs more than all delays together. A trial
//    with more breaches than the kept order is never kept. Where an order of the family has one,
//    the job is moved forward, and it is tried again.
// 4. The same problem, seed and budget give the same answer on every machine: costs are integers,
//    and work is counted. An alarm, if given, also ends the search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/alarm.hpp"
#include "order_search/decoder.hpp"
#include "single_pass/node_problem.hpp"

namespace bridge {

// A second of delay of one job costs up to 2**32; the sum over a plan needs more than 64 bits.
using Cost = __int128;

struct OrderJobs {
    size_t n_units;
    size_t lead;                // number of units that come first, as given
    const int64_t *unit_indptr; // unit u is the problem's jobs [unit_indptr[u], unit_indptr[u + 1])
    const int64_t *weight;      // by job: what a second of delay costs
    const int64_t *due;         // by job: delay counts from here
    const int64_t *latest;      // by job: its latest start; NEVER: any
    const int64_t *waited;      // by job: s that it has waited at `due`; for halves > 2 only
    // A wait of x costs weight * HOUR * (x / HOUR) ** (halves / 2), less what has been waited.
    int64_t halves;
    size_t n_orders;
    const int32_t *orders; // n_orders x n_units, each begins with the lead
};

struct OrderBudget {
    int64_t effort;   // most jobs to book; 0: no bound
    int64_t steps;    // most steps of the decoder, of about a nanosecond each; 0: no bound
    int64_t patience; // consecutive changes without gain, per unit, that end the search
    uint64_t seed;
    const Alarm *alarm; // nullptr: none
};

enum class Stopped : int8_t { BOUND = 0, EXHAUSTED = 1, PATIENCE = 2, BUDGET = 3 };

// The unit of time in which waits are raised to a power, s.
constexpr double HOUR = 3600;

struct OrderFound {
    std::vector<int32_t> order; // of units
    std::vector<int64_t> start; // by job
    double given_cost;          // of the first order
    double family_cost;         // of the best order before the search
    double cost;
    double bound; // no plan that books the lead first costs less
    int64_t decodes;
    int64_t booked;
    int64_t steps;
    Stopped stopped;
    Decoding decoding;
};

OrderFound search_orders(const NodeProblem &problem, const OrderJobs &jobs,
                         const OrderBudget &budget);

class OrderSearch {
  public:
    OrderSearch(const NodeProblem &problem, const OrderJobs &jobs, const OrderBudget &budget);

    OrderFound run();

  private:
    const NodeProblem &problem_;
    const OrderJobs &jobs_;
    const OrderBudget &budget_;
    std::unique_ptr<OrderDecoder> decoder_;

    std::vector<int64_t> min_start_; // by job
    std::vector<Cost> min_cost_;     // by job
    std::vector<uint32_t> alike_;    // by unit; units with the same number are interchangeable

    // The kept order: its units, their jobs' starts, and the excess of each prefix.
    std::vector<int32_t> kept_;
    std::vector<int64_t> start_;
    std::vector<Cost> excess_;

    // Bookings; those of the first `same_` units are as kept.
    struct BookedUnit {
        int32_t unit;
        int32_t jobs; // how many of its jobs are booked
    };
    std::vector<BookedUnit> stack_;
    size_t same_ = 0;

    // For the exhaustive search.
    std::vector<int32_t> first_order_;
    std::vector<int32_t> best_path_;
    Cost best_excess_ = 0;

    std::vector<int32_t> trial_; // units from the first position that differs
    std::vector<int64_t> tried_start_;
    std::vector<Cost> tried_excess_;
    int64_t decodes_ = 0;
    int64_t booked_ = 0;
    int64_t looked_ = 0; // steps at the last look at the alarm
    bool out_of_budget_ = false;
    size_t breach_ = SIZE_MAX; // the position of the unit that ended the last trial by a breach
    uint64_t random_;

    size_t n() const { return jobs_.n_units; }
    Cost cost_of(size_t job, int64_t start) const;
    Cost excess_of(size_t job, int64_t start) const;
    uint64_t below(uint64_t n);
    bool spent();

    void find_alike();
    void take_lead();
    bool book_unit(int32_t unit, Cost &excess, Cost limit, bool &moved);
    void unbook_unit();
    void reach(size_t position);
    bool decode(size_t from, size_t to, Cost limit);
    void keep(size_t from, size_t to);
    bool breaks(size_t job, int64_t start) const;
    bool try_order(const int32_t *order);
    bool change();
    Stopped improve(double bound);
    void exhaust(std::vector<int32_t> &path, uint64_t left, Cost excess);
    bool met(double bound) const;
};

} // namespace bridge
