// SPDX-License-Identifier: GPL-2.0-or-later
// What accounting lets one job have: MaxTRES and MaxTRESMins of its QOS and association.
#ifndef BRIDGE_JOB_LIMITS_H
#define BRIDGE_JOB_LIMITS_H

#include "common/slurm_compat.h"
#include "common/verdict.h"

#define LIMITED(...) verdict_of(PB(OUTCOME__OUTCOME_LIMITED), ESLURM_ACCOUNTING_POLICY, __VA_ARGS__)

// Whether a running job may have nodes in addition that come to these resources (an amount for each
// kind that accounting knows). Slurm tests the helper alone against limits of one job: many small
// steps would get past them, and beyond MaxTRESMins it ends the job.
verdict_t job_limits_judge(job_record_t *job, const uint64_t *added);

// The same of nodes that are not its own yet, as far as they can be told beforehand.
verdict_t job_limits_foresee(job_record_t *job, bitstr_t *added);

#endif
