// SPDX-License-Identifier: GPL-2.0-or-later
// Converts Slurm's job records to messages of the wire. All functions need the job lock, at least
// for reading.
#ifndef BRIDGE_JOBS_H
#define BRIDGE_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/pb.h"
#include "common/slurm_compat.h"
#include "report/sent_state.h"

// The state to report; JOB_STATE_UNSPECIFIED: the job is not reported.
Schedbridge__V1__JobState job_wire_state(const job_record_t *job);

// Hash of the job's request, and of the nodes of a running malleable job. Never 0; the same after a
// restart of slurmctld.
uint64_t job_version(const job_record_t *job);

// Hash of all reported fields of the job.
uint64_t job_fingerprint(const job_record_t *job, const sent_job_t *entry, time_t now);

pb_job_t *job_message(arena_t *arena, const job_record_t *job, const sent_job_t *entry, time_t now);

// True for a job that has ended for good, whether its nodes are cleaned up or not.
bool job_has_ended(const job_record_t *job);

pb_ended_job_t *job_ended_message(arena_t *arena, const job_record_t *job);

#endif
