// SPDX-License-Identifier: GPL-2.0-or-later
// Adds nodes to a running job. Slurm has no call for that: a helper job that depends on it by
// "expand" is started on them and merged into it, all in one hold of the locks. All need
// LOCK_SCOPE_APPLY unless they say otherwise.
#ifndef BRIDGE_EXPAND_H
#define BRIDGE_EXPAND_H

#include "common/slurm_compat.h"
#include "common/verdict.h"

// The job holds its nodes whole. If Slurm refuses, it keeps the nodes that it had, and the helper
// is cancelled.
verdict_t expand_job(job_record_t *job, bitstr_t *added);

// Lets Slurm carry out an update of job `of`. Refused, too, if Slurm says that it is done and `job`
// does not hold exactly the wanted nodes: some requests it takes for no change at all.
verdict_t job_update(job_record_t *job, const job_record_t *of, job_desc_msg_t *asked,
                     bitstr_t *wanted);

// Whether a running job holds exactly these nodes.
bool job_holds(const job_record_t *job, bitstr_t *nodes);

// True for a helper job, which nobody else is told of. Needs the jobs for reading.
bool expand_is_helper(const job_record_t *job);

// True for a helper that neither merged nor ended: as helpers live for one hold of the locks only,
// it was left behind, by a slurmctld that was killed. Needs the jobs for reading.
bool expand_is_stray(const job_record_t *job);

// Cancels those.
void expand_clear_strays(void);

#endif
