// SPDX-License-Identifier: GPL-2.0-or-later
#include "held.h"

#include <time.h>

#include "slurm_compat.h"

// How long others have the locks to themselves between two batches.
#define BREATH_US 500

static const slurmctld_lock_t levels[] = {
    [HELD_READ] = COMPAT_LOCKS(READ_LOCK, READ_LOCK, READ_LOCK, READ_LOCK, READ_LOCK),
    [HELD_APPLY] = COMPAT_LOCKS(READ_LOCK, WRITE_LOCK, WRITE_LOCK, READ_LOCK, READ_LOCK),
};

int64_t clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

bool held_take(held_t *held, held_kind_t kind)
{
    if (slurmctld_config.shutdown_time)
        return false;
    lock_slurmctld(levels[kind]);
    if (slurmctld_config.shutdown_time || !job_list || !avail_node_bitmap) {
        unlock_slurmctld(levels[kind]);
        return false;
    }
    held->kind = kind;
    held->since_us = clock_us();
    return true;
}

void held_give(held_t *held)
{
    double ms = (double)(clock_us() - held->since_us) / 1000.0;
    unlock_slurmctld(levels[held->kind]);
    if (ms > held->longest_ms)
        held->longest_ms = ms;
}

bool held_breathe(held_t *held, bool *interrupted)
{
    if (clock_us() - held->since_us < (int64_t)held->batch_ms * 1000)
        return true;
    held_kind_t kind = held->kind;
    held_give(held);
    *interrupted = true;
    struct timespec breath = {.tv_nsec = BREATH_US * 1000};
    nanosleep(&breath, NULL);
    return held_take(held, kind);
}

double held_longest_ms(held_t *held)
{
    double longest = held->longest_ms;
    held->longest_ms = 0;
    return longest;
}
