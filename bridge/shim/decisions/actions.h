// SPDX-License-Identifier: GPL-2.0-or-later
// The actions that this plugin supports: for each a row with the feature that announces it in the
// hello, the precondition on its job, and its handler.
#ifndef BRIDGE_ACTIONS_H
#define BRIDGE_ACTIONS_H

#include "common/pb.h"
#include "common/slurm_compat.h"
#include "common/verdict.h"
#include "report/sent_state.h"

typedef enum {
    NO_JOB,      // the action has no job
    PENDING_JOB, // the job must be pending and have the version in the decision
    RUNNING_JOB, // likewise, running
} subject_t;

typedef struct {
    const char *feature;
    subject_t of;
    // Needs LOCK_SCOPE_APPLY. Job and entry are NULL if the action has no job.
    verdict_t (*carry_out)(job_record_t *job, sent_job_t *entry, const pb_decision_t *decision);
} action_t;

// The row of a decision's action; NULL: unknown to this plugin.
const action_t *action_of(const pb_decision_t *decision);

// All features of the hello, with those of resizes if slurm.conf permits these; *count is set to
// their number.
char **action_features(bool resizes, size_t *count);

#endif
