// SPDX-License-Identifier: GPL-2.0-or-later
// What the service is told of jobs that share nodes, or may.
#ifndef BRIDGE_SHARING_REPORT_H
#define BRIDGE_SHARING_REPORT_H

#include <stdbool.h>

#include "common/arena.h"
#include "common/hash.h"
#include "common/pb.h"
#include "common/slurm_compat.h"

// Adds all of it to a job's fingerprint. started: the job is running or completing.
void sharing_hash(bridge_hash_t *hash, const job_record_t *job, bool started);

void sharing_report(arena_t *arena, pb_job_t *message, const job_record_t *job);

#endif
