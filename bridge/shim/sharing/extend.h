// SPDX-License-Identifier: GPL-2.0-or-later
// Lengthens the time limit of a host by what its guests have cost it.
//
// Bounds, whatever is asked for: the whole extension is at most the time for which the job has had
// guests since its start, up to the next whole minute, as Slurm's limits are in minutes. It does
// not reach into a reservation of the job's nodes: what fits before it is granted. It may exceed
// MaxTime of the partition and MaxWall: both bound what users request.
#ifndef BRIDGE_EXTEND_H
#define BRIDGE_EXTEND_H

#include "common/pb.h"
#include "common/slurm_compat.h"
#include "common/verdict.h"

// Needs LOCK_SCOPE_APPLY. The job is running. A repeated or smaller extension changes nothing:
// APPLIED.
verdict_t extend_host(job_record_t *job, const pb_extend_t *wanted);

// In fallback nobody measures what guests cost: hosts that are about to reach their limits get all
// the time for which they have had guests. Needs LOCK_SCOPE_APPLY.
void extend_hosts_in_fallback(time_t now);

#endif
