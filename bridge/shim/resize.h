// SPDX-License-Identifier: GPL-2.0-or-later
// Gives a running malleable job other nodes. Slurm has no call for more nodes: a helper job that
// depends on this one by "expand" is started on them and merged into it, all in one hold of the
// locks. All need LOCK_SCOPE_APPLY unless they say otherwise.
#ifndef BRIDGE_RESIZE_H
#define BRIDGE_RESIZE_H

#include "pb.h"
#include "slurm_compat.h"
#include "start.h"

// The job runs and is of the right version. Carried out only if the job then holds exactly the
// nodes named; otherwise it keeps those it had.
verdict_t resize_job(job_record_t *job, const pb_resize_t *wanted);

// Whether slurm.conf allows jobs to grow and to shrink. Needs the configuration for reading.
bool resize_is_permitted(void);

// True for a helper job, which nobody else is told of. Needs the jobs for reading.
bool resize_is_helper(const job_record_t *job);

// True for a helper that neither merged nor ended: as helpers live for one hold of the locks only,
// it was left behind, by a slurmctld that was killed. Needs the jobs for reading.
bool resize_is_stray(const job_record_t *job);

// Cancels those.
void resize_clear_strays(void);

#endif
