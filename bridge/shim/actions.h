// SPDX-License-Identifier: GPL-2.0-or-later
// What decisions may ask of this plugin. One row of one table says for each action which feature
// announces it in the hello, what must hold of its job, and what carries it out.
#ifndef BRIDGE_ACTIONS_H
#define BRIDGE_ACTIONS_H

#include "pb.h"
#include "sent_state.h"
#include "slurm_compat.h"
#include "start.h"

typedef enum {
    NO_JOB,      // the decision is about no job
    PENDING_JOB, // it is of a job that is pending, of the version that the decision names
    RUNNING_JOB, // likewise, of one that runs
} subject_t;

typedef struct {
    const char *feature;
    subject_t of;
    // Needs LOCK_SCOPE_APPLY. Job and entry are NULL where the action is of no job.
    verdict_t (*carry_out)(job_record_t *job, sent_job_t *entry, const pb_decision_t *decision);
} action_t;

// The row of a decision's action; NULL: this plugin does not know it.
const action_t *action_of(const pb_decision_t *decision);

// All features of the hello, with those of resizes if slurm.conf permits these; their number is put
// into *count.
char **action_features(bool resizes, size_t *count);

#endif
