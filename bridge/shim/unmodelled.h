// SPDX-License-Identifier: GPL-2.0-or-later
// Requests that say more of their nodes than the wire does: Slurm chooses the nodes of such jobs.
#ifndef BRIDGE_UNMODELLED_H
#define BRIDGE_UNMODELLED_H

#include "slurm_compat.h"

// True if only Slurm knows which nodes do for a pending job.
bool job_is_unmodelled(const job_record_t *job);

#endif
