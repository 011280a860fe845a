// SPDX-License-Identifier: GPL-2.0-or-later
// Reads Slurm's tables in slices of bounded lock time and writes what changed since the sent
// state's last state into a request.
#ifndef BRIDGE_SNAPSHOT_H
#define BRIDGE_SNAPSHOT_H

#include <stdbool.h>
#include <time.h>

#include "arena.h"
#include "lock_scope.h"
#include "sent_state.h"
#include "pb.h"
#include "reply.h"

typedef struct {
    arena_t arena; // holds the request's parts until snapshot_clear()
    arena_list_t jobs, removed_jobs, ended, nodes;
    pb_partitions_t *partitions;
    pb_reservations_t *reservations;
    pb_licences_t *licences;
    reply_scale_t scale; // of the cluster
    time_t now;
    // The next moment at which something changes by itself: a begin time, a reservation. 0: none.
    time_t next_s;
    // Records came into being during the scan: scan again.
    bool again;
    // A limit keeps back a job. Nothing tells when limits change: look again.
    bool limited;
    // Among the jobs are such that wait, that the service has not heard of, or that hold others of
    // their nodes than before.
    bool pressing;
    // The nodes are others than before: only a full snapshot, from an empty sent state, can say so.
    bool renumbered;
} snapshot_t;

// False: slurmctld is shutting down.
bool snapshot_take(snapshot_t *snapshot, sent_state_t *sent_state, lock_scope_t *locks);

// True if there is something the service does not know yet.
bool snapshot_has_news(const snapshot_t *snapshot);

// True if there is nothing but jobs that have begun to run, or have ended and hold their nodes
// still: nothing can be decided for that.
bool snapshot_can_wait(const snapshot_t *snapshot);

// Hangs the parts into the request.
void snapshot_fill(snapshot_t *snapshot, pb_cycle_request_t *request);

void snapshot_clear(snapshot_t *snapshot);

#endif
