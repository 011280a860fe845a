// SPDX-License-Identifier: Apache-2.0
// Jobs that stay booked where they were, as far as they fit, in order: what a book would hold that
// is filled with them one after the other, each where it was or else on other nodes at the same
// time. The book holds them all to begin with, so only those near what does not fit are looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "book/batch.hpp"

namespace bridge {

// Jobs in order; see `settle`.
struct Claims {
    BookJobs jobs;       // `not_before`: when each is to start
    const bool *booked;  // there, whether it fits or not; the others have no place
    const bool *unsure;  // it may not fit, although no node is overbooked
    const bool *movable; // it may be booked elsewhere
};

struct Settled {
    std::vector<bool> kept;
    std::vector<int64_t> start; // NEVER: it is not booked
    std::vector<int8_t> blocked_by;
    std::vector<int32_t> blocked_constraint;
};

// Rules:
// 1. A job before which none has moved, and whose nodes are not overbooked, stays without a look.
// 2. A job is looked at as if none behind it were booked. If it fits where it is, it stays.
//    Otherwise it gets the nodes that a search finds at the same time, or none. Jobs behind it on
//    these nodes are looked at in turn.
// Returns false, and changes nothing, if it would look at more than `most` jobs, or if one of them
// may not move, asks for chunks of several kinds, has terms but no place, or takes nodes by how
// long they stay free; or if a constraint is exceeded. No term may be of the mode CHECK.
bool settle(Book &book, const Claims &claims, size_t most, Settled &settled);

} // namespace bridge
