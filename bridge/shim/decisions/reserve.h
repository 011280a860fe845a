// SPDX-License-Identifier: GPL-2.0-or-later
// Reservations that operators requested from the service: created and removed by Slurm's own code,
// under its own rules. Its refusals (running jobs in the way, a name in use, an unknown user) are
// in the result.
#ifndef BRIDGE_RESERVE_H
#define BRIDGE_RESERVE_H

#include "common/pb.h"
#include "common/verdict.h"

// Needs LOCK_SCOPE_APPLY.
verdict_t reserve(const pb_reserve_t *wanted);
verdict_t unreserve(const pb_unreserve_t *wanted);

#endif
