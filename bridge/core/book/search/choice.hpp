// SPDX-License-Identifier: Apache-2.0
// Which of the nodes that can hold a request at its start it takes.
#pragma once

#include <cstdint>
#include <vector>

#include "book/search/search.hpp"

namespace bridge {

// Sorts seats of equal rank, given in node order. Shared chunks: the node with the least left over
// when filled comes first. Exclusive chunks: the smallest node, then the one that is used again
// soonest after the job.
void sort_by_fit(const BookState &state, const Shape &shape, int64_t start, int64_t length,
                 std::vector<Seat> &seats);

// The seats, in order, of the fewest nodes that hold so many chunks; all of them together do. No
// node of higher rank is taken to save one of lower rank.
std::vector<Seat> fewest_seats(const BookState &state, const std::vector<Seat> &seats,
                               int64_t chunks);

} // namespace bridge
