// SPDX-License-Identifier: GPL-2.0-or-later
// Puts a guest back into the queue, for the sake of its host.
#ifndef BRIDGE_REQUEUE_H
#define BRIDGE_REQUEUE_H

#include "common/pb.h"
#include "common/slurm_compat.h"
#include "common/verdict.h"

// Needs LOCK_SCOPE_APPLY. The job is running. Its system comment states why.
verdict_t sharing_requeue(job_record_t *job, const pb_requeue_t *wanted);

#endif
