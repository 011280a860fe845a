// SPDX-License-Identifier: GPL-2.0-or-later
// For how long a running job has had guests since its start, and by how much its time limit was
// lengthened for that. The record is a part of the system comment: it survives restarts of
// slurmctld, and no user can forge it, even if Slurm's own backfill starts the job. It begins with
// each start that the plugin makes for a possible host, and with the first guest of any other job.
//
// Time with guests counts until the job reaches its own limit, so that all extensions together are
// never longer than that limit.
#ifndef BRIDGE_HOSTING_H
#define BRIDGE_HOSTING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/slurm_compat.h"

typedef struct {
    int64_t past_s;  // time with guests until they had left for the last time
    int64_t since_s; // it has guests since then; 0: it has none
    uint32_t added;  // minutes that were added to its time limit
} hosting_t;

// False: it does not run, was not started to share, or only as a guest.
bool hosting_of(const job_record_t *job, hosting_t *found);

// The whole time with guests until now, s; at most as long as it has run.
int64_t hosting_seconds(const hosting_t *hosting, const job_record_t *job, time_t now);

// Whether its time limit can be lengthened at all: it runs, was started to share, and has a limit
// and no reservation of its own.
bool hosting_may_extend(const job_record_t *job);

// These need the jobs for writing.

// A job has just started that may get guests.
void hosting_begin(job_record_t *job);

// A guest has just started on its nodes.
void hosting_open(job_record_t *host, time_t now);

// Its last guest has left. Does nothing to a job without guests.
void hosting_close(job_record_t *host, time_t at);

// Minutes were added to its limit.
void hosting_added(job_record_t *host, uint32_t minutes);

// Drops the record of a former run.
void hosting_forget(job_record_t *job);

#endif
