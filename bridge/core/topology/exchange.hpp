// SPDX-License-Identifier: Apache-2.0
// Exchanges equal nodes between jobs while that reduces the cost, for placements with any
// restrictions.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/tree.hpp"

namespace bridge {

// A node held by a job.
struct Seat {
    int32_t leaf = -1;   // its switch
    int32_t kind = -1;   // seats of one kind are interchangeable; -1: fixed
    int32_t holder = -1; // the job; -1: none
};

struct ExchangeEffort {
    int64_t moves = 0; // random moves tried
    uint64_t seed = 0;
};

// Finds the best holders of the seats: every job keeps its number of seats of every kind, so its
// constraints (chunks, features, memory) still hold. Annealing over exchanges of two seats, then
// exchanges that gain until there are none. Never costs more than the input.
//
// maximum: leaf switches that a job may use, by job; 0: any number. A job that already uses more
// keeps at most that many. Returns the holders, by seat. O(moves * height), and at the end O(seats
// of a kind ^ 2) a round where that is below a bound.
std::vector<int32_t> exchange(const Tree &tree, const HopMetric &metric,
                              const std::vector<Seat> &seats, const std::vector<int32_t> &maximum,
                              const ExchangeEffort &effort);

} // namespace bridge
