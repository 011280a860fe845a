// SPDX-License-Identifier: Apache-2.0
// Keeps jobs booked where they were, as far as they fit. The result is that of booking them in
// order into an empty book, each on its previous nodes or else on other nodes at the same time.
// Here the book holds all of them from the start, so only jobs near an overbooked node are
// examined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "book/batch.hpp"

namespace bridge {

// Jobs in order; see `settle`.
struct Claims {
    BookJobs jobs;       // `not_before`: the start of each
    const bool *booked;  // is in the book, whether it fits or not; the others have no place
    const bool *unsure;  // may not fit, although no node is overbooked
    const bool *movable; // may be booked elsewhere
};

struct Settled {
    std::vector<bool> kept;
    std::vector<int64_t> start; // NEVER: it is not booked
    std::vector<int8_t> blocked_by;
    std::vector<int32_t> blocked_constraint;
};

// Rules:
// 1. A job stays without being examined if its nodes are not overbooked and no job moved onto them.
// 2. A job is examined as if no later job were booked. If it fits where it is, it stays. Otherwise
//    it gets the nodes that a search finds at the same time, or none. Later jobs that these nodes
//    cannot hold beside it are examined in turn.
// Returns false, and changes nothing, in these cases: more than `maximum` jobs would be examined; a
// job to be moved may not move; an examined job requests several kinds of chunks, has terms but no
// place, or takes nodes by how long they stay free; a constraint is exceeded. No term may have the
// mode CHECK.
bool settle(Book &book, const Claims &claims, size_t maximum, Settled &settled);

} // namespace bridge
