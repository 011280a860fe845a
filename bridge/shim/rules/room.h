// SPDX-License-Identifier: GPL-2.0-or-later
// Whether nodes are free for a job at this moment, by what the service knows of jobs and nodes. If
// Slurm finds them busy all the same, it is for a condition that the service does not know.
#ifndef BRIDGE_ROOM_H
#define BRIDGE_ROOM_H

#include "common/slurm_compat.h"

// True if all of the nodes are available, none is completing, and each is idle or, for a job that
// takes single CPUs, has enough CPUs that no running job holds. Needs LOCK_SCOPE_READ.
bool nodes_have_room(const job_record_t *job, const part_record_t *part, bitstr_t *nodes);

#endif
