// SPDX-License-Identifier: GPL-2.0-or-later
// Gives a running malleable job other nodes.
#ifndef BRIDGE_RESIZE_H
#define BRIDGE_RESIZE_H

#include "common/pb.h"
#include "common/slurm_compat.h"
#include "common/verdict.h"
#include "resize/expand.h"

// Needs LOCK_SCOPE_APPLY. The job runs and is of the right version. Carried out only if the job
// then holds exactly the nodes named; otherwise it keeps those it had. `start` starts the helper
// that brings added nodes.
verdict_t resize_job(job_record_t *job, const pb_resize_t *wanted, start_job_t *start);

// Whether slurm.conf allows jobs to grow and to shrink. Needs the configuration for reading.
bool resize_is_permitted(void);

#endif
