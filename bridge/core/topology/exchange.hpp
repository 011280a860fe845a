// SPDX-License-Identifier: Apache-2.0
// Nodes that are alike change hands until nobody gains: placements under restrictions of any shape.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/tree.hpp"

namespace bridge {

// A node in the hands of a job.
struct Seat {
    int32_t leaf = -1;   // the switch it hangs on
    int32_t kind = -1;   // seats of one kind may change hands; -1: this one may not
    int32_t holder = -1; // the job; -1: nobody
};

struct ExchangeEffort {
    int64_t moves = 0; // tried at random
    uint64_t seed = 0;
};

// Finds who should hold which seat: every job keeps as many seats of every kind as it has, so
// whatever held of it (chunks, features, memory) holds still. By annealing over exchanges of two
// seats, then by exchanges that gain until there are none. Never costs more than what is given.
//
// most: leaf switches that a job may sit on, by job; 0: any number. One that sits on more stays
// within as many as it has.
// Returns the holders, by seat. O(moves * height), and at the end O(seats of a kind ^ 2) a round
// where that is below a bound.
std::vector<int32_t> exchange(const Tree &tree, const HopMetric &metric,
                              const std::vector<Seat> &seats, const std::vector<int32_t> &most,
                              const ExchangeEffort &effort);

} // namespace bridge
