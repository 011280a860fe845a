// SPDX-License-Identifier: GPL-2.0-or-later
// Switches between the service and, while it is silent, Slurm's main scheduler and backfill.
#ifndef BRIDGE_FALLBACK_H
#define BRIDGE_FALLBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "lock_scope.h"

typedef struct {
    bool active;       // Slurm's own schedulers decide
    bool was_disabled; // scheduling_disabled before us
    uint32_t times;
    double past_s; // in former fallbacks
    int64_t since_ms;
    char reason[200];
    void *backfill;             // the loaded plugin; NULL: not needed so far
    int64_t tidy_ms, tidied_ms; // when to look next for what backfill left behind, and until when
} fallback_t;

// Takes the decisions from Slurm's schedulers.
void fallback_begin(fallback_t *fallback);

// The service is silent: Slurm's schedulers decide. Says so in the log.
void fallback_enter(fallback_t *fallback, const char *reason);

// The service answers again.
void fallback_leave(fallback_t *fallback);

// Keeps Slurm's schedulers asleep where something else woke them.
void fallback_assert(const fallback_t *fallback);

// Takes back the marks that backfill left on nodes: it would do so itself, but not while it sleeps.
void fallback_tidy(fallback_t *fallback, lock_scope_t *locks);

double fallback_seconds(const fallback_t *fallback);

void fallback_reconfig(const fallback_t *fallback);

// Leaves everything as it was before fallback_begin().
void fallback_end(fallback_t *fallback);

#endif
