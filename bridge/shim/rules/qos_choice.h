// SPDX-License-Identifier: GPL-2.0-or-later
// Jobs that name several QOS (sbatch -q a,b). As in Slurm's own loop, each is tried in the order of
// Slurm's list, which is that of their priorities.
#ifndef BRIDGE_QOS_CHOICE_H
#define BRIDGE_QOS_CHOICE_H

#include "common/slurm_compat.h"

// How many QOS a job has to be tried under; at least 1.
unsigned qos_choices(const job_record_t *job);

// Makes one of them the job's present one; without a list the job keeps its own.
void qos_choose(job_record_t *job, unsigned which);

#endif
