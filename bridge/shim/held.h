// SPDX-License-Identifier: GPL-2.0-or-later
// Slurm's locks, held for a bounded time and measured. No lock is ever held during a call to the
// service, and no pointer into Slurm's tables is kept across held_give().
#ifndef BRIDGE_HELD_H
#define BRIDGE_HELD_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    HELD_READ,  // everything for reading
    HELD_APPLY, // jobs and nodes for writing: what Slurm's own scheduler takes
} held_kind_t;

typedef struct {
    unsigned batch_ms;
    double longest_ms; // since the last held_longest_ms()
    held_kind_t kind;
    int64_t since_us;
} held_t;

int64_t clock_us(void); // monotonic
static inline int64_t clock_ms(void)
{
    return clock_us() / 1000;
}

// Takes the locks. False, and nothing is held, if slurmctld is shutting down.
bool held_take(held_t *held, held_kind_t kind);
void held_give(held_t *held);

// If the locks have been held for the time of a batch: gives them, lets others in, takes them
// again. Sets *interrupted if they were given in between. False as held_take().
bool held_breathe(held_t *held, bool *interrupted);

// The longest time the locks were held since the last call of this.
double held_longest_ms(held_t *held);

#endif
