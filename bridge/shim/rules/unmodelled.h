// SPDX-License-Identifier: GPL-2.0-or-later
// Requests with conditions on nodes that the wire cannot state: Slurm chooses the nodes.
#ifndef BRIDGE_UNMODELLED_H
#define BRIDGE_UNMODELLED_H

#include "common/slurm_compat.h"

// True if only Slurm can tell which nodes are suitable for a pending job.
bool job_is_unmodelled(const job_record_t *job);

#endif
