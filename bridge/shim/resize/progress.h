// SPDX-License-Identifier: GPL-2.0-or-later
// Writes the progress of a change of width into the system comment of a running job. `squeue -O
// SystemComment` and `scontrol show job` show it.
#ifndef BRIDGE_PROGRESS_H
#define BRIDGE_PROGRESS_H

#include "common/pb.h"
#include "common/slurm_compat.h"
#include "common/verdict.h"

// Needs LOCK_SCOPE_APPLY. Text of others in the comment is kept.
verdict_t show_progress(job_record_t *job, const pb_progress_t *progress);

// The same, of a job in any state.
void show_text(job_record_t *job, const char *words);

#endif
