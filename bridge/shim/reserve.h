// SPDX-License-Identifier: GPL-2.0-or-later
// Reservations that operators asked the service for: made and removed by Slurm's own code, under
// its own rules. What it refuses (running jobs in the way, a name that is taken, an unknown user)
// is told with the result.
#ifndef BRIDGE_RESERVE_H
#define BRIDGE_RESERVE_H

#include "pb.h"
#include "start.h"

// To be called under LOCK_SCOPE_APPLY.
verdict_t reserve(const pb_reserve_t *wanted);
verdict_t unreserve(const pb_unreserve_t *wanted);

#endif
