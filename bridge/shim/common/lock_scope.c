// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/lock_scope.h"

#include <time.h>

#include "common/slurm_compat.h"

// How long the locks are released between two batches.
#define BREATH_US 500

static const slurmctld_lock_t levels[] = {
    [LOCK_SCOPE_READ] = COMPAT_LOCKS(READ_LOCK, READ_LOCK, READ_LOCK, READ_LOCK, READ_LOCK),
    [LOCK_SCOPE_APPLY] = COMPAT_LOCKS(READ_LOCK, WRITE_LOCK, WRITE_LOCK, READ_LOCK, READ_LOCK),
};

int64_t clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

bool lock_scope_take(lock_scope_t *locks, lock_kind_t kind)
{
    if (slurmctld_config.shutdown_time)
        return false;
    lock_slurmctld(levels[kind]);
    if (slurmctld_config.shutdown_time || !job_list || !avail_node_bitmap) {
        unlock_slurmctld(levels[kind]);
        return false;
    }
    locks->kind = kind;
    locks->since_us = clock_us();
    return true;
}

void lock_scope_give(lock_scope_t *locks)
{
    double ms = (double)(clock_us() - locks->since_us) / 1000.0;
    unlock_slurmctld(levels[locks->kind]);
    if (ms > locks->longest_ms)
        locks->longest_ms = ms;
}

bool lock_scope_breathe(lock_scope_t *locks, bool *interrupted)
{
    if (clock_us() - locks->since_us < (int64_t)locks->batch_ms * 1000)
        return true;
    lock_kind_t kind = locks->kind;
    lock_scope_give(locks);
    *interrupted = true;
    struct timespec breath = {.tv_nsec = BREATH_US * 1000};
    nanosleep(&breath, NULL);
    return lock_scope_take(locks, kind);
}

double lock_scope_longest_ms(lock_scope_t *locks)
{
    double longest = locks->longest_ms;
    locks->longest_ms = 0;
    return longest;
}
