// SPDX-License-Identifier: GPL-2.0-or-later
// Shows users what is planned for their jobs: the expected start, the expected nodes, the reason.
#ifndef BRIDGE_ANNOUNCE_H
#define BRIDGE_ANNOUNCE_H

#include "sent_state.h"
#include "pb.h"
#include "slurm_compat.h"
#include "start.h"

// Needs LOCK_SCOPE_APPLY; the job is pending and of the right version.
verdict_t announce_start(job_record_t *job, sent_job_t *entry, const pb_planned_start_t *planned);

// Withdraws what was announced and sets the reason.
verdict_t announce_pending(job_record_t *job, sent_job_t *entry, const pb_pending_t *pending);

// Notes Slurm's word for a start that it refused (WAIT_NO_REASON: none, or it was not refused).
void announce_refusal(job_record_t *job, sent_job_t *entry, uint32_t word);

#endif
