// SPDX-License-Identifier: GPL-2.0-or-later
// Checks every decision of a reply again under Slurm's locks, and applies those that are valid.
#ifndef BRIDGE_APPLY_H
#define BRIDGE_APPLY_H

#include <stdbool.h>

#include "common/lock_scope.h"
#include "common/pb.h"
#include "decisions/decision_results.h"
#include "report/sent_state.h"

typedef struct {
    unsigned starts, resizes, announcements, refused;
    unsigned repeated; // of the refused: repeated decision numbers
} applied_t;

// Adds a result for each decision. *decided: the greatest decision number so far. Numbers grow from
// reply to reply, and a decision with an old number is not carried out again. False: slurmctld is
// shutting down, and the rest is left undone.
bool apply_reply(const pb_cycle_reply_t *reply, sent_state_t *sent_state, lock_scope_t *locks,
                 decision_results_t *results, uint64_t *decided, applied_t *applied);

#endif
