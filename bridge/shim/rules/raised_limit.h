// SPDX-License-Identifier: GPL-2.0-or-later
// Time limits that the plugin raised for one run of a job; the next run has the user's limit again.
#ifndef BRIDGE_RAISED_LIMIT_H
#define BRIDGE_RAISED_LIMIT_H

#include "common/slurm_compat.h"

// Records the limit that a running job had (`asked`, minutes) before the present one. The record
// survives restarts of slurmctld.
void raised_limit_note(job_record_t *job, uint32_t asked);

// Restores the recorded limit of a job that waits again, unless it was changed since.
void raised_limit_restore(job_record_t *job);

#endif
