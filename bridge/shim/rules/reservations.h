// SPDX-License-Identifier: GPL-2.0-or-later
// Reservations in which a job may start although the service does not plan it there: several that
// it names, and magnetic ones, which attract jobs that name none.
#ifndef BRIDGE_RESERVATIONS_H
#define BRIDGE_RESERVATIONS_H

#include "common/slurm_compat.h"

// Whether the job may have such reservations; magnetic ones may be overestimated.
bool reservations_are_open(const job_record_t *job);

// Calls select_nodes() in each of them and, for a job that names none, finally outside of all, as
// Slurm's scheduler does. The job stays in the one in which it starts.
int reservations_select(job_record_t *job);

// Removes the record of an array's remaining tasks from a magnetic reservation in which the first
// task was tried.
void reservations_leave(job_record_t *job);

#endif
