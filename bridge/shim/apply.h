// SPDX-License-Identifier: GPL-2.0-or-later
// Judges every decision of a reply once more under Slurm's locks, and carries out those that hold.
#ifndef BRIDGE_APPLY_H
#define BRIDGE_APPLY_H

#include <stdbool.h>

#include "fates.h"
#include "held.h"
#include "ledger.h"
#include "pb.h"

typedef struct {
    unsigned starts, announcements, refused;
} applied_t;

// Adds a fate for each decision. False: slurmctld is shutting down; the rest is left undone.
bool apply_reply(const pb_cycle_reply_t *reply, ledger_t *ledger, held_t *held, fates_t *fates,
                 applied_t *applied);

#endif
