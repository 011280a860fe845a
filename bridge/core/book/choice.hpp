// SPDX-License-Identifier: Apache-2.0
// Which of the nodes that hold a request at its start are taken first: Select::BEST_FIT of
// _core.pyi.
#pragma once

#include <cstdint>
#include <vector>

#include "book/search.hpp"

namespace bridge {

// A node that holds chunks of a group during a job.
struct Seat {
    int32_t position;
    int64_t room; // chunks, at least one
};

// Sorts seats of the same rank, given in the order of nodes: for chunks that share nodes, what is
// left with the least free beside as many chunks as fit goes first; for exclusive ones the smallest
// node, then the one that is taken again soonest after the job.
void sort_by_fit(const BookState &state, const Shape &shape, int64_t start, int64_t length,
                 std::vector<Seat> &seats);

} // namespace bridge
