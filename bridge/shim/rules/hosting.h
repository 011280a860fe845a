// SPDX-License-Identifier: GPL-2.0-or-later
// For how long a running job has had guests since its start, and by how much its time limit was
// lengthened for that. The record is a note, so it survives restarts of slurmctld. It begins with
// each start that the plugin makes for sharing; of another start there is none.
//
// A client that forges the note can gain nothing while the plugin starts jobs. If Slurm's own
// backfill starts the job, within a second of its submission, the job can seem to have had guests;
// the time counted is never longer than the job has run.
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

// False: it does not run, or was not started to share.
bool hosting_of(const job_record_t *job, hosting_t *found);

// The whole time with guests until now, s; at most as long as it has run.
int64_t hosting_seconds(const hosting_t *hosting, const job_record_t *job, time_t now);

// Whether its time limit can be lengthened at all: it runs, was started to share, and has a limit
// and no reservation of its own.
bool hosting_may_extend(const job_record_t *job);

// These need the jobs for writing.

// A job has just started to share; it has had no guest yet.
void hosting_begin(job_record_t *job);

// A guest has just started on its nodes.
void hosting_open(job_record_t *host, time_t now);

// Its last guest has left. Does nothing to a job without guests.
void hosting_close(job_record_t *host, time_t at);

// Minutes were added to its limit.
void hosting_added(job_record_t *host, uint32_t minutes);

// Drops the record of a job that waits again.
void hosting_forget(job_record_t *job);

#endif
