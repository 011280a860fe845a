// SPDX-License-Identifier: GPL-2.0-or-later
// Reads Slurm's tables in slices of bounded lock time and writes the changes against the sent state
// into a request.
#ifndef BRIDGE_SNAPSHOT_H
#define BRIDGE_SNAPSHOT_H

#include <stdbool.h>
#include <time.h>

#include "common/arena.h"
#include "common/lock_scope.h"
#include "common/pb.h"
#include "report/sent_state.h"
#include "wire/reply.h"

typedef struct {
    arena_t arena; // holds the request's parts until snapshot_clear()
    arena_list_t jobs, removed_jobs, ended, nodes;
    pb_partitions_t *partitions;
    pb_reservations_t *reservations;
    pb_licences_t *licences;
    reply_scale_t scale; // of the cluster, for bounds on the reply
    time_t now;
    // When something next changes by itself: a begin time, a reservation. 0: never.
    time_t next_s;
    // Records were created during the scan: scan again.
    bool again;
    // A limit holds a job. There is no event when limits change: scan again.
    bool limited;
    // Some of the jobs are pending, new to the service, or on nodes other than before.
    bool pressing;
    // The set of nodes has changed: only a full snapshot, from an empty sent state, can express
    // that.
    bool renumbered;
} snapshot_t;

// False: slurmctld is shutting down.
bool snapshot_take(snapshot_t *snapshot, sent_state_t *sent_state, lock_scope_t *locks);

// True if there are changes to send.
bool snapshot_has_news(const snapshot_t *snapshot);

// True if the only changes are jobs that started, or that ended but still hold their nodes: they
// leave nothing to decide.
bool snapshot_can_wait(const snapshot_t *snapshot);

// Links the parts into the request.
void snapshot_fill(snapshot_t *snapshot, pb_cycle_request_t *request);

void snapshot_clear(snapshot_t *snapshot);

#endif
