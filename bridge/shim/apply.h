// SPDX-License-Identifier: GPL-2.0-or-later
// Checks every decision of a reply again under Slurm's locks, and applies those that are valid.
#ifndef BRIDGE_APPLY_H
#define BRIDGE_APPLY_H

#include <stdbool.h>

#include "decision_results.h"
#include "lock_scope.h"
#include "sent_state.h"
#include "pb.h"

typedef struct {
    unsigned starts, resizes, announcements, refused;
    unsigned repeated; // of the refused: those with a number that was used before
} applied_t;

// Adds a result for each decision. *decided: the greatest number of a decision that the service has
// made so far; such numbers grow from reply to reply, and what has an old one is not carried out
// again. False: slurmctld is shutting down; the rest is left undone.
bool apply_reply(const pb_cycle_reply_t *reply, sent_state_t *sent_state, lock_scope_t *locks,
                 decision_results_t *results, uint64_t *decided, applied_t *applied);

#endif
