// SPDX-License-Identifier: GPL-2.0-or-later
// What becomes of nodes when a job starts and ends on them; the mock's own calls.
#ifndef SLURM_LAUNCH_H
#define SLURM_LAUNCH_H

#include "slurm_mock.h"

// Gives a job a reason, without a sentence.
void mock_set_reason(job_record_t *job, int reason);

// Slurm keeps nodes for one user: whether a job may not use them.
bool mock_owned(job_record_t *job, bitstr_t *nodes);

// The job starts on nodes, and ends on those that it holds.
void mock_alloc(job_record_t *job, bitstr_t *nodes);
void mock_idle(job_record_t *job);

// Frees what the job was given.
void mock_release(job_record_t *job);

#endif
