// SPDX-License-Identifier: GPL-2.0-or-later
// Detects changes in Slurm, which does not announce them: by counters of jobs, times of updates and
// the bitmaps of nodes. The times have a resolution of one second, so after a change seen in the
// current second, the caller has to look again when that second is over.
#ifndef BRIDGE_EVENTS_H
#define BRIDGE_EVENTS_H

#include <stdint.h>
#include <time.h>

// Changes with nearly every event. Takes the node lock for reading, for microseconds.
uint64_t events_fingerprint(void);

// The moment of the latest update of jobs, nodes, partitions, reservations or licences.
time_t events_latest(void);

#endif
