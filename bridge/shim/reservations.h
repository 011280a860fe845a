// SPDX-License-Identifier: GPL-2.0-or-later
// Reservations that a job may start in though the service plans it in none of them: several that it
// names, and magnetic ones, which draw in jobs that name none.
#ifndef BRIDGE_RESERVATIONS_H
#define BRIDGE_RESERVATIONS_H

#include "slurm_compat.h"

// Whether there may be such; of magnetic ones more may seem to be open to the job than are.
bool reservations_are_open(const job_record_t *job);

// select_nodes() in one of them after the other and, for a job that names none, at last outside of
// all, as Slurm's scheduler does. The job stays in the one that it starts in.
int reservations_select(job_record_t *job);

// Takes the record of an array's remaining tasks out of a magnetic reservation in which the array's
// first task was tried.
void reservations_leave(job_record_t *job);

#endif
