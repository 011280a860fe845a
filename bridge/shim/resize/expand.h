// SPDX-License-Identifier: GPL-2.0-or-later
// Adds nodes to a running job. Slurm has no call for that: a helper job that depends on it by
// "expand" is started on them and merged into it, all within one hold of the locks. All functions
// need LOCK_SCOPE_APPLY unless stated otherwise.
#ifndef BRIDGE_EXPAND_H
#define BRIDGE_EXPAND_H

#include "common/pb.h"
#include "common/slurm_compat.h"
#include "common/verdict.h"

// Starts a pending job on exactly the nodes given (decisions/start.h).
typedef verdict_t start_job_t(job_record_t *job, const pb_start_t *start);

// The job holds its nodes whole; `start` starts the helper. If Slurm refuses, the job keeps the
// nodes that it had, and the helper is cancelled.
verdict_t expand_job(job_record_t *job, bitstr_t *added, start_job_t *start);

// Makes Slurm carry out an update of job `of`. Also refused if Slurm reports success but `job` does
// not hold exactly the nodes wanted: Slurm treats some requests as no change at all.
verdict_t job_update(job_record_t *job, const job_record_t *of, job_desc_msg_t *asked,
                     bitstr_t *wanted);

// Whether a running job holds exactly these nodes.
bool job_holds(const job_record_t *job, bitstr_t *nodes);

// True for a helper job, which is not reported. Needs the jobs for reading.
bool expand_is_helper(const job_record_t *job);

// True for a helper that was neither merged nor ended: as helpers live for one hold of the locks
// only, a slurmctld that was killed has left it behind. Needs the jobs for reading.
bool expand_is_stray(const job_record_t *job);

// Cancels such helpers.
void expand_clear_strays(void);

#endif
