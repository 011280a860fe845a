// SPDX-License-Identifier: GPL-2.0-or-later
// Accounting's limits on one job: MaxTRES and MaxTRESMins of its QOS and association.
#ifndef BRIDGE_JOB_LIMITS_H
#define BRIDGE_JOB_LIMITS_H

#include "common/slurm_compat.h"
#include "common/verdict.h"

#define LIMITED(...) verdict_of(PB(OUTCOME__OUTCOME_LIMITED), ESLURM_ACCOUNTING_POLICY, __VA_ARGS__)

// Whether a running job may get additional nodes with these resources (an amount for each TRES).
// Slurm tests only the helper against limits of one job: many small steps would evade them, and
// beyond MaxTRESMins it ends the job.
verdict_t job_limits_judge(job_record_t *job, const uint64_t *added);

// The same for nodes that it does not hold yet, as far as their resources are known in advance.
verdict_t job_limits_foresee(job_record_t *job, bitstr_t *added);

#endif
