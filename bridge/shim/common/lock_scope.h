// SPDX-License-Identifier: GPL-2.0-or-later
// Slurm's locks, held for a bounded time and measured. No lock is ever held during a call to the
// service, and no pointer into Slurm's tables is kept across lock_scope_give().
#ifndef BRIDGE_LOCK_SCOPE_H
#define BRIDGE_LOCK_SCOPE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    LOCK_SCOPE_READ,  // everything, for reading
    LOCK_SCOPE_APPLY, // jobs and nodes for writing, as in Slurm's own scheduler
} lock_kind_t;

typedef struct {
    unsigned batch_ms;
    double longest_ms; // since the last lock_scope_longest_ms()
    lock_kind_t kind;
    int64_t since_us;
} lock_scope_t;

int64_t clock_us(void); // monotonic
static inline int64_t clock_ms(void)
{
    return clock_us() / 1000;
}

// Takes the locks. False, without locks, if slurmctld is shutting down.
bool lock_scope_take(lock_scope_t *locks, lock_kind_t kind);
void lock_scope_give(lock_scope_t *locks);

// If the locks have been held for the time of a batch: releases them, yields, takes them again, and
// sets *interrupted. False as in lock_scope_take().
bool lock_scope_breathe(lock_scope_t *locks, bool *interrupted);

// The longest time that the locks were held since the last call of this function.
double lock_scope_longest_ms(lock_scope_t *locks);

#endif
