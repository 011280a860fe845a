// SPDX-License-Identifier: GPL-2.0-or-later
// Shows users the plan for their jobs: expected start, expected nodes, reason.
#ifndef BRIDGE_ANNOUNCE_H
#define BRIDGE_ANNOUNCE_H

#include "common/pb.h"
#include "common/slurm_compat.h"
#include "common/verdict.h"
#include "report/sent_state.h"

// Needs LOCK_SCOPE_APPLY; the job is pending and of the right version.
verdict_t announce_start(job_record_t *job, sent_job_t *entry, const pb_planned_start_t *planned);

// Withdraws the announcement and sets the reason.
verdict_t announce_pending(job_record_t *job, sent_job_t *entry, const pb_pending_t *pending);

// Records Slurm's reason for a start that it refused (WAIT_NO_REASON: none, or not refused).
void announce_refusal(job_record_t *job, sent_job_t *entry, uint32_t word);

#endif
