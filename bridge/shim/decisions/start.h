// SPDX-License-Identifier: GPL-2.0-or-later
// Starts a pending job on exactly the given nodes, if Slurm's own rules allow it now.
#ifndef BRIDGE_START_H
#define BRIDGE_START_H

#include "common/pb.h"
#include "common/slurm_compat.h"
#include "common/verdict.h"

// Needs LOCK_SCOPE_APPLY. The job is pending and of the right version. If it does not start, it is
// unchanged, except for Slurm's reason where that is more specific.
verdict_t start_job(job_record_t *job, const pb_start_t *start);

#endif
