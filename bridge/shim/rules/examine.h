// SPDX-License-Identifier: GPL-2.0-or-later
// Slurm's own tests of a pending job: may it start now, apart from resources? What Slurm's
// scheduler does to a job during these tests (resolving dependencies, setting the eligible time,
// keeping reasons, enforcing deadlines) is done here, because that scheduler is suspended.
#ifndef BRIDGE_EXAMINE_H
#define BRIDGE_EXAMINE_H

#include <stdbool.h>

#include "common/pb.h"
#include "common/slurm_compat.h"
#include "report/sent_state.h"

// True if the answer of the last examination may be outdated. Needs the job lock for reading.
bool examine_needed(const job_record_t *job, const sent_job_t *entry, int64_t now_ms);

// Tests the job and writes the result into the entry. Needs LOCK_SCOPE_APPLY. False: the job is no
// longer pending (its dependency can never be fulfilled, or its deadline has passed).
bool examine(job_record_t *job, sent_job_t *entry, int64_t now_ms);

// Creates the records of the first tasks of an array that waits for the corresponding tasks of
// another, as Slurm's scheduler does. Needs LOCK_SCOPE_APPLY. True: the array's records have
// changed.
bool examine_split(job_record_t *job);

// True while remains of a former run prevent a start. The credential of a new run must be younger
// than the revocation of the old one, which slurmd records in seconds: Slurm waits 121 s after a
// requeue, unless the start time is set to now.
bool examine_cleaning(const job_record_t *job);

// True if the job's partitions include this one.
bool examine_has_partition(const job_record_t *job, const part_record_t *part);

// Tests the job in one partition as Slurm does before a start; WAIT_NO_REASON: it may run there.
// The job is left as in its present partition.
uint32_t examine_partition(job_record_t *job, part_record_t *part);

// True if associations and QOS allow this many nodes now. Otherwise Slurm has set the reason.
bool examine_limits(job_record_t *job, uint32_t nodes);

#endif
