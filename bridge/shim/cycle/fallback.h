// SPDX-License-Identifier: GPL-2.0-or-later
// Switches between the service and, while it is silent, Slurm's main scheduler and backfill.
#ifndef BRIDGE_FALLBACK_H
#define BRIDGE_FALLBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/lock_scope.h"

typedef struct {
    bool active;       // Slurm's own schedulers decide
    bool was_disabled; // scheduling_disabled before fallback_begin()
    uint32_t times;
    double past_s; // in earlier fallbacks
    int64_t since_ms;
    char reason[200];
    void *backfill;             // the loaded plugin; NULL: not loaded yet
    int64_t tidy_ms, tidied_ms; // when to check next for marks that backfill left, and until when
} fallback_t;

// Stops Slurm's schedulers.
void fallback_begin(fallback_t *fallback);

// The service is silent: Slurm's schedulers decide. Logs this.
void fallback_enter(fallback_t *fallback, const char *reason);

// The service answers again.
void fallback_leave(fallback_t *fallback);

// Stops Slurm's schedulers again if something else has started them.
void fallback_assert(const fallback_t *fallback);

// Removes the marks that backfill left on nodes, as it cannot while it is stopped.
void fallback_tidy(fallback_t *fallback, lock_scope_t *locks);

double fallback_seconds(const fallback_t *fallback);

void fallback_reconfig(const fallback_t *fallback);

// Restores the state before fallback_begin().
void fallback_end(fallback_t *fallback);

#endif
